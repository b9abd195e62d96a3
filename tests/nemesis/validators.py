"""Judges of the output alone: each reads the lines that a watcher wrote, and the truth.

All tables of a watcher are read at one timestamp. A window is *complete* when the next one begins
at or after its end (its position was saved then), or when the watcher was drained after it. Only
complete windows promise anything; a window that a crash cut off comes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nemesis.truth import Key, Row, Truth, state_at


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


def complete(lines: Sequence[Line]) -> list[bool]:
    """Which lines belong to a window that was finished. The last window was: drained."""
    found = [True] * len(lines)
    for number in range(len(lines) - 2, -1, -1):
        line, following = lines[number], lines[number + 1]
        same = (line.start, line.end) == (following.start, following.end)
        found[number] = found[number + 1] if same else following.start >= line.end
    return found


def invented(lines: Sequence[Line], truth: Truth) -> Iterator[str]:
    """Every delivered version existed, at that commit timestamp, inside of its window."""
    known = {
        (write.row, commit.at): write.version for commit in truth.commits for write in commit.writes
    }
    for line in lines:
        if known.get((line.row, line.at)) != line.version:
            yield f"{line.row} at {line.at}: {line.version!r} was never written"
        if not line.start < line.at <= line.end:
            yield f"{line.row} at {line.at} lies outside of ({line.start}, {line.end}]"


def disordered(lines: Sequence[Line]) -> Iterator[str]:
    """The versions of a row never go back; the same one comes again only under the same id."""
    newest: dict[Row, Line] = {}
    for line in lines:
        before = newest.get(line.row)
        if before is not None and line.at < before.at:
            yield f"{line.row}: {line.at} after {before.at}"
        if before is not None and line.at == before.at and line.id != before.id:
            yield f"{line.row} at {line.at} came twice, under different ids"
        newest[line.row] = line


def repeated(lines: Sequence[Line]) -> Iterator[str]:
    """Within complete windows a version comes once: it is delivered again only after a crash."""
    seen: set[tuple[Row, int]] = set()
    for line, whole in zip(lines, complete(lines), strict=True):
        if not whole:
            continue
        if (line.row, line.at) in seen:
            yield f"{line.row} at {line.at} came twice in complete windows"
        seen.add((line.row, line.at))


def missing(lines: Sequence[Line], truth: Truth, tables: Sequence[str]) -> Iterator[str]:
    """Each complete window holds the newest version of every row that was written in it and lives
    at its end; and at the end every living row's newest version was delivered."""
    whole = complete(lines)
    delivered = {(line.row, line.at, line.end) for line, ok in zip(lines, whole, strict=True) if ok}
    windows = {(line.start, line.end) for line, ok in zip(lines, whole, strict=True) if ok}
    history = truth.history()
    for row, versions in history.items():
        for start, end in windows if row[0] in tables else ():
            state = state_at(versions, end)
            if state is None or state[1] is None or state[0] <= start:
                continue
            if (row, state[0], end) not in delivered:
                yield f"{row} at {state[0]} is missing from the window ({start}, {end}]"
    ever = {(line.row, line.at) for line in lines}
    for row, versions in history.items():
        at, version = versions[-1]
        if row[0] in tables and version is not None and (row, at) not in ever:
            yield f"{row} at {at}, the newest version, was never delivered"


def torn(lines: Sequence[Line], truth: Truth) -> Iterator[str]:
    """What is delivered of a transaction in complete windows is delivered in one window."""
    ends: dict[tuple[Row, int], int] = {
        (line.row, line.at): line.end for line, ok in zip(lines, complete(lines), strict=True) if ok
    }
    for commit in truth.commits:
        places = {
            ends[write.row, commit.at] for write in commit.writes if (write.row, commit.at) in ends
        }
        if len(places) > 1:
            yield f"the transaction at {commit.at} is in windows that end at {sorted(places)}"


def rebuilt(lines: Sequence[Line], end: int) -> dict[Row, tuple[int, str]]:
    """The tables as the output makes them, up to the complete windows that end at ``end``."""
    found: dict[Row, tuple[int, str]] = {}
    for line, ok in zip(lines, complete(lines), strict=True):
        if ok and line.end <= end:
            found[line.row] = (line.at, line.version)
    return found


def differences(
    lines: Sequence[Line], truth: Truth, end: int, stored: dict[Row, str]
) -> Iterator[str]:
    """The rebuilt tables against the tables as Spanner has them at ``end``.

    Polling sees no deletes: a row that is rebuilt and not stored must have been deleted.
    """
    mine = rebuilt(lines, end)
    history = truth.history()
    for row, version in stored.items():
        if row not in mine or mine[row][1] != version:
            yield f"{row} is {version!r} at {end}, rebuilt it is {mine.get(row)}"
    for row in mine.keys() - stored.keys():
        state = state_at(history.get(row, []), end)
        if state is None or state[1] is not None:
            yield f"{row} is rebuilt but is not there at {end}, and was not deleted"


def verdict(lines: Sequence[Line], truth: Truth, tables: Sequence[str]) -> list[str]:
    """Everything that is wrong with an output."""
    return [
        *invented(lines, truth),
        *disordered(lines),
        *repeated(lines),
        *missing(lines, truth, tables),
        *torn(lines, truth),
    ]
