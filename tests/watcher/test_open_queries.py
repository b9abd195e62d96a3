"""Open queries against a scripted stream: what broke other readers of change streams, by name.

The script stands for the server: what a query of a partition gives, from a timestamp on. How the
real client and the embedded server behave together is in test_watch_change_stream.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from watcher.captures.change_stream.open_queries import (
    QUEUE_BYTES_MAX,
    TAKEN_BYTES_MAX,
    OpenQueries,
)
from watcher.captures.change_stream.record_columns import Arrival
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
    StreamMod,
)
from watcher.model.change import Operation, Shape, ValueCapture

SECONDS = 30
CHANGE_BYTES = 400
"""What a change of the script counts."""


def data(at: int, name: str = "", changes: int = 1) -> DataRecord:
    return DataRecord(
        commit_timestamp=at,
        sequence="0",
        transaction_id=name or str(at),
        last_in_partition=True,
        shape=Shape("T", (), ()),
        mods=(StreamMod("{}", "{}", None),) * changes,
        operation=Operation.INSERT,
        captured=ValueCapture.NEW_VALUES,
        records_in_transaction=1,
        partitions_in_transaction=1,
        tag="",
        system=False,
    )


class Script:
    """What each query gives, one after another; the last one of a partition stays open."""

    def __init__(self, roots: list[ChildPartition], queries: dict[str, list[list[Record]]]) -> None:
        self.roots = roots
        self.queries = queries
        self.opened: list[tuple[str, int]] = []
        self.done = threading.Event()

    def read(self, token: str | None, start: int) -> Iterator[Record]:
        if token is None:
            yield from self.roots
            return
        self.opened.append((token, start))
        number = sum(1 for name, _ in self.opened if name == token) - 1
        given = self.queries.get(token, [])
        yield from given[number] if number < len(given) else []
        if number >= len(given) - 1 and not any(
            isinstance(r, ChildPartition) for r in (given or [[]])[-1]
        ):
            self.done.wait(SECONDS)


def open_queries(read: Callable[[str | None, int], Iterator[Record]]) -> OpenQueries:
    """Open queries whose messages have a record each, which needs no decoding."""

    def arrive(token: str | None, start: int) -> Iterator[Arrival]:
        for record in read(token, start):
            count = len(record.mods) if isinstance(record, DataRecord) else 1
            yield Arrival(cast("Any", (record,)), count * CHANGE_BYTES, known=True)

    def decode(arrivals: Iterable[Arrival]) -> Iterator[Record]:
        for arrival in arrivals:
            yield from cast("Any", arrival.values)

    return OpenQueries(arrive, decode, 0)


def take_records(queries: OpenQueries, seconds: float) -> list[DataRecord]:
    """The records of one call."""
    taken = [record for _, record in queries.take(seconds)]
    assert all(isinstance(record, DataRecord) for record in taken)
    return cast("list[DataRecord]", taken)


def take_timestamps(queries: OpenQueries, count: int) -> list[int]:
    """The commit timestamps of the next changes."""
    timestamps: list[int] = []
    while len(timestamps) < count:
        batch = take_records(queries, SECONDS)
        assert batch, f"{timestamps} came, and nothing else"
        timestamps += [record.commit_timestamp for record in batch]
    return timestamps


def settle(queries: OpenQueries, watermark: int) -> None:
    """Until the watermark is there."""
    for _ in range(SECONDS * 100):
        assert queries.watermark <= watermark
        if queries.watermark == watermark:
            return
        assert queries.take(0.01) == []
    raise AssertionError(f"the watermark stays at {queries.watermark}")


def test_a_stream_that_ends_without_child_records_is_opened_again_without_repetition() -> None:
    script = Script(
        [ChildPartition("a", (), 1)],
        {"a": [[data(5), data(7, "x")], [data(7, "x"), data(7, "y"), data(9)], [data(9)]]},
    )
    queries = open_queries(script.read)
    assert take_timestamps(queries, 4) == [5, 7, 7, 9]
    assert [start for _, start in script.opened][:2] == [1, 7]
    queries.close()
    script.done.set()


def test_a_merge_whose_parents_end_at_different_times_waits_for_the_later() -> None:
    merged = ChildPartition("c", ("a", "b"), 10)
    gate = threading.Event()

    class Gated(Script):
        def read(self, token: str | None, start: int) -> Iterator[Record]:
            for record in super().read(token, start):
                if token == "b":
                    gate.wait(SECONDS)
                yield record

    script = Gated(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {"a": [[data(4), merged]], "b": [[data(8), merged]], "c": [[data(12)]]},
    )
    queries = open_queries(script.read)
    assert take_timestamps(queries, 1) == [4]
    assert queries.take(0.2) == []
    assert "c" not in [token for token, _ in script.opened]
    assert queries.watermark == 0
    gate.set()
    assert take_timestamps(queries, 2) == [8, 12]
    queries.close()
    script.done.set()


def test_a_child_that_both_parents_name_is_read_once() -> None:
    merged = ChildPartition("c", ("a", "b"), 10)
    script = Script(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {"a": [[merged, merged]], "b": [[merged]], "c": [[data(10)]]},
    )
    queries = open_queries(script.read)
    assert take_timestamps(queries, 1) == [10]
    assert [token for token, _ in script.opened].count("c") == 1
    queries.close()
    script.done.set()


def test_in_a_quiet_database_the_watermark_goes_on() -> None:
    script = Script(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {"a": [[Heartbeat(20)]], "b": [[Heartbeat(30)]]},
    )
    queries = open_queries(script.read)
    settle(queries, 20)
    queries.close()
    script.done.set()


def test_the_watermark_waits_for_a_partition_that_lags_and_for_one_that_has_not_begun() -> None:
    script = Script(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {"a": [[data(50), Heartbeat(60)]], "b": [[Heartbeat(10)]]},
    )
    queries = open_queries(script.read)
    assert take_timestamps(queries, 1) == [50]
    settle(queries, 10)
    queries.close()
    script.done.set()
    waiting = Script(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {
            "a": [[ChildPartition("c", ("a", "x"), 15)]],
            "b": [[Heartbeat(40)]],
            "c": [[Heartbeat(70)]],
        },
    )
    again = open_queries(waiting.read)
    settle(again, 40)
    again.close()
    waiting.done.set()


def test_a_parent_that_is_still_to_be_named_is_waited_for() -> None:
    """``c`` comes of ``a`` and of ``z``, which ``b`` names later: ``z`` is read before ``c``."""
    gate = threading.Event()

    class Gated(Script):
        def read(self, token: str | None, start: int) -> Iterator[Record]:
            for record in super().read(token, start):
                if token == "b":
                    gate.wait(SECONDS)
                yield record

    merged = ChildPartition("c", ("a", "z"), 20)
    script = Gated(
        [ChildPartition("a", (), 1), ChildPartition("b", (), 1)],
        {
            "a": [[merged]],
            "b": [[data(9), ChildPartition("z", ("b",), 10)]],
            "z": [[data(15), merged]],
            "c": [[data(25)]],
        },
    )
    queries = open_queries(script.read)
    assert queries.take(0.2) == []
    gate.set()
    assert take_timestamps(queries, 3) == [9, 15, 25]
    queries.close()
    script.done.set()


def test_what_a_query_ends_with_is_raised() -> None:
    class Broken(Script):
        def read(self, token: str | None, start: int) -> Iterator[Record]:
            if token is not None:
                raise ConnectionError("gone")
            yield from super().read(token, start)

    queries = open_queries(Broken([ChildPartition("a", (), 1)], {}).read)
    try:
        for _ in range(100):
            queries.take(0.1)
    except ConnectionError:
        return
    raise AssertionError("the error was swallowed")


def test_a_backlog_of_large_records_is_neither_read_ahead_nor_taken_whole() -> None:
    size, count = 5_000, 40
    read = 0

    class Counted(Script):
        def read(self, token: str | None, start: int) -> Iterator[Record]:
            nonlocal read
            for record in super().read(token, start):
                read += isinstance(record, DataRecord)
                yield record

    backlog: list[Record] = [data(at, changes=size) for at in range(1, count + 1)]
    script = Counted([ChildPartition("a", (), 1)], {"a": [backlog]})
    queries = open_queries(script.read)
    timestamps: list[int] = []
    while len(timestamps) < count:
        batch = take_records(queries, SECONDS)
        timestamps += [record.commit_timestamp for record in batch]
        taken = sum(len(record.mods) for record in batch) * CHANGE_BYTES
        assert 0 < taken < TAKEN_BYTES_MAX + size * CHANGE_BYTES
        # In the queue, one that waits for room in it, and those of this batch.
        waiting = (read - len(timestamps) - 1) * size * CHANGE_BYTES
        assert waiting < QUEUE_BYTES_MAX + size * CHANGE_BYTES
    assert timestamps == list(range(1, count + 1))
    queries.close()
    script.done.set()
