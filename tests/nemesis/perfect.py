"""A world without faults, drawn by hypothesis, and what a right watcher writes in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from conformance.judges.polled_windows import Line, newest_between, order_versions
from conformance.truth import CHILD, PARENT, Commit, History, Row, Truth, Write, live_rows

TABLES = (PARENT, CHILD, "Events")
ROWS: tuple[Row, ...] = (
    (PARENT, (1,)),
    (PARENT, (2,)),
    (CHILD, (1, 1)),
    (CHILD, (1, 2)),
    ("Events", ("a",)),
    ("Events", ("b",)),
)
SELDOM = st.sampled_from([False, False, False, True])
CUTS = st.sampled_from([0, 0, 0, 0, 1, 2])


@dataclass(frozen=True, slots=True)
class Recorded:
    """A truth and an output; ``crashes`` says how often a window was cut off."""

    truth: Truth
    lines: tuple[Line, ...]
    crashes: int

    def snapshots(self) -> dict[int, dict[Row, str]]:
        """What Spanner has at the end of each window."""
        history = self.truth.history()
        return {
            end: {row: str(state.version) for row, state in live_rows(history, end).items()}
            for end in {line.end for line in self.lines}
        }


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """Commits at random timestamps; one that writes events only may share another's."""
    truth = Truth()
    at = 0
    for number, step in enumerate(draw(st.lists(st.integers(1, 5), min_size=6, max_size=20))):
        at += step
        rows = draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=5))
        gone = draw(st.lists(SELDOM, min_size=len(rows), max_size=len(rows)))
        writes = [
            Write(row, None if delete else f"{number}/{place}")
            for place, (row, delete) in enumerate(zip(rows, gone, strict=True))
        ]
        events = [write for write in writes if write.row[0] == "Events"]
        others = [write for write in writes if write.row[0] != "Events"]
        apart = bool(events and others) and draw(SELDOM)
        for part in (events, others) if apart else (writes,):
            truth.add(Commit(at, tuple(part)))
    return truth


@st.composite
def recordings(draw: st.DrawFn) -> Recorded:
    """Commits polled at random timestamps, some windows cut off and come again."""
    truth = draw(truths())
    ends, cuts = draw(windows(truth))
    lines, crashes = poll_windows(truth.history(), ends, cuts)
    return Recorded(truth, tuple(lines), crashes)


@st.composite
def windows(draw: st.DrawFn, truth: Truth) -> tuple[list[int], list[int]]:
    """The ends of windows, and how many rows of each come before a crash: mostly 0, for none."""
    last = truth.commits[-1].at
    ends = sorted(draw(st.sets(st.integers(1, last), min_size=3, max_size=8)) | {last})
    return ends, draw(st.lists(CUTS, min_size=len(ends), max_size=len(ends)))


def poll_windows(
    history: History, ends: Sequence[int], cuts: Sequence[int]
) -> tuple[list[Line], int]:
    """The windows up to each end; one whose cut is not 0 is first delivered for so many rows, and
    comes again with the same end (a full window) or, with the next one, with a later end."""
    lines: list[Line] = []
    start = crashes = 0
    for number, (end, cut) in enumerate(zip(ends, cuts, strict=True)):
        rows = window(history, start, end)
        last = number == len(ends) - 1
        if cut and rows:
            lines += rows[:cut]
            crashes += 1
            if cut % 2 and not last:
                continue
        lines += rows
        start = end
    return lines, crashes


def window(history: History, start: int, end: int) -> list[Line]:
    """What a right watcher writes for a window, in the order of the commits."""
    rows = live_rows(history, end)
    newest = newest_between(order_versions(history, TABLES), start, end)
    versions = sorted(newest, key=lambda version: (version[1], repr(version)))
    return [
        Line(f"{row} {at}", row[0], row[1], at, str(rows[row].version), start, end)
        for row, at in versions
    ]
