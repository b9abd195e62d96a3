"""Judges of a change stream's output: every version of every row, deletes too, exactly in order.

Unlike polling, a window holds all that happened in it. Its lines may come in any order of rows, and
in another one when it comes again after a crash; the versions of a row come in their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Protocol, TypeAlias

from conformance.judges.polled_windows import find_misnamed, find_rewound
from conformance.truth import History, Key, Row, Truth, live_rows, net_writes


class Owned(Protocol):
    """A version of a row, with the id of its transaction."""

    @property
    def row(self) -> Row: ...
    @property
    def at(self) -> int: ...
    @property
    def transaction(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A change as it was delivered; timestamps in microseconds since 1970. ``old`` and ``new`` name
    the versions; ``old`` is None for an INSERT, ``new`` for a DELETE."""

    id: str
    table: str
    key: Key
    at: int
    operation: str
    old: str | None
    new: str | None
    transaction: str
    start: int
    end: int

    @property
    def row(self) -> Row:
        return self.table, self.key


@dataclass(frozen=True, slots=True)
class Mod:
    """What a transaction left of a row."""

    operation: str
    old: str | None
    new: str | None


Mods: TypeAlias = dict[tuple[Row, int], Mod]
"""Every mod by its row and commit timestamp, those of a row in their order."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The lines of one window, those of deliveries that were cut off first.

    ``whole``: the next window begins at or after its end, or the stream was drained after it.
    """

    start: int
    end: int
    lines: tuple[Line, ...]
    whole: bool


def mods_of(history: History, tables: Sequence[str], begin: int = 0) -> Mods:
    """What a stream that begins after a timestamp has to deliver."""
    mods: Mods = {}
    for row, states in history.items():
        old: str | None = None
        for state in states:
            if row[0] in tables and state.at > begin:
                mods[row, state.at] = Mod(operation(old, state.version), old, state.version)
            old = state.version
    return mods


def operation(old: str | None, new: str | None) -> str:
    """What makes one version of another."""
    if new is None:
        return "DELETE"
    return "INSERT" if old is None else "UPDATE"


def deliveries(lines: Sequence[Line]) -> list[Delivery]:
    """The output by windows."""
    parts = [tuple(part) for _, part in groupby(lines, key=lambda line: (line.start, line.end))]
    whole = [following[0].start >= part[0].end for part, following in pairwise(parts)]
    return [
        Delivery(part[0].start, part[0].end, part, ok)
        for part, ok in zip(parts, [*whole, True], strict=False)
    ]


def mods_in_window(mods: Mods, start: int, end: int) -> set[tuple[Row, int]]:
    """What the window ``(start, end]`` has to hold."""
    return {(row, at) for row, at in mods if start < at <= end}


def last_delivery(window: Delivery, mods: Mods) -> tuple[Line, ...]:
    """The lines of the delivery that was not cut off: so many at the end as the window has mods."""
    count = len(mods_in_window(mods, window.start, window.end))
    return window.lines[max(len(window.lines) - count, 0) :]


def find_invented(lines: Sequence[Line], mods: Mods, *, old_values: bool) -> Iterator[str]:
    """Every line tells what happened to its row at that commit timestamp, inside of its window."""
    for line in lines:
        mod = mods.get((line.row, line.at))
        if mod is None:
            yield f"{line.row} at {line.at}: nothing happened"
        elif (line.operation, line.new) != (mod.operation, mod.new):
            yield f"{line.row} at {line.at}: {line.operation} to {line.new!r} was {mod}"
        elif old_values and line.old != mod.old:
            yield f"{line.row} at {line.at}: the version before is {line.old!r}, it was {mod.old!r}"
        if not line.start < line.at <= line.end:
            yield f"{line.row} at {line.at} lies outside of ({line.start}, {line.end}]"


def find_incomplete(windows: Sequence[Delivery], mods: Mods) -> Iterator[str]:
    """A window holds every mod in it, once."""
    for window in windows:
        if not window.whole:
            continue
        counts = Counter((line.row, line.at) for line in last_delivery(window, mods))
        for row, at in sorted(mods_in_window(mods, window.start, window.end), key=repr):
            if counts[row, at] != 1:
                window_name = f"({window.start}, {window.end}]"
                yield f"{row} at {at} came {counts[row, at]} times in the window {window_name}"


def find_disordered(windows: Sequence[Delivery], mods: Mods) -> Iterator[str]:
    """After a version of a row comes the next one, or the window's first one when it came again."""
    before = predecessors(mods)
    for window in windows:
        newest: dict[Row, int] = {}
        for line in window.lines:
            previous = before.get((line.row, line.at), 0)
            if previous > window.start and newest.get(line.row) != previous:
                yield f"{line.row}: {line.at} after {newest.get(line.row)}, not after {previous}"
            newest[line.row] = line.at


def predecessors(mods: Mods) -> dict[tuple[Row, int], int]:
    """The commit timestamp of the mod of the same row before each."""
    stamps: dict[Row, list[int]] = defaultdict(list)
    for row, at in mods:
        stamps[row].append(at)
    return {
        (row, at): last for row, timestamps in stamps.items() for last, at in pairwise(timestamps)
    }


