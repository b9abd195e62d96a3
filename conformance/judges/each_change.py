"""Judges of single changes: lost, wrong, reordered, misnamed."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.changes import UNKNOWN, Line
from conformance.judges.polled_windows import find_misnamed
from conformance.judges.streamed_windows import Mod, Mods
from conformance.recording import Finding, Promises, Recording, find
from conformance.truth import History, Row, live_rows
from conformance.writers import WATCHED


def find_wrong(recording: Recording, mods: Mods) -> Iterator[Finding]:
    """Every line tells what happened to its row at its commit timestamp."""
    for line in recording.lines:
        mod = mods.get((line.row, line.at))
        if line.change.table not in WATCHED:
            yield find("wrong", f"{line.row}: this table is not watched", line)
        elif mod is None:
            yield find("wrong", f"{line.row} at {line.at}: nothing happened", line)
        else:
            for text in compare(line, mod):
                yield find("wrong", f"{line.row} at {line.at}: {text}", line)


def compare(line: Line, mod: Mod) -> Iterator[str]:
    """How a line differs from what happened."""
    change = line.change
    may_be = {mod.operation} if mod.new is None else {mod.operation, "UPSERT"}
    if change.operation not in may_be:
        yield f"{change.operation} was {mod.operation}"
    if change.new not in (mod.new, UNKNOWN):
        yield f"the version {change.new!r} was {mod.new!r}"
    if change.old not in (mod.old, UNKNOWN):
        yield f"the version before, {change.old!r}, was {mod.old!r}"


def find_lost(
    recording: Recording, mods: Mods, history: History, promises: Promises
) -> Iterator[Finding]:
    """What was promised came."""
    came = {(line.row, line.at) for line in recording.lines}
    if promises.every_version:
        expected = set(mods)
        what = "never came"
    else:
        expected = newest_versions(history)
        what = "never came, and is the newest version of its row"
    for row, at in sorted(expected - came, key=lambda version: (version[1], repr(version))):
        mod = mods[row, at]
        yield find("lost", f"{row} at {at}: {mod.operation} to {mod.new!r} {what}")


def newest_versions(history: History) -> set[tuple[Row, int]]:
    """The rows that are there at the end, with the timestamps of their versions."""
    last = max((states[-1].at for states in history.values()), default=0)
    rows = live_rows(history, last)
    return {(row, state.at) for row, state in rows.items() if row[0] in WATCHED}


def find_reordered(recording: Recording) -> Iterator[Finding]:
    """The versions of a row come in the order of their commits, and a row's last line is its newest
    one."""
    newest: dict[Row, Line] = {}
    last: dict[Row, Line] = {}
    seen: set[tuple[Row, int]] = set()
    for line in recording.lines:
        before = newest.get(line.row)
        if before is None or line.at > before.at:
            newest[line.row] = line
        elif (line.row, line.at) not in seen:
            text = f"{line.row}: the version at {line.at} came after that at {before.at}"
            yield find("reordered", text, before, line)
        seen.add((line.row, line.at))
        last[line.row] = line
    for row, line in last.items():
        if line.at < newest[row].at:
            text = f"{row}: the last line is the version at {line.at}, not that at {newest[row].at}"
            yield find("reordered", text, newest[row], line)


def find_two_names(recording: Recording) -> Iterator[Finding]:
    """A change has the same id every time, and no other change has it."""
    for text in find_misnamed([line for line in recording.lines if line.id]):
        yield Finding("misnamed", text)
