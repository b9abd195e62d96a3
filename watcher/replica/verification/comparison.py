"""Compares a table with its copy: sums of ranges, then of parts of those that differ, then rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.captures.poll_tables import start_ahead
from watcher.replica.keys.ranges import KeyInterval, RangeIndex
from watcher.replica.keys.sets import KeySet
from watcher.replica.verification.copy_sums import sum_ranges
from watcher.replica.verification.report import Difference, DifferenceKind, TableReport
from watcher.replica.verification.row_hashes import add_hashes
from watcher.replica.verification.shown_keys import show_key
from watcher.replica.verification.spanner_sums import ComparedTable, RangeSum, join_sums, read_sum
from watcher.spanner.key_values import Parts

Keep = Callable[[pa.RecordBatch], NDArray[np.bool_]]
"""Chooses rows by their keys."""
Scan = Callable[[Keep | None], Iterable[pa.RecordBatch]]
"""A pass over the rows of the copy, or those that are kept: keys and hashes."""


WHOLE = (KeyInterval(),)


@dataclass(frozen=True, slots=True)
class Depth:
    """How a comparison divides a table. Ranges of ``rows`` are divided by ``parts`` until they have
    ``leaf_rows``; of each size ``ranges_max`` that differ are looked at. ``shown_max`` differences
    are kept, of which a report has ``reported_max``."""

    rows: int = 50_000
    parts: int = 25
    leaf_rows: int = 1_000
    ranges_max: int = 100
    shown_max: int = 100
    reported_max: int = 100


@dataclass(slots=True)
class Findings:
    """Differences as they are found; ``shown_max`` are kept, all are counted."""

    shown_max: int
    count: int = 0
    shown: list[tuple[DifferenceKind, Parts]] = field(default_factory=list)

    def add(self, kind: DifferenceKind, key: Parts) -> None:
        """Counts a difference."""
        self.count += 1
        if len(self.shown) < self.shown_max:
            self.shown.append((kind, key))


@dataclass(frozen=True, slots=True)
class Found:
    """What a comparison found: the ``ranges``, how many ``rows`` of Spanner each has, those that
    are ``differing``. ``complete``: all that differ were looked at, down to the rows. ``problem``:
    why nothing is known, a clause."""

    ranges: tuple[KeyInterval, ...]
    rows: tuple[int, ...]
    copy_rows: int
    differing: tuple[KeyInterval, ...]
    findings: Findings
    complete: bool
    problem: str


class Comparison:
    """Of one table. ``scan`` reads the copy: once a size of ranges, and once for the rows."""

    def __init__(self, table: ComparedTable, scan: Scan, depth: Depth, boost: bool = False) -> None:
        self._table = table
        self._scan = scan
        self._depth = depth
        self._boost = boost

    def find(self, intervals: Sequence[KeyInterval] = WHOLE) -> Found:
        """Compares ranges of the table, or all of it."""
        depth = self._depth
        whole = self.split(intervals)
        sums = self._sum_boosted(whole) if self._boost else self._sum(whole)
        copy_sums = self._sum_copy(whole, all_rows=intervals == WHOLE)
        first = differing = select_differing(whole, sums, copy_sums)
        rows, complete = depth.rows, True
        while differing and rows > depth.leaf_rows:
            rows = max(depth.leaf_rows, rows // depth.parts)
            complete &= len(differing) <= depth.ranges_max
            differing = self._divide(differing[: depth.ranges_max], rows)
        complete &= len(differing) <= depth.ranges_max
        findings = Findings(depth.shown_max)
        if differing:
            self._compare_rows(differing[: depth.ranges_max], findings)
        return Found(
            ranges=tuple(whole),
            rows=tuple(each.rows for each in sums),
            copy_rows=sum(each.rows for each in copy_sums),
            differing=tuple(first),
            findings=findings,
            complete=complete,
            problem=self._explain_nothing_found(differing, findings),
        )

    def report(self, found: Found, uncompared: Sequence[str]) -> TableReport:
        """What was found, for people and for JSON."""
        findings = found.findings
        return TableReport(
            table=self._table.name,
            rows=sum(found.rows),
            copy_rows=found.copy_rows,
            ranges=len(found.ranges),
            found=findings.count,
            differences=self.describe(findings),
            complete=found.complete,
            uncompared=tuple(uncompared),
            problem=found.problem,
        )

    def describe(self, findings: Findings) -> tuple[Difference, ...]:
        """Differences as a report has them, in the order of the key."""
        order = self._table.order
        shown = sorted(findings.shown, key=lambda each: order.sort_key(each[1]))
        return tuple(
            Difference(kind, show_key(order, key))
            for kind, key in shown[: self._depth.reported_max]
        )

    def split(self, intervals: Sequence[KeyInterval] = WHOLE) -> list[KeyInterval]:
        """Ranges of the size that is compared first."""
        return [part for each in intervals for part in self._table.split(each, self._depth.rows)]

    def _explain_nothing_found(self, differing: Sequence[KeyInterval], findings: Findings) -> str:
        """Sums that differ where no row does cannot be; if they do, nothing is proved."""
        if not differing or findings.count:
            return ""
        return "the sums of a range differ, its rows do not: run it again, and report it"

    def _sum(self, intervals: Sequence[KeyInterval]) -> list[RangeSum]:
        groups = self._table.groups
        started = (self._table.start_sum(each, group) for each in intervals for group in groups)
        answers = (read_sum(answer) for answer in start_ahead(started))
        return [join_sums([next(answers) for _ in groups]) for _ in intervals]

    def _sum_boosted(self, intervals: Sequence[KeyInterval]) -> list[RangeSum]:
        index = RangeIndex(self._table.order, intervals)
        sums = [
            sum_ranges(self._table.read_hashes_boosted(each), index, [each])
            for each in self._table.groups
        ]
        return [join_sums(each) for each in zip(*sums, strict=True)]

    def _sum_copy(self, intervals: Sequence[KeyInterval], all_rows: bool = False) -> list[RangeSum]:
        index = RangeIndex(self._table.order, intervals)
        rows = self._scan(None if all_rows else index.has)
        return sum_ranges(rows, index, self._table.groups)

    def _divide(self, intervals: Sequence[KeyInterval], rows: int) -> list[KeyInterval]:
        """The parts that differ of ranges that differ."""
        parts = [part for each in intervals for part in self._table.split(each, rows)]
        return select_differing(parts, self._sum(parts), self._sum_copy(parts))

    def compare_keys(self, keys: KeySet, rows: Iterable[pa.RecordBatch]) -> Findings:
        """Compares the rows of some keys; ``rows`` are those of Spanner, as the copy has them."""
        expected: dict[Parts, list[int]] = {}
        for batch in add_hashes(rows, self._table.groups):
            hashes = self._list_hashes(batch)
            expected |= dict(zip(self._table.order.read_batch(batch), hashes, strict=True))
        findings = Findings(self._depth.shown_max)
        self._match(expected, keys.find, findings)
        return findings

    def _compare_rows(self, intervals: Sequence[KeyInterval], findings: Findings) -> None:
        """The rows of ranges. Those of Spanner are held, those of the copy pass by."""
        index = RangeIndex(self._table.order, intervals)
        self._match(self._read_hashes(intervals), index.has, findings)

    def _match(self, unseen: dict[Parts, list[int]], keep: Keep, findings: Findings) -> None:
        for batch in self._scan(keep):
            hashes = self._list_hashes(batch)
            for key, hashed in zip(self._table.order.read_batch(batch), hashes, strict=True):
                expected = unseen.pop(key, None)
                if expected is None:
                    findings.add(DifferenceKind.EXTRA, key)
                elif expected != hashed:
                    findings.add(DifferenceKind.CHANGED, key)
        for key in unseen:
            findings.add(DifferenceKind.MISSING, key)

    def _list_hashes(self, batch: pa.RecordBatch) -> list[list[int]]:
        """The hashes of each row, one of each group."""
        columns = (batch.column(group.name).to_pylist() for group in self._table.groups)
        return [list(each) for each in zip(*columns, strict=True)]

    def _read_hashes(self, intervals: Sequence[KeyInterval]) -> dict[Parts, list[int]]:
        """The hashes of each row of ranges of Spanner's: one of each group."""
        rows: defaultdict[Parts, list[int]] = defaultdict(list)
        for group in self._table.groups:
            answers = (self._table.read_hashes(each, group) for each in intervals)
            for batch in chain.from_iterable(start_ahead(answers)):
                hashes = batch.column(group.name).to_pylist()
                for key, digest in zip(self._table.order.read_batch(batch), hashes, strict=True):
                    rows[key].append(digest)
        return dict(rows)


def select_differing(
    intervals: Sequence[KeyInterval], sums: Sequence[RangeSum], others: Sequence[RangeSum]
) -> list[KeyInterval]:
    """The ranges whose sums differ."""
    triples = zip(intervals, sums, others, strict=True)
    return [interval for interval, left, right in triples if left != right]
