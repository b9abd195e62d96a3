"""Judges of a poller's output: each reads the lines that a watcher wrote, and the truth.

All tables of a watcher are read at one timestamp. A delivery of a window is *complete* when the
next one begins at or after its end (its position was saved then), or when the watcher was drained
after it. One that was cut off comes again, and is held to everything but being whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Protocol

from conformance.truth import History, Key, Row, Truth, live_rows, state_at


class Named(Protocol):
    """A version of a row, under an id."""

    @property
    def id(self) -> str: ...
    @property
    def row(self) -> Row: ...
    @property
    def at(self) -> int: ...


class Versioned(Protocol):
    """A version of a row."""

    @property
    def row(self) -> Row:
        """Whose."""
        ...

    @property
    def at(self) -> int:
        """Its commit timestamp."""
        ...


class Span(Protocol):
    """A window."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A change as the watcher wrote it; timestamps in microseconds since 1970."""

    id: str
    table: str
    key: Key
    at: int
    version: str
    start: int
    end: int

    @property
    def row(self) -> Row:
        return self.table, self.key


@dataclass(frozen=True, slots=True)
class Written:
    """A version of a row; ``version`` is None for a row that is gone."""

    at: int
    row: Row
    version: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """The lines of one window, as far as they came. ``earlier``: those that had come of the same
    window when it was cut off, just before."""

    start: int
    end: int
    lines: tuple[Line, ...]
    complete: bool
    earlier: tuple[Line, ...] = ()

    @property
    def versions(self) -> set[tuple[Row, int]]:
        """What came of the window, in this delivery or in one just before it."""
        return {(line.row, line.at) for line in (*self.earlier, *self.lines)}


def deliveries(lines: Sequence[Line]) -> list[Delivery]:
    """The output by windows. One that comes again begins, at the latest, with the first row that
    has come before: its rows may come in another order than at first."""
    parts: list[list[Line]] = []
    seen: set[tuple[Row, int]] = set()
    for line in lines:
        version = (line.row, line.at)
        if not parts or span_of(parts[-1]) != (line.start, line.end) or version in seen:
            parts.append([])
            seen = set()
        parts[-1].append(line)
        seen.add(version)
    following = [part[0].start for part in parts[1:]]
    made: list[Delivery] = []
    for part, start in zip(parts, [*following, None], strict=False):
        begin, end = span_of(part)
        before = made[-1] if made and (made[-1].start, made[-1].end) == (begin, end) else None
        earlier = (*before.earlier, *before.lines) if before is not None else ()
        made.append(Delivery(begin, end, tuple(part), start is None or start >= end, earlier))
    return made


def span_of(part: Sequence[Line]) -> tuple[int, int]:
    """The window of lines that all belong to it."""
    return part[0].start, part[0].end


def settle_windows(
    windows: Sequence[Delivery], history: History, tables: Sequence[str]
) -> list[Delivery]:
    """The same, but a window that lacks rows and may have come again without any is not complete:
    when it was cut off, and all that it held was deleted before it could come again."""
    written = order_versions(history, tables)
    starts = [window.start for window in windows[1:]]
    last = max((states[-1].at for states in history.values()), default=0)
    return [
        replace(window, complete=False)
        if window.complete and may_have_vanished(window, following, written)
        else window
        for window, following in zip(windows, [*starts, last], strict=False)
    ]


def may_have_vanished(window: Delivery, following: int, written: Sequence[Written]) -> bool:
    """Whether a window without rows, from the start of this one, fits before the next one."""
    if newest_between(written, window.start, window.end) <= window.versions:
        return False
    stamps = {each.at for each in written if window.end < each.at <= following}
    return any(not newest_between(written, window.start, at) for at in stamps)


def find_invented(lines: Sequence[Line], history: History) -> Iterator[str]:
    """Every delivered version existed, at that commit timestamp, inside of its window."""
    known = {(row, state.at): state.version for row, states in history.items() for state in states}
    for line in lines:
        if known.get((line.row, line.at)) != line.version:
            yield f"{line.row} at {line.at}: {line.version!r} was never written"
        if not line.start < line.at <= line.end:
            yield f"{line.row} at {line.at} lies outside of ({line.start}, {line.end}]"


