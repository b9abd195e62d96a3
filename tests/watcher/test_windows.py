"""Windows under concurrent writers and clearing, row by row against what the writers logged."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from fixtures.singers import capture_of
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet
from google.cloud.spanner_v1.transaction import Transaction

from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.cli.demo.verification import MicroBatch, Version, verify
from watcher.consumers.clearing import Clearing, Method
from watcher.consumers.positions import MemoryPositions, Position
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.spanner.timestamps import to_micros

KEYS = 40
COMMITS_A_WRITER = 60
WRITERS = 4


class Truth:
    """What the writers saw acknowledged."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self._lock = threading.Lock()

    def add(self, keys: list[int], name: str, committed: datetime | None) -> None:
        assert committed is not None
        with self._lock:
            self.versions += [Version(key, to_micros(committed), name) for key in keys]


def write_by_mutation(database: Database, keys: list[int], name: str) -> datetime | None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(k, name) for k in keys])
    committed: datetime | None = batch.committed
    return committed


def write_by_dml(database: Database, keys: list[int], name: str) -> datetime | None:
    def work(transaction: Transaction) -> Transaction:
        transaction.execute_update(
            "INSERT OR UPDATE INTO Singers (SingerId, LastName)"
            " SELECT k, @name FROM UNNEST(@keys) AS k",
            params={"keys": keys, "name": name},
            param_types={
                "keys": param_types.Array(param_types.INT64),
                "name": param_types.STRING,
            },
        )
        return transaction

    committed: datetime | None = database.run_in_transaction(work).committed
    return committed


def writer(database: Database, truth: Truth, number: int, commits: int) -> None:
    randomness = random.Random(number)
    for commit in range(commits):
        keys = sorted(randomness.sample(range(KEYS), randomness.randint(1, 5)))
        name = f"{number}.{commit}"
        write = write_by_mutation if randomness.random() < 0.7 else write_by_dml
        truth.add(keys, name, write(database, keys, name))


def deliver(capture: PollCapture, window: Window, number: int) -> MicroBatch:
    versions = []
    for part in capture.plan(window):
        for rows in capture.read(part):
            for row in rows.batch.to_pylist():
                timestamp = to_micros(row["_commit_timestamp"])
                values = (row["SingerId"], row["LastName"])
                versions.append(Version(row["SingerId"], timestamp, row["LastName"], values))
    return MicroBatch(number, window, 0.0, versions)


def table_now(database: Database) -> dict[int, tuple[object, ...]]:
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql("SELECT SingerId, LastName FROM Singers")
        return {row[0]: tuple(row) for row in rows}


@pytest.mark.parametrize("method", [None, *Method])
def test_every_window_holds_the_newest_version_of_every_key_written_in_it(
    singers: Database, method: Method | None
) -> None:
    capture, truth = capture_of(singers), Truth()
    positions = MemoryPositions()
    start = capture.look(0)[0].end
    positions.save(Position("test", "Singers", start), None)
    clearing = Clearing(singers, capture.table, positions, method=method or Method.AUTO)
    batches: list[MicroBatch] = []

    def poll() -> None:
        begin = batches[-1].window.end if batches else start
        window, changed = capture.look(begin)
        batches.append(
            deliver(capture, window, len(batches))
            if changed
            else MicroBatch(len(batches), window, 0.0, [])
        )
        positions.save(Position("test", "Singers", window.end), begin)

    with ThreadPoolExecutor(WRITERS) as threads:
        running = [
            threads.submit(writer, singers, truth, number, COMMITS_A_WRITER)
            for number in range(WRITERS)
        ]
        while not all(each.done() for each in running):
            poll()
            if method is not None:
                clearing.clear()
        for each in running:
            each.result()
    poll()
    verdict = verify(truth.versions, batches, table_now(singers))
    assert verdict.mismatches == []
    assert verdict.delivered > KEYS
    if method is not None:
        clearing.clear()
        assert capture.count(Window(0, capture.look(0)[0].end)) == 0


