"""Does the sink hold exactly what was written? The judges of polled windows, and the whole rows.

The checkpoint has every window, also those without rows, and each came as a micro-batch that is
there or not: nothing may come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from conformance.demo.settings import TABLE
from conformance.judges.polled_windows import (
    Delivery,
    Line,
    find_disordered,
    find_foreign,
    find_gaps,
    find_invented,
    find_missing,
    find_repeated,
    find_skipped,
    find_torn,
)
from conformance.truth import History, Row, Truth

Values = tuple[object, ...]
"""A whole row, in the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one micro-batch delivered of the window ``(start, end]``: its lines, and all values of
    each; ``committed_at`` in seconds since 1970."""

    start: int
    end: int
    committed_at: float
    lines: tuple[Line, ...]
    values: Sequence[Values]


@dataclass(frozen=True, slots=True)
class DemoVerdict:
    """How many rows were written and delivered, and what is wrong, a sentence for each.

    ``invented``: not the state of their key at the end of their window; ``wrong``: never written
    under that name; ``backwards``: after a newer version of their key; ``windows``: gaps between
    windows, what lies in them, and transactions in several windows.
    """

    mutations: int
    delivered: int
    duplicates: Sequence[str] = ()
    missing: Sequence[str] = ()
    invented: Sequence[str] = ()
    wrong: Sequence[str] = ()
    backwards: Sequence[str] = ()
    windows: Sequence[str] = ()
    different_from_table: Sequence[str] = ()

    @property
    def mismatches(self) -> list[str]:
        """All sentences."""
        rows = (self.missing, self.duplicates, self.invented, self.wrong, self.backwards)
        return [*chain(*rows, self.windows, self.different_from_table)]


def verify(truth: Truth, batches: Sequence[MicroBatch], table: Mapping[int, Values]) -> DemoVerdict:
    """Compares row by row. ``table`` is what Spanner holds now, by key."""
    history, tables = truth.history(), (TABLE,)
    windows = [Delivery(batch.start, batch.end, batch.lines, complete=True) for batch in batches]
    lines = [line for batch in batches for line in batch.lines]
    return DemoVerdict(
        mutations=sum(len(commit.writes) for commit in truth.commits),
        delivered=len(lines),
        duplicates=list(find_repeated(windows)),
        missing=list(find_missing(windows, history, tables)),
        invented=list(find_foreign(windows, history, tables)),
        wrong=list(find_invented(lines, history)),
        backwards=list(find_disordered(lines)),
        windows=[
            *find_gaps(windows),
            *find_skipped(windows, history, tables),
            *find_torn(windows, truth),
        ],
        different_from_table=list(find_other_values(history, batches, table)),
    )


def find_other_values(
    history: History, batches: Sequence[MicroBatch], table: Mapping[int, Values]
) -> Iterator[str]:
    """The newest delivered version of every row that was written is the row now in Spanner, in all
    its columns."""
    delivered = [
        (line.at, line.row, values)
        for batch in batches
        for line, values in zip(batch.lines, batch.values, strict=True)
    ]
    newest = {row: values for _, row, values in sorted(delivered, key=itemgetter(0))}
    there: dict[Row, Values] = {(TABLE, (key,)): values for key, values in table.items()}
    for row in sorted(history.keys() | newest.keys(), key=repr):
        if newest.get(row) != there.get(row):
            yield f"{row}: {newest.get(row)} in the sink, {there.get(row)} in Spanner"


def measure_latencies(batches: Sequence[MicroBatch]) -> list[float]:
    """Seconds from each row's commit to the commit of its micro-batch, in ascending order."""
    return sorted(
        batch.committed_at - line.at / 1_000_000 for batch in batches for line in batch.lines
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in ascending order; NaN of none."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