def find_disordered(lines: Sequence[Versioned]) -> Iterator[str]:
    """The versions of a row never go back."""
    newest: dict[Row, Versioned] = {}
    for line in lines:
        before = newest.get(line.row)
        if before is not None and line.at < before.at:
            yield f"{line.row}: {line.at} after {before.at}"
        newest[line.row] = line


def find_misnamed(lines: Sequence[Named]) -> Iterator[str]:
    """A version has the same id every time, and no other version has it."""
    names: dict[tuple[Row, int], str] = {}
    owners: dict[str, tuple[Row, int]] = {}
    for line in lines:
        version = (line.row, line.at)
        if names.setdefault(version, line.id) != line.id:
            yield f"{line.row} at {line.at} has two ids: {names[version]} and {line.id}"
        if owners.setdefault(line.id, version) != version:
            yield f"{line.row} at {line.at} and {owners[line.id]} have the same id"


def find_repeated(windows: Sequence[Delivery]) -> Iterator[str]:
    """A version comes again only when its window was cut off."""
    seen: set[tuple[Row, int]] = set()
    for window in windows:
        here: set[tuple[Row, int]] = set()
        for line in window.lines:
            version = (line.row, line.at)
            if version in seen or version in here:
                yield f"{line.row} at {line.at} came twice"
            here.add(version)
        if window.complete:
            seen |= window.versions


def find_needless(windows: Sequence[Delivery], crashes: int) -> Iterator[str]:
    """Not more windows come again than were cut off."""
    again = [window.start for window in windows if not window.complete]
    if len(again) > crashes:
        yield f"{len(again)} windows came again after {crashes} crashes, from {again}"


def find_rewound(windows: Sequence[Span]) -> Iterator[str]:
    """No window begins before the one that it follows; ``find_skipped`` judges gaps."""
    for window, following in pairwise(windows):
        if following.start < window.start:
            yield (
                f"the window ({following.start}, {following.end}] follows"
                f" ({window.start}, {window.end}]"
            )


def find_gaps(windows: Sequence[Span]) -> Iterator[str]:
    """For who knows every window, also those without rows: each begins where one has ended."""
    for window, following in pairwise(windows):
        if following.start != window.end:
            yield f"a window starts at {following.start}, the one before it ended at {window.end}"


def find_foreign(
    windows: Sequence[Delivery], history: History, tables: Sequence[str]
) -> Iterator[str]:
    """A window holds nothing but the newest version of each row at its end."""
    written = order_versions(history, tables)
    for window in windows:
        expected = newest_between(written, window.start, window.end)
        for row, at in sorted({(line.row, line.at) for line in window.lines} - expected, key=repr):
            yield f"{row} at {at} is not its state at the end of ({window.start}, {window.end}]"


def find_missing(
    windows: Sequence[Delivery], history: History, tables: Sequence[str]
) -> Iterator[str]:
    """A window holds the newest version of every row that was written in it and lives at its
    end."""
    written = order_versions(history, tables)
    for window in windows:
        expected = newest_between(written, window.start, window.end) if window.complete else set()
        missing = expected - {(line.row, line.at) for line in window.lines}
        # It may have begun with these, behind those that came before it was cut off.
        first = window.earlier[max(len(window.earlier) - len(missing), 0) :]
        for row, at in sorted(missing - {(line.row, line.at) for line in first}, key=repr):
            yield f"{row} at {at} is missing from the window ({window.start}, {window.end}]"


def find_skipped(
    windows: Sequence[Delivery], history: History, tables: Sequence[str]
) -> Iterator[str]:
    """Between two windows with rows, before the first and after the last, there are only windows
    without rows: nothing that was written there is still the newest at the next one's start."""
    written = order_versions(history, tables)
    position = 0
    for window in windows:
        if window.start > position:
            for row, at in newest_between(written, position, window.start):
                yield f"{row} at {at} lies between the windows ({position}, {window.start}]"
        position = window.end if window.complete else max(position, window.start)
    last = max((states[-1].at for states in history.values()), default=position)
    for row, at in newest_between(written, position, max(last, position)):
        yield f"{row} at {at}, the newest version, was never delivered"