def test_a_window_reads_the_same_rows_again_after_they_changed(singers: Database) -> None:
    capture, truth = capture_of(singers), Truth()
    writer(singers, truth, 1, 20)
    window, _ = capture.look(0)
    first = deliver(capture, window, 0)
    writer(singers, truth, 2, 20)
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[first.versions[0].key]]))
    again = deliver(capture, window, 0)
    assert sorted(again.versions, key=repr) == sorted(first.versions, key=repr)


def cut(capture: PollCapture, window: Window, max_rows: int) -> Window:
    """The beginning of a window, as the watcher cuts it."""
    end = PolledTables([capture]).cut({capture.table.name: window}, WindowLimit(rows=max_rows))
    return Window(window.start, end)


def test_windows_that_are_cut_deliver_the_same_as_one(singers: Database) -> None:
    capture, truth = capture_of(singers), Truth()
    for number in range(50):
        truth.add([number], f"n{number}", write_by_mutation(singers, [number], f"n{number}"))
    whole, _ = capture.look(0)
    batches: list[Any] = []
    begin = 0
    while begin < whole.end:
        window = cut(capture, Window(begin, whole.end), max_rows=7)
        assert capture.count(window) <= 7
        batches.append(deliver(capture, window, len(batches)))
        begin = window.end
    assert len(batches) >= 7
    assert verify(truth.versions, batches, table_now(singers)).mismatches == []


def test_rows_of_one_commit_are_never_parted_by_a_cut(singers: Database) -> None:
    capture = capture_of(singers)
    write_by_mutation(singers, list(range(30)), "together")
    whole, _ = capture.look(0)
    window = cut(capture, whole, max_rows=7)
    assert capture.count(window) == 30


def test_an_idle_table_has_an_empty_window_that_still_advances(singers: Database) -> None:
    capture = capture_of(singers)
    first, changed = capture.look(0)
    assert not changed
    second, changed = capture.look(first.end)
    assert not changed
    assert second.start == first.end < second.end


def test_clearing_never_passes_the_slowest_consumer(singers: Database) -> None:
    capture, positions = capture_of(singers), MemoryPositions()
    write_by_mutation(singers, [1], "delivered to both")
    slow = capture.look(0)[0].end
    write_by_mutation(singers, [2], "delivered to the fast one")
    fast = capture.look(0)[0].end
    positions.save(Position("slow", "Singers", slow), None)
    positions.save(Position("fast", "Singers", fast), None)
    clearing = Clearing(singers, capture.table, positions)
    assert clearing.count().rows == 1
    assert clearing.clear().slowest_consumer == "slow"
    left = deliver(capture, capture.look(0)[0], 0)
    assert [version.key for version in left.versions] == [2]


def test_clearing_by_processed_keeps_the_timestamp_of_the_row(
    singers_with_processed: Database,
) -> None:
    capture, positions = capture_of(singers_with_processed), MemoryPositions()
    committed = write_by_mutation(singers_with_processed, [1], "kept")
    positions.save(Position("test", "Singers", capture.look(0)[0].end), None)
    Clearing(singers_with_processed, capture.table, positions).clear()
    with singers_with_processed.snapshot() as snapshot:
        query = "SELECT LastModified, Processed, ShardId FROM Singers"
        rows = list(snapshot.execute_sql(query))
    assert [tuple(row) for row in rows] == [(committed, True, None)]
    assert not capture.look(0)[1]


def test_a_window_older_than_the_versions_is_read_strongly_and_loses_nothing(
    singers: Database,
) -> None:
    capture = capture_of(singers)
    write_by_mutation(singers, [1, 2], "old")
    old = Window(0, to_micros(datetime.now(UTC)) - 3_700 * 1_000_000)
    assert deliver(capture, old, 0).versions == [], "the rows are newer: a later window has them"
    with pytest.raises(VersionExpiredError):
        capture.count(old)


def test_rows_of_a_broken_stream_are_neither_lost_nor_repeated(
    singers: Database, faults: Callable[..., None]
) -> None:
    capture = capture_of(singers)
    for first in range(0, 4_000, 500):
        write_by_mutation(singers, list(range(first, first + 500)), "x" * 200)
    window, _ = capture.look(0)
    faults(unavailable_after_rows=300, unavailable_streams_max=9, lost_sessions=2)
    keys = [version.key for version in deliver(capture, window, 0).versions]
    assert sorted(keys) == list(range(4_000))
