"""Partitions that live on while their keys move: the order in which they are read, without a
server."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from watcher.captures.change_stream.moving_keys import MovingKeys, read_moving_keys
from watcher.captures.change_stream.record_values import (
    DataRecord,
    Heartbeat,
    MovingRecord,
    PartitionEnd,
    PartitionMove,
    PartitionStart,
)
from watcher.captures.change_stream.windows import SPAN_MICROS_MIN, SPANS_MAX, divide_window
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window

KeyChange = tuple[int, int]
"""A key, and when it changed."""

FULL = 12
"""More partitions are not made."""


def change(key: int, at: int) -> DataRecord:
    """A change of a key in a transaction of its own."""
    return DataRecord(
        commit_timestamp=at,
        sequence="00000000",
        transaction_id=f"{key} {at}",
        last_in_partition=True,
        shape=Shape(str(key), (), ()),
        mods=(),
        operation=Operation.UPDATE,
        captured=ValueCapture.NEW_ROW,
        records_in_transaction=1,
        partitions_in_transaction=1,
        tag="",
        system=False,
    )


@dataclass
class Stream:
    """A stream as Spanner keeps it: who has which key, and what each partition's records say."""

    owners: dict[int, str]
    spans: dict[str, tuple[int, int | None]]
    records: dict[str, list[MovingRecord]] = field(default_factory=dict)
    changes: list[KeyChange] = field(default_factory=list)
    opened: int = 0
    names_ended: bool = False
    """Whether partitions that end at a timestamp are still named as active there."""

    def write(self, token: str, record: MovingRecord) -> None:
        self.records.setdefault(token, []).append(record)

    def change(self, key: int, at: int) -> None:
        self.changes.append((key, at))
        self.write(self.owners[key], change(key, at))

    def begin(self, at: int, announcers: list[str]) -> str:
        """A new partition, which others announce: one, or each that it takes keys from."""
        token = f"p{len(self.spans)}"
        self.spans[token] = (at, None)
        for each in announcers:
            self.write(each, PartitionStart(at, "0", (token,)))
        return token

    def move(self, at: int, moves: dict[int, str]) -> None:
        """Keys go to other partitions, all at one timestamp, as one event a partition."""
        sources: dict[str, set[str]] = {}
        for key, taker in moves.items():
            giver = self.owners[key]
            sources.setdefault(taker, set()).add(giver)
            sources.setdefault(giver, set())
        for token, givers in sources.items():
            self.write(token, PartitionMove(at, "1", tuple(sorted(givers - {token}))))
        self.owners |= moves

    def end(self, token: str, at: int) -> None:
        self.spans[token] = (self.spans[token][0], at)
        self.write(token, PartitionEnd(at, "2"))

    def list_active(self, at: int) -> list[str]:
        """The partitions that began at or before a timestamp and have not ended by it."""
        return [t for t, (b, e) in self.spans.items() if b <= at and (e is None or e > at)]

    def list_named(self, at: int) -> list[str]:
        """Those that a query without a token names."""
        ended = [t for t, (_, e) in self.spans.items() if e == at and self.names_ended]
        return self.list_active(at) + ended

    def query(
        self, function: str, token: str | None, start: int, end: int
    ) -> Generator[MovingRecord]:
        """As Spanner answers; both ends are inside."""
        assert function == "S"
        self.opened += 1
        if token is None:
            yield PartitionStart(start, "0", tuple(self.list_named(start)))
            return
        began, ended = self.spans[token]
        assert began <= start, "refused by Spanner"
        assert ended is None or start <= ended, "refused by Spanner"
        sent = 0
        for record in self.records.get(token, []):
            at = record.commit_timestamp if isinstance(record, DataRecord) else time_of(record)
            if start <= at <= end:
                sent += 1
                yield record
        if not sent:
            yield Heartbeat(end)


def time_of(record: MovingRecord) -> int:
    assert not isinstance(record, DataRecord)
    return record.timestamp


KEYS = 8
STEPS = st.lists(
    st.sampled_from(["change", "split", "merge", "move", "swap", "end"]), min_size=1, max_size=25
)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Keys that change and move about; changes share the timestamp of a move now and then."""
    roots = draw(st.integers(1, 3))
    stream = Stream(
        {key: f"p{key % roots}" for key in range(KEYS)},
        {f"p{n}": (1, None) for n in range(roots)},
        names_ended=draw(st.booleans()),
    )
    choice = draw(st.randoms(use_true_random=False))
    at = 2
    for step in draw(STEPS):
        at += 1
        for key in choice.sample(range(KEYS), choice.choice([0, 0, 2])):
            stream.change(key, at)
        at += choice.choice([0, 1])
        act(stream, step, at, choice)
    for key in range(KEYS):
        stream.change(key, at + 1)
    return stream


def act(stream: Stream, step: str, at: int, choice: random.Random) -> None:
    """One step of Spanner's load balancing. Keys that changed at this very timestamp stay."""
    free = [k for k in range(KEYS) if (k, at) not in stream.changes]
    active = stream.list_active(at)
    if step in ("split", "merge") and len(active) < FULL:
        givers = choice.sample(active, 1 if step == "split" else min(2, len(active)))
        announcers = givers if choice.random() < 0.5 else givers[:1]
        taker = stream.begin(at, announcers)
        stream.move(at, {k: taker for k in free if stream.owners[k] in givers and k % 2})
    elif step == "move":
        stream.move(at, {choice.choice(free): choice.choice(active)})
    elif step == "swap":
        first, second = choice.sample(free, 2)
        stream.move(at, {first: stream.owners[second], second: stream.owners[first]})
    elif step == "end" and len(active) > 1:
        token, taker = choice.sample(active, 2)
        mine = [k for k, owner in stream.owners.items() if owner == token]
        if all(k in free for k in mine):
            stream.move(at, dict.fromkeys(mine, taker))
            stream.end(token, at)


