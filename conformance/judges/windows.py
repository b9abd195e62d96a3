"""Judges of windows, for systems that say which window a change is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.changes import UNKNOWN, Line
from conformance.judges import polled_windows, streamed_windows
from conformance.judges.streamed_windows import Mods
from conformance.recording import Finding, Promises, Recording
from conformance.truth import History
from conformance.writers import WATCHED


def find_broken_windows(
    recording: Recording, mods: Mods, history: History, promises: Promises
) -> Iterator[Finding]:
    """Windows are whole, in order, and apart; nothing where a line has no window or no id. What
    never came is for ``find_lost``."""
    lines = recording.lines
    have_windows = bool(lines) and all(line.change.window and line.id for line in lines)
    if not promises.windows or not have_windows:
        return
    if promises.every_version:
        texts = judge_streamed(lines, mods, promises)
    else:
        texts = judge_polled(lines, history, recording)
    for text in texts:
        yield Finding("windows", text)


def judge_streamed(lines: Sequence[Line], mods: Mods, promises: Promises) -> Iterator[str]:
    """The judges of windows that hold every version."""
    windows = streamed_windows.deliveries([streamed(line) for line in lines])
    yield from streamed_windows.find_incomplete(windows, mods)
    yield from streamed_windows.find_disordered(windows, mods)
    yield from streamed_windows.find_repeated(windows)
    yield from polled_windows.find_rewound(windows)
    if promises.transactions:
        yield from streamed_windows.find_scattered(windows, mods)


def judge_polled(lines: Sequence[Line], history: History, recording: Recording) -> Iterator[str]:
    """The judges of windows that hold the newest version of each row."""
    delivered = polled_windows.deliveries([polled(line) for line in lines])
    windows = polled_windows.settle_windows(delivered, history, WATCHED)
    yield from polled_windows.find_repeated(windows)
    yield from polled_windows.find_rewound(windows)
    yield from polled_windows.find_foreign(windows, history, WATCHED)
    yield from polled_windows.find_missing(windows, history, WATCHED)
    yield from polled_windows.find_torn(windows, recording.truth)


def streamed(line: Line) -> streamed_windows.Line:
    """A line as the judges of windows with every version read it."""
    change = line.change
    start, end = change.window or (0, 0)
    return streamed_windows.Line(
        id=line.id,
        table=change.table,
        key=change.key,
        at=change.at,
        operation=change.operation,
        old=None if change.old is UNKNOWN else change.old,
        new=None if change.new is UNKNOWN else change.new,
        transaction=line.transaction,
        start=start,
        end=end,
    )


def polled(line: Line) -> polled_windows.Line:
    """A line as the judges of windows with the newest versions read it."""
    change = line.change
    start, end = change.window or (0, 0)
    version = "" if change.new is UNKNOWN or change.new is None else change.new
    return polled_windows.Line(line.id, change.table, change.key, change.at, version, start, end)