def find_repeated(windows: Sequence[Delivery]) -> Iterator[str]:
    """What came in a whole window comes in no other one."""
    seen: set[tuple[Row, int]] = set()
    for window in windows:
        here = {(line.row, line.at) for line in window.lines}
        for row, at in sorted(seen & here, key=repr):
            yield f"{row} at {at} came again in the window ({window.start}, {window.end}]"
        if window.whole:
            seen |= here


def find_needless(windows: Sequence[Delivery], crashes: int) -> Iterator[str]:
    """Windows do not come again more often than they were cut off."""
    again = 0
    for window in windows:
        times = Counter((line.row, line.at) for line in window.lines)
        again += max(times.values()) - window.whole
    if again > crashes:
        yield f"windows came again {again} times after {crashes} crashes"


def find_skipped(windows: Sequence[Delivery], mods: Mods, begin: int) -> Iterator[str]:
    """Nothing happened between two windows, before the first one or after the last one."""
    position = begin
    for window in windows:
        for row, at in sorted(mods_in_window(mods, position, window.start), key=repr):
            yield f"{row} at {at} lies between the windows ({position}, {window.start}]"
        position = window.end if window.whole else max(position, window.start)
    for row, at in sorted((row, at) for row, at in mods if at > position):
        yield f"{row} at {at} was never delivered"


def find_torn(lines: Sequence[Owned], truth: Truth) -> Iterator[str]:
    """All mods of a transaction have the same transaction id, and no other transaction has it.

    With ``find_incomplete`` it follows that they come in one window.
    """
    owners = owners_of(truth)
    names: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for line in lines:
        number = owners.get((line.row, line.at))
        if number is None:
            continue
        if names.setdefault(number, line.transaction) != line.transaction:
            yield f"{line.row} at {line.at}: {line.transaction} is also {names[number]}"
        if numbers.setdefault(line.transaction, number) != number:
            yield f"{line.row} at {line.at}: {line.transaction} is another transaction's id"


def owners_of(truth: Truth) -> dict[tuple[Row, int], int]:
    """Which commit, by number, wrote a version, or deleted it with its parent."""
    history = truth.history()
    known = {(row, state.at) for row, states in history.items() for state in states}
    return {
        (row, commit.at): number
        for number, commit in enumerate(truth.commits)
        for row in net_writes(commit, history)
        if (row, commit.at) in known
    }


def find_scattered(windows: Sequence[Delivery], mods: Mods) -> Iterator[str]:
    """With the option ``transactions`` a transaction's lines come together, in commit order."""
    for window in windows:
        lines = last_delivery(window, mods) if window.whole else ()
        for line, following in pairwise(lines):
            if following.at < line.at:
                yield f"{following.row} at {following.at} comes after {line.row} at {line.at}"
        runs = Counter(name for name, _ in groupby(lines, key=lambda line: line.transaction))
        for name, count in runs.items():
            if count > 1:
                yield f"transaction {name} comes in {count} parts"


def find_differences(
    windows: Sequence[Delivery],
    mods: Mods,
    snapshots: Mapping[int, Mapping[Row, str]],
    first: Mapping[Row, str],
) -> Iterator[str]:
    """At the end of a whole window the tables, rebuilt from ``first`` and the output, equal
    Spanner's, which ``snapshots`` has for some of the ends."""
    rebuilt = dict(first)
    for window in windows:
        if not window.whole:
            continue
        for line in last_delivery(window, mods):
            if line.new is None:
                rebuilt.pop(line.row, None)
            else:
                rebuilt[line.row] = line.new
        there = snapshots.get(window.end, rebuilt)
        for row in sorted(there.keys() | rebuilt.keys(), key=repr):
            if there.get(row) != rebuilt.get(row):
                yield f"{row} is {there.get(row)!r} at {window.end}, rebuilt {rebuilt.get(row)!r}"


def find_problems(
    lines: Sequence[Line],
    truth: Truth,
    tables: Sequence[str],
    *,
    begin: int = 0,
    old_values: bool = True,
    transactions: bool = False,
    snapshots: Mapping[int, Mapping[Row, str]] | None = None,
    crashes: int | None = None,
) -> list[str]:
    """Everything that is wrong with an output of a stream that began after ``begin``.

    ``old_values``: the stream captures them; ``transactions``: the option was set; ``snapshots``:
    the tables at the ends of some windows; ``crashes``: how many, where that is known.
    """
    history = truth.history()
    mods = mods_of(history, tables, begin)
    windows = deliveries(lines)
    there = live_rows(history, begin)
    first = {row: str(state.version) for row, state in there.items() if row[0] in tables}
    return [
        *find_invented(lines, mods, old_values=old_values),
        *find_misnamed(lines),
        *find_incomplete(windows, mods),
        *find_disordered(windows, mods),
        *find_repeated(windows),
        *(find_needless(windows, crashes) if crashes is not None else ()),
        *find_rewound(windows),
        *find_skipped(windows, mods, begin),
        *find_torn(lines, truth),
        *(find_scattered(windows, mods) if transactions else ()),
        *find_differences(windows, mods, snapshots or {}, first),
    ]
