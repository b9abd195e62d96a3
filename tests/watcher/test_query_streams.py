"""What the watchers of one process share, what each has for itself, and consumers that are slow."""

from __future__ import annotations

import base64
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from fixtures.singers import address_of, capture_of
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.captures import Changed, TableRows
from watcher.model.errors import UnavailableError
from watcher.spanner import resumption
from watcher.spanner.queries import QueryClient
from watcher.spanner.sql import Statement

ROWS = 600
PICTURE = base64.b64encode(b"x" * 30_000)
"""So large that a result comes in many messages, and in several batches."""
PAUSES = 2
"""So many times the consumer takes longer for what it has than a stream may take."""
DEADLINE_SECONDS = 1.5
LONGEST_SECONDS = 2 * DEADLINE_SECONDS
SECONDS_MAX = 60


def write(database: Database) -> None:
    for low in range(0, ROWS, 100):
        with database.batch() as batch:
            rows = [(key, PICTURE) for key in range(low, low + 100)]
            batch.insert_or_update("Singers", ("SingerId", "Picture"), rows)


def keys_of(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [key for batch in batches for key in batch.column("SingerId").to_pylist()]


def watcher_of(database: Database, **more: Any) -> Watcher:
    where = str(address_of(database))
    return Watcher(database=where, tables=["Singers"], start="earliest", **more)


@pytest.fixture
def short_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "STREAM_SECONDS", DEADLINE_SECONDS)
    monkeypatch.setattr(resumption, "STREAM_SECONDS_MAX", LONGEST_SECONDS)


class Busy:
    """A consumer that is busy for longer than a deadline with each of the first batches."""

    def __init__(self) -> None:
        self.batches = 0

    def take(self) -> None:
        self.batches += 1
        if self.batches <= PAUSES:
            threading.Event().wait(DEADLINE_SECONDS * 1.5)


@pytest.mark.usefixtures("short_deadline")
def test_a_slow_consumer_gets_every_row_once(singers: Database) -> None:
    write(singers)
    capture, busy = capture_of(singers, shard_groups=1), Busy()
    window, _ = capture.look(0)
    (part,) = capture.plan(window)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in capture.read(part):
            busy.take()
            yield rows.batch

    assert sorted(keys_of(batches())) == list(range(ROWS))
    assert capture.queries.stream.restarts >= 1


@pytest.mark.usefixtures("short_deadline")
def test_a_watcher_with_a_slow_sink_saves_its_window(singers: Database) -> None:
    write(singers)
    watcher, busy, batches = watcher_of(singers, consumer="slow"), Busy(), []

    @watcher.on_batch
    def take_slowly(rows: Changed) -> None:
        busy.take()
        batches.append(rows.batch)

    assert watcher.run_once() == ROWS
    assert sorted(keys_of(batches)) == list(range(ROWS))
    assert watcher.run_once() == 0


@pytest.mark.usefixtures("short_deadline")
def test_a_server_that_gives_nothing_until_the_deadline_is_an_error(
    singers: Database, faults: Callable[..., None]
) -> None:
    stream = QueryClient(address_of(singers)).stream
    assert list(stream.query(Statement("SELECT 1"), None))
    faults(latency_seconds=2 * LONGEST_SECONDS)
    with pytest.raises(UnavailableError, match="gave no row of a stream within 3 s"):
        list(stream.query(Statement("SELECT 1"), None))


def test_a_watcher_that_stops_stops_no_other_one(
    singers: Database, faults: Callable[..., None]
) -> None:
    write(singers)
    begun, stopped, batches = threading.Event(), threading.Event(), []
    going, stopping = watcher_of(singers), watcher_of(singers)

    @going.on_batch
    def wait_for_the_other(rows: Changed) -> None:
        batches.append(rows.batch)
        begun.set()
        assert stopped.wait(SECONDS_MAX)

    ended = threading.Event()

    @stopping.on_batch
    def stop_at_once(rows: Changed) -> None:
        assert isinstance(rows, TableRows)
        stopping.stop()
        stopped.set()
        assert ended.wait(SECONDS_MAX)

    faults(unavailable_after_rows=20)
    first = threading.Thread(target=going.run_once)
    first.start()
    assert begun.wait(SECONDS_MAX)
    second = threading.Thread(target=stopping.run)
    second.start()
    first.join(SECONDS_MAX)
    ended.set()
    second.join(SECONDS_MAX)
    assert not first.is_alive()
    assert sorted(keys_of(batches)) == list(range(ROWS))


def count_scanned(watcher: Watcher) -> float:
    sample = watcher.metrics.registry.get_sample_value
    return sample("spanner_watcher_scanned_rows", {"consumer": watcher.config.consumer or ""}) or 0


def test_each_watcher_counts_its_own_rows(singers: Database) -> None:
    write(singers)
    one, other = (watcher_of(singers, metrics={"port": 0}, consumer=name) for name in ("a", "b"))
    one.on_batch(lambda _: None)
    other.on_batch(lambda _: None)
    one.run_once()
    before = count_scanned(one)
    assert before >= ROWS
    other.run_once()
    assert count_scanned(one) == count_scanned(other) == before


def test_queries_share_a_session_and_are_the_same_in_another_process(singers: Database) -> None:
    one, other = QueryClient(address_of(singers)), QueryClient(address_of(singers))
    assert one == other
    assert one.stream is not other.stream
    assert one.stream._session is other.stream._session
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert copy.stream.query_numbers(Statement("SELECT 1"), None)[1] == [1]
