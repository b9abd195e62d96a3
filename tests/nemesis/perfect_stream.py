"""What a right reader of a change stream writes, with crashes, in an order of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from conformance.judges.streamed_windows import Line, mods_of, owners_of
from conformance.truth import Row, Truth, live_rows
from nemesis.perfect import ROWS, TABLES, truths, windows


@dataclass(frozen=True, slots=True)
class Streamed:
    """A truth and an output since ``begin``; ``crashes`` says how often a window was cut off."""

    truth: Truth
    lines: tuple[Line, ...]
    crashes: int
    begin: int
    transactions: bool

    def snapshots(self) -> dict[int, dict[Row, str]]:
        """What Spanner has at the end of each window."""
        history = self.truth.history()
        return {
            end: {row: str(state.version) for row, state in live_rows(history, end).items()}
            for end in {line.end for line in self.lines}
        }


@st.composite
def streams(draw: st.DrawFn) -> Streamed:
    """All mods after ``begin``, each window in an order of its own every time that it comes."""
    truth = draw(truths())
    begin = draw(st.integers(0, 4))
    transactions = draw(st.booleans())
    lines: list[Line] = []
    start, crashes = begin, 0
    ends, cuts = draw(windows(truth))
    for end, cut in zip(ends, cuts, strict=True):
        if end <= start:
            continue
        mods = mods_in(truth, begin, start, end)
        if cut and mods:
            lines += order_lines(mods, draw(st.permutations(ROWS)), transactions)[:cut]
            crashes += 1
            if cut % 2 and end != ends[-1]:
                continue
        lines += order_lines(mods, draw(st.permutations(ROWS)), transactions)
        start = end
    return Streamed(truth, tuple(lines), crashes, begin, transactions)


def mods_in(truth: Truth, begin: int, start: int, end: int) -> list[Line]:
    """Every mod of a window."""
    owners = owners_of(truth)
    return [
        Line(
            id=f"{row} {at}",
            table=row[0],
            key=row[1],
            at=at,
            operation=mod.operation,
            old=mod.old,
            new=mod.new,
            transaction=f"transaction {owners[row, at]}",
            start=start,
            end=end,
        )
        for (row, at), mod in mods_of(truth.history(), TABLES, begin).items()
        if start < at <= end
    ]


def order_lines(lines: Sequence[Line], partitions: Sequence[Row], transactions: bool) -> list[Line]:
    """By transactions, or one partition after another, as if each row had its own."""
    if transactions:
        return sorted(lines, key=lambda line: (line.at, line.transaction))
    return sorted(lines, key=lambda line: (partitions.index(line.row), line.at))