def read(stream: Stream, start: int, end: int) -> list[KeyChange]:
    """The changes of a window, in the order in which they come."""
    records = read_moving_keys(stream.query, ["S"], start, end)
    return [(int(r.shape.table), r.commit_timestamp) for _, r in records]


@given(streams(), st.data())
def test_every_change_comes_once_and_those_of_a_key_in_order(
    stream: Stream, data: st.DataObject
) -> None:
    last = max(at for _, at in stream.changes)
    cuts = sorted(data.draw(st.sets(st.integers(1, last - 1), max_size=4)))
    ends = [1, *(c for c in cuts if c > 1), last]
    for start, end in pairwise(ends):
        changes = read(stream, start, end)
        assert sorted(changes) == sorted(c for c in stream.changes if start < c[1] <= end)
        for key in range(KEYS):
            times = [at for k, at in changes if k == key]
            assert times == sorted(times)


def test_two_partitions_that_exchange_keys_at_one_timestamp_do_not_wait_for_ever() -> None:
    stream = Stream({0: "p0", 1: "p1"}, {"p0": (1, None), "p1": (1, None)})
    for key in (0, 1):
        stream.change(key, 3)
    stream.move(5, {0: "p1", 1: "p0"})
    for key in (0, 1):
        stream.change(key, 7)
    changes = read(stream, 1, 9)
    assert sorted(changes[:2]) == [(0, 3), (1, 3)]
    assert sorted(changes[2:]) == [(0, 7), (1, 7)]


def test_a_move_between_functions_is_waited_for_whatever_tokens_both_have() -> None:
    """Both functions have a partition p0; the key goes from p1 of one to p0 of the other."""
    giver = Stream({0: "p1", 1: "p0"}, {"p0": (1, None), "p1": (1, None)})
    taker = Stream({2: "p0"}, {"p0": (1, None)})
    giver.change(0, 3)
    giver.write("p1", PartitionMove(5, "1", ()))
    giver.change(1, 8)
    taker.write("p0", PartitionMove(5, "1", ("p1",)))
    taker.owners[0] = "p0"
    taker.change(0, 7)
    streams = {"eu": giver, "us": taker}

    def query(function: str, token: str | None, start: int, end: int) -> Generator[MovingRecord]:
        return streams[function].query("S", token, start, end)

    for functions in (["eu", "us"], ["us", "eu"]):
        records = read_moving_keys(query, functions, 1, 9)
        changes = [(int(r.shape.table), r.commit_timestamp) for _, r in records]
        assert sorted(changes) == [(0, 3), (0, 7), (1, 8)]
        assert changes.index((0, 3)) < changes.index((0, 7))
    alone = [r.commit_timestamp for _, r in read_moving_keys(query, ["us"], 1, 9)]
    assert alone == [7]


def test_a_partition_that_ends_right_after_the_window_begins_is_read() -> None:
    stream = Stream({0: "p0", 1: "p1"}, {"p0": (1, None), "p1": (1, None)})
    stream.change(0, 6)
    stream.move(6, {0: "p1"})
    stream.end("p0", 6)
    stream.change(0, 8)
    assert read(stream, 5, 9) == [(0, 6), (0, 8)]


def test_a_partition_that_has_not_to_wait_is_read_by_one_query() -> None:
    stream = Stream({0: "p0", 1: "p1"}, {"p0": (1, None), "p1": (1, None)})
    for at in range(2, 40):
        stream.change(at % 2, at)
    assert len(read(stream, 1, 50)) == 38
    assert stream.opened == 3


def test_a_long_window_is_divided_without_a_gap() -> None:
    for length in (1, SPAN_MICROS_MIN - 1, 3 * SPAN_MICROS_MIN + 7, 100 * SPAN_MICROS_MIN):
        spans = divide_window(Window(5, 5 + length))
        assert len(spans) == max(1, min(SPANS_MAX, length // SPAN_MICROS_MIN))
        assert (spans[0].start, spans[-1].end) == (5, 5 + length)
        for before, after in pairwise(spans):
            assert before.end == after.start


class CountedTimestamp(int):
    """Counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        CountedTimestamp.compared += 1
        return int(self) < int(other)

    def __eq__(self, other: object) -> bool:
        CountedTimestamp.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))


def test_the_next_partition_is_found_without_looking_at_all_of_them() -> None:
    moving, count = MovingKeys(), 2_000
    for number in range(count):
        at = CountedTimestamp(1 + number * 7 % count)
        moving.announce("S", PartitionStart(at, "1", (f"p{number}",)))
    CountedTimestamp.compared = 0
    taken = []
    while (progress := moving.take_next()) is not None:
        taken.append(int(progress.at))
        moving.finish(progress)
    assert taken == sorted(taken)
    assert len(taken) == count
    assert CountedTimestamp.compared < 100 * count
