"""Windows under concurrent writers and clearing, row by row against what the writers logged."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from fixtures.singers import capture_of
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet
from google.cloud.spanner_v1.transaction import Transaction

from conformance.judges.polled_windows import Line, find_gaps, find_problems
from conformance.truth import Commit, Truth, Write
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.consumers.clearing import Clearing, Method
from watcher.consumers.positions import MemoryPositions, Position
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.spanner.timestamps import to_micros

KEYS = 40
COMMITS_A_WRITER = 60
WRITERS = 4


TABLES = ("Singers",)
Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of a window: a line each, and its whole row."""

    window: Window
    lines: list[Line]
    values: list[Values]


def note(truth: Truth, keys: list[int], name: str, committed: datetime | None) -> None:
    """What a writer saw acknowledged."""
    assert committed is not None
    writes = tuple(Write(("Singers", (key,)), name) for key in keys)
    truth.add(Commit(to_micros(committed), writes))


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
        note(truth, keys, name, write(database, keys, name))


def deliver(capture: PollCapture, window: Window) -> Delivered:
    delivered = Delivered(window, [], [])
    for part in capture.plan(window):
        for rows in capture.read(part):
            for row in rows.batch.to_pylist():
                at, key = to_micros(row["_commit_timestamp"]), row["SingerId"]
                name, span = row["LastName"], (window.start, window.end)
                delivered.lines.append(Line(f"{key} {at}", "Singers", (key,), at, name, *span))
                delivered.values.append((key, name))
    return delivered


def table_now(database: Database) -> dict[object, Values]:
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql("SELECT SingerId, LastName FROM Singers")
        return {row[0]: tuple(row) for row in rows}


def find_wrong(truth: Truth, batches: list[Delivered], table: dict[object, Values]) -> list[str]:
    """What is wrong with windows of which each came once, and with the rows that they leave."""
    lines = [line for batch in batches for line in batch.lines]
    rebuilt = {values[0]: values for batch in batches for values in batch.values}
    return [
        *find_problems(lines, truth, TABLES, crashes=0),
        *find_gaps([batch.window for batch in batches]),
        *(f"{key} is {table[key]}" for key in rebuilt if rebuilt[key] != table[key]),
    ]


@pytest.mark.parametrize("method", [None, *Method])
def test_every_window_holds_the_newest_version_of_every_key_written_in_it(
    singers: Database, method: Method | None
) -> None:
    capture, truth = capture_of(singers), Truth()
    positions = MemoryPositions()
    start = capture.look(0)[0].end
    positions.save(Position("test", "Singers", start), None)
    clearing = Clearing(singers, capture.table, positions, method=method or Method.AUTO)
    batches: list[Delivered] = []

    def poll() -> None:
        begin = batches[-1].window.end if batches else start
        window, changed = capture.look(begin)
        batches.append(deliver(capture, window) if changed else Delivered(window, [], []))
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
    assert find_wrong(truth, batches, table_now(singers)) == []
    assert sum(len(batch.lines) for batch in batches) > KEYS
    if method is not None:
        clearing.clear()
        assert capture.count(Window(0, capture.look(0)[0].end)) == 0


def test_a_window_reads_the_same_rows_again_after_they_changed(singers: Database) -> None:
    capture, truth = capture_of(singers), Truth()
    writer(singers, truth, 1, 20)
    window, _ = capture.look(0)
    first = deliver(capture, window)
    writer(singers, truth, 2, 20)
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[first.lines[0].key]))
    again = deliver(capture, window)
    assert sorted(again.lines, key=repr) == sorted(first.lines, key=repr)


def cut(capture: PollCapture, window: Window, max_rows: int) -> Window:
    """The beginning of a window, as the watcher cuts it."""
    end = PolledTables([capture]).cut({capture.table.name: window}, WindowLimit(rows=max_rows))
    return Window(window.start, end)


def test_windows_that_are_cut_deliver_the_same_as_one(singers: Database) -> None:
    capture, truth = capture_of(singers), Truth()
    for number in range(50):
        note(truth, [number], f"n{number}", write_by_mutation(singers, [number], f"n{number}"))
    whole, _ = capture.look(0)
    batches: list[Any] = []
    begin = 0
    while begin < whole.end:
        window = cut(capture, Window(begin, whole.end), max_rows=7)
        assert capture.count(window) <= 7
        batches.append(deliver(capture, window))
        begin = window.end
    assert len(batches) >= 7
    assert find_wrong(truth, batches, table_now(singers)) == []


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
    left = deliver(capture, capture.look(0)[0])
    assert [line.key for line in left.lines] == [(2,)]


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
    assert deliver(capture, old).lines == [], "the rows are newer: a later window has them"
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
    keys = [line.key for line in deliver(capture, window).lines]
    assert sorted(keys) == [(key,) for key in range(4_000)]
