"""The disk of a replica is full for a moment, or its object store does not answer."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from deltalake.exceptions import DeltaError
from fixtures.replicas import assert_equal, replicate
from fixtures.singers import write_singers
from fixtures.small_disk import SmallDisk
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ReplicaError, StoreUnavailableError
from watcher.replica.stores.stored_files import explain_store_error

LARGE = "x" * 200
S3_AWAY = (
    "Generic S3 error: Error performing PUT http://lake/t/_delta_log/1.json in 20s, after 10"
    " retries, max_retries: 10, retry_timeout: 180s - HTTP error: error sending request"
)


class RetryHandler(logging.Handler):
    """Calls ``act`` at each line that says that a window is tried again."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self.act = act
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line.startswith("trying again"):
            self.lines.append(line)
            self.act()


@contextmanager
def at_each_retry(act: Callable[[], None]) -> Iterator[list[str]]:
    """The lines of the retries; ``act`` is called at each."""
    handler, log = RetryHandler(act), logging.getLogger("watcher")
    log.addHandler(handler)
    try:
        yield handler.lines
    finally:
        log.removeHandler(handler)


@pytest.mark.parametrize("left", [0, 4_096, 12_288])
@pytest.mark.parametrize("first", [True, False], ids=["load", "merge"])
def test_a_replica_waits_for_room_and_its_copies_are_equal(
    singers: Database, small_disk: SmallDisk, first: bool, left: int
) -> None:
    lake = small_disk.path / "lake"
    write_singers(singers, range(3), "first")
    replicate(singers, lake)
    if first:
        copy = next(path for path in lake.iterdir() if not path.name.startswith("_"))
        copy.rename(small_disk.path / "elsewhere")
    write_singers(singers, range(200), LARGE)
    small_disk.fill(left)
    with at_each_retry(small_disk.free) as lines:
        replicate(singers, lake)
    assert lines
    assert all("No space left" in line for line in lines)
    assert_equal(singers, lake)


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (DeltaError(S3_AWAY), True),
        (DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"), True),
        (OSError("When reading ...: AWS Error NETWORK_CONNECTION during PutObject"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (DeltaError("Generic LocalFileSystem error: Permission denied (os error 13)"), False),
        (OSError("AWS Error ACCESS_DENIED during PutObject operation: Access Denied"), False),
        (DeltaError("The table has a feature that this version cannot write"), False),
    ],
)
def test_what_may_go_away_is_tried_again_and_all_else_is_reported(
    error: Exception, away: bool
) -> None:
    explained = explain_store_error("s3://lake/t", error)
    assert isinstance(explained, StoreUnavailableError) is away
    assert isinstance(explained, ReplicaError)
    assert str(error) in str(explained)
