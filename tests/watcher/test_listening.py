"""A watcher of a quiet change stream hears of the first change, without asking again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fixtures.pace import allow
from fixtures.sent_requests import SentRequests
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.watcher_threads import ChangeCollector, run_in_thread
from google.api_core.exceptions import ResourceExhausted
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.captures.change_stream import listening
from watcher.captures.change_stream.listening import Listening
from watcher.captures.change_stream.record_values import ChildPartition, Heartbeat, Record
from watcher.runners.watcher_run import idle_pause

TABLE = "CREATE TABLE {} (Id INT64) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
PAUSES = {"interval": "40s", "refresh": "45s"}
"""No test waits so long: what is delivered was heard of."""
QUIET = 30_000_000
CHANGE = cast(Record, object())
"""A data record: a listener asks its filter about it, and nothing else."""


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(TABLE.format("T"), TABLE.format("U"), STREAM)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run listens behind every poll."""
    monkeypatch.setattr(idle_pause, "QUIET_POLLS", 0)


def write(database: Database, table: str, key: int) -> None:
    with database.batch() as batch:
        batch.insert(table, ("Id",), [(key,)])


def watch(database: Database, **more: Any) -> tuple[Watcher, ChangeCollector]:
    settings: dict[str, Any] = {"tables": ["T"], "capture": "change-stream", "consumer": "me"}
    watcher = Watcher(database=str(address_of(database)), **settings | PAUSES | more)
    seen = ChangeCollector()
    watcher.on_change(seen)
    watcher.run_once()  # from now on it has a position
    return watcher, seen


def is_open_query(method: str, request: Any) -> bool:
    """Whether a request asks for a partition of a change stream up to a time that is to come."""
    if method != "ExecuteStreamingSql" or "READ_S" not in request.sql:
        return False
    begin, end = (request.params[name] for name in ("start", "end"))
    return seconds_of(end) - seconds_of(begin) > QUIET / 1_000_000


def seconds_of(text: str) -> float:
    hours, minutes, seconds = text.partition("T")[2].removesuffix("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


@pytest.mark.essential
def test_the_first_change_is_heard_of(database: Database, sent_requests: SentRequests) -> None:
    watcher, seen = watch(database)
    with run_in_thread(watcher) as raised:
        for key in range(3):
            while sum(is_open_query(*each) for each in list(sent_requests)) < 1 + 4 * key:
                assert not raised
                time.sleep(0.01)
            write(database, "U", key)  # of no interest
            write(database, "T", key)
            seen.wait(key + 1)
    assert not raised


def test_a_drain_does_not_wait_for_the_end_of_a_pause(database: Database) -> None:
    watcher, seen = watch(database, interval="20ms")
    running = threading.Thread(target=watcher.run, daemon=True)
    running.start()
    write(database, "T", 1)
    seen.wait(1)
    write(database, "T", 2)
    watcher.drain()
    running.join(allow(20))
    assert not running.is_alive()
    assert len(seen.changes) == 2


class Heard:
    """A listener over records that a test gives, and whether it has woken anybody."""

    def __init__(
        self, partitions: dict[str | None, list[Record | Exception]], accepts: bool = True
    ) -> None:
        self.asked: list[tuple[str | None, int]] = []
        self._partitions = partitions
        self._woken = threading.Event()
        self.listening = Listening(self._query, lambda _: accepts, 10, self._woken.set)

    def _query(self, token: str | None, start: int) -> Iterator[Record]:
        self.asked.append((token, start))
        for record in self._partitions[token]:
            if isinstance(record, Exception):
                raise record
            yield record

    def wait(self) -> tuple[bool, bool]:
        assert self._woken.wait(60)
        return self.listening.heard, self.listening.futile


def child(token: str, start: int = 11) -> ChildPartition:
    return ChildPartition(token, (), start)


def test_a_change_of_any_partition_wakes() -> None:
    heard = Heard({None: [child("a"), child("b", 20)], "a": [Heartbeat(15)], "b": [CHANGE]})
    assert heard.wait() == (True, False)
    assert heard.asked[0] == (None, 11)
    assert ("b", 20) in heard.asked


def test_a_partition_that_ends_wakes_as_its_children_are_not_heard_of() -> None:
    assert Heard({None: [child("a")], "a": [child("c", 30)]}).wait() == (True, False)


@pytest.mark.parametrize(
    "partitions",
    [
        {None: [ResourceExhausted("20 readers")]},
        {None: [child("a")], "a": [Heartbeat(15), ResourceExhausted("20 readers")]},
    ],
)
def test_what_fails_is_left_to_windows(
    partitions: dict[str | None, list[Record | Exception]],
) -> None:
    assert Heard(partitions).wait() == (True, True)


def test_many_partitions_are_left_to_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "PARTITIONS_MAX", 2)
    tokens = ["a", "b", "c"]
    partitions: dict[str | None, list[Record | Exception]] = {None: [*map(child, tokens)]}
    assert Heard(partitions | {token: [] for token in tokens}).wait() == (True, True)


def test_many_changes_of_other_tables_are_left_to_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "OTHERS_MAX", 3)
    heard = Heard({None: [child("a")], "a": [CHANGE] * 3}, accepts=False)
    assert heard.wait() == (True, True)


def test_without_listening_a_watcher_asks(database: Database, sent_requests: SentRequests) -> None:
    watcher, seen = watch(database, stream={"listen": False}, interval="20ms")
    with run_in_thread(watcher) as raised:
        write(database, "T", 1)
        seen.wait(1)
        write(database, "T", 2)
        seen.wait(2)
    assert not raised
    assert not any(is_open_query(*each) for each in sent_requests)