def find_torn(windows: Sequence[Delivery], truth: Truth) -> Iterator[str]:
    """What is delivered of a transaction in complete windows is delivered in one window."""
    ends = {version: w.end for w in windows if w.complete for version in w.versions}
    for commit in truth.commits:
        versions = [(write.row, commit.at) for write in commit.writes]
        reached = {ends[version] for version in versions if version in ends}
        if len(reached) > 1:
            yield f"the transaction at {commit.at} is in windows that end at {sorted(reached)}"


def find_scattered(windows: Sequence[Delivery]) -> Iterator[str]:
    """With the option ``transactions`` a window comes in the order of its commit timestamps."""
    for window in windows:
        for line, following in pairwise(window.lines):
            if following.at < line.at:
                yield f"{following.row} at {following.at} comes after {line.row} at {line.at}"


def find_differences(
    windows: Sequence[Delivery],
    history: History,
    tables: Sequence[str],
    snapshots: Mapping[int, Mapping[Row, str]],
) -> Iterator[str]:
    """At the end of a complete window the tables, rebuilt from the output, equal Spanner's, which
    ``snapshots`` has for some of the ends.

    Polling sees no deletes: what is rebuilt and not stored must be known to be gone. The truth is
    held to Spanner's tables, too, so that nothing is judged by a log with holes.
    """
    rebuilt: dict[Row, str] = {}
    for window in windows:
        if not window.complete:
            continue
        rebuilt |= {line.row: line.version for line in (*window.earlier, *window.lines)}
        there = snapshots.get(window.end)
        if there is None:
            continue
        known = live_rows(history, window.end)
        if {row: known[row].version for row in known if row[0] in tables} != there:
            yield f"the writers' log is not what Spanner has at {window.end}"
        for row, version in there.items():
            if rebuilt.get(row) != version:
                yield f"{row} is {version!r} at {window.end}, rebuilt it is {rebuilt.get(row)!r}"
        for row in rebuilt.keys() - there.keys():
            state = state_at(history.get(row, []), window.end)
            if state is None or state.version is not None:
                yield f"{row} is rebuilt but is not there at {window.end}, and was not deleted"


def order_versions(history: History, tables: Sequence[str]) -> list[Written]:
    """The versions of the rows of some tables, in the order of their commits."""
    versions = [
        Written(state.at, row, state.version)
        for row, states in history.items()
        if row[0] in tables
        for state in states
    ]
    return sorted(versions, key=attrgetter("at"))


def newest_between(written: Sequence[Written], start: int, end: int) -> set[tuple[Row, int]]:
    """What a window ``(start, end]`` has to hold; ``written`` is in the order of the commits."""
    first = bisect_right(written, start, key=attrgetter("at"))
    after = bisect_right(written, end, key=attrgetter("at"))
    newest = {each.row: each for each in written[first:after]}
    return {(row, each.at) for row, each in newest.items() if each.version is not None}


def find_problems(
    lines: Sequence[Line],
    truth: Truth,
    tables: Sequence[str],
    *,
    transactions: bool = False,
    snapshots: Mapping[int, Mapping[Row, str]] | None = None,
    crashes: int | None = None,
) -> list[str]:
    """Everything that is wrong with an output. ``transactions``: the option was set; ``snapshots``:
    the tables at the ends of some windows; ``crashes``: how many, where that is known."""
    history = truth.history()
    delivered = deliveries(lines)
    windows = settle_windows(delivered, history, tables)
    return [
        *find_invented(lines, history),
        *find_disordered(lines),
        *find_misnamed(lines),
        *find_repeated(windows),
        *(find_needless(delivered, crashes) if crashes is not None else ()),
        *find_rewound(windows),
        *find_foreign(windows, history, tables),
        *find_missing(windows, history, tables),
        *find_skipped(windows, history, tables),
        *find_torn(windows, truth),
        *(find_scattered(windows) if transactions else ()),
        *find_differences(windows, history, tables, snapshots or {}),
    ]
