"""Proves copies by what has changed in them since the last proof, and by a share of the table that
rolls: all of it within some days. The rules are N1 to N7 of docs/replica-protocol.md."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from watcher.process.failpoints import failpoint
from watcher.replica.copies import OpenCopy
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.proofs import DAY, ProofFiles, ProvedRange, TableProof
from watcher.replica.keys.ranges import KeyInterval, RangeIndex
from watcher.replica.keys.sets import KeySet
from watcher.replica.verification.changed_keys import find_changed, has_same_rows
from watcher.replica.verification.comparison import Depth, Found
from watcher.replica.verification.copied_rows import CopiedRows
from watcher.replica.verification.replicas import (
    OpenTable,
    ReplicaTable,
    VerifyOptions,
    list_outside,
    open_tables,
    report_problem,
    report_tables,
)
from watcher.replica.verification.report import Difference, Progress, Report, TableReport
from watcher.spanner.queries import QueryClient
from watcher.tables.masks import MaskKey

LOG = logging.getLogger("watcher.verify")
RANGES_A_BATCH, BATCHES = 20, 20
"""Between two notes of what is proved so many ranges are compared, or one of so many parts of a
table's: each batch is a pass over the copy."""
WITHIN_SECONDS = 7 * DAY
WITH_DEFAULTS = Depth()


@dataclass(frozen=True, slots=True)
class IncrementalOptions:
    """Which tables (names or globs), and within how many seconds all of them is to be compared
    whole again."""

    tables: tuple[str, ...] = ("*",)
    within_seconds: float = WITHIN_SECONDS
    depth: Depth = WITH_DEFAULTS
    mask_keys: tuple[MaskKey, ...] = ()


def verify_changes(
    queries: QueryClient,
    copies: OpenCopy,
    cut: Cut,
    proofs: ProofFiles,
    options: IncrementalOptions | None = None,
) -> Report:
    """Compares what has changed in the copies of a cut since the last run, and what is due. Raises
    as ``verify``; what was proved until then is noted."""
    options = options or IncrementalOptions()

    def prove(replica: ReplicaTable) -> TableReport:
        report = TableProving(replica, proofs, options).run()
        return replace(report, outside=list_outside(replica.copy, replica.described))

    tables = open_tables(queries, copies, cut, options.tables, options.mask_keys)
    return Report(cut.end, tuple(report_tables(tables, prove)), cut.explain())


@dataclass
class Tally:
    """What a run has compared of a table."""

    rows: int = 0
    copy_rows: int = 0
    keys: int = 0
    ranges: int = 0
    found: int = 0
    complete: bool = True
    problem: str = ""
    differences: tuple[Difference, ...] = ()

    def add(self, table: OpenTable, found: Found) -> None:
        """Counts ranges that were compared."""
        self.rows += sum(found.rows)
        self.copy_rows += found.copy_rows
        self.ranges += len(found.ranges)
        self.found += found.findings.count
        self.complete &= found.complete
        self.problem = self.problem or found.problem
        self.differences += table.comparison.describe(found.findings)


class TableProving:
    """One run of one table."""

    def __init__(
        self, replica: ReplicaTable, proofs: ProofFiles, options: IncrementalOptions
    ) -> None:
        self._replica = replica
        self._proofs = proofs
        self._options = options
        self._tally = Tally()

    def run(self) -> TableReport:
        """Compares what has changed, then what is due."""
        table = self._replica.open(VerifyOptions(depth=self._options.depth))
        if isinstance(table, str):
            return report_problem(self._replica.table.name, table)
        known = self._proofs.read(self._replica.table.name)
        proof = None if known is None else self._adopt(table, known)
        fresh = self._begin(table) if proof is None else proof
        self._save(replace(fresh, within_seconds=self._options.within_seconds))
        due = fresh.choose_due(self._replica.cut.end)
        proof = self._prove_due(table, replace(fresh, ran=self._replica.cut.end), due)
        return self._report(table, proof)

    def _begin(self, table: OpenTable) -> TableProof:
        """A proof of nothing."""
        ranges = [ProvedRange(each.upto, 0, 0) for each in table.comparison.split()]
        replica = self._replica
        version, end = replica.described.version, replica.cut.end
        copy_end = replica.copy.find_end(version)
        within = self._options.within_seconds
        columns = name_columns(table)
        return TableProof(end, version, copy_end, columns, end, within, tuple(ranges))

    def _adopt(self, table: OpenTable, proof: TableProof) -> TableProof | None:
        """The proof, of the version of the cut, where what has changed since is equal; the same as
        before where it is not. None where nobody knows what has changed."""
        replica = self._replica
        same = has_same_rows(replica.copy, proof.version, proof.copy_end)
        if proof.columns != name_columns(table) or not same or proof.end > replica.cut.end:
            return None
        version = replica.described.version
        changed = find_changed(table, proof.version, version, self._index(table, proof))
        if changed is None:
            return None
        proof = replace(proof, within_seconds=self._options.within_seconds)
        if changed.keys is None:
            proof = proof.forget(changed.ranges)
        elif changed.keys and not self._compare_keys(table, KeySet(table.order, changed.keys)):
            return proof
        copy_end = replica.copy.find_end(version)
        return replace(proof, end=replica.cut.end, version=version, copy_end=copy_end)

    def _index(self, table: OpenTable, proof: TableProof) -> RangeIndex:
        return RangeIndex(table.order, proof.list_intervals())

    def _compare_keys(self, table: OpenTable, keys: KeySet) -> bool:
        """Whether the rows of some keys are equal."""
        read = CopiedRows.of_table(table).read(keys.keys, self._replica.cut.end)
        findings = table.comparison.compare_keys(keys, read.to_batches())
        self._tally.keys += len(keys.keys)
        self._tally.found += findings.count
        self._tally.differences += table.comparison.describe(findings)
        return not findings.count

    def _prove_due(self, table: OpenTable, proof: TableProof, due: Sequence[int]) -> TableProof:
        """Compares ranges, the last ones first, so that the numbers of the others stay."""
        count = count_batch(len(proof.ranges))
        for upto in range(len(due), 0, -count):
            numbers = due[max(upto - count, 0) : upto]
            intervals = proof.list_intervals()
            found = table.comparison.find([intervals[number] for number in numbers])
            self._tally.add(table, found)
            for number in reversed(numbers):
                proof = self._note(proof, number, intervals[number], found)
            self._save(proof)
            failpoint("after-proved-ranges")
        self._save(proof)
        return proof

    def _note(
        self, proof: TableProof, number: int, interval: KeyInterval, found: Found
    ) -> TableProof:
        """With the parts of a range. One that differs is due until it is equal."""
        parts = []
        inside = False
        for part, rows in zip(found.ranges, found.rows, strict=True):
            inside = inside or part.after == interval.after
            if inside:
                at = 0 if part in found.differing else self._replica.cut.end
                parts.append(ProvedRange(part.upto, rows, at))
            if inside and part.upto == interval.upto:
                break
        return proof.note(number, parts)

    def _save(self, proof: TableProof) -> None:
        self._proofs.write(self._replica.table.name, proof)

    def _report(self, table: OpenTable, proof: TableProof) -> TableReport:
        tally = self._tally
        return TableReport(
            table=self._replica.table.name,
            rows=tally.rows,
            copy_rows=tally.copy_rows,
            ranges=tally.ranges,
            found=tally.found,
            differences=tally.differences,
            complete=tally.complete,
            uncompared=table.uncompared,
            problem=tally.problem,
            left_out=table.left_out,
            caveats=self._replica.described.caveats,
            view=self._replica.described.view,
            progress=Progress(
                proof.proved_at,
                proof.measure_share(proof.ran),
                proof.within_seconds,
                tally.keys,
                proof.explain(proof.ran),
            ),
        )


def count_batch(ranges: int) -> int:
    """How many ranges are a batch, of a table with so many."""
    return max(RANGES_A_BATCH, ranges // BATCHES)


def name_columns(table: OpenTable) -> tuple[str, ...]:
    """The columns that are compared, with their types, and what the copy shows of the table: a
    proof of others is none of these."""
    view = table.replica.described.view
    shown = () if view.whole else (json.dumps(view.to_stored(), sort_keys=True),)
    return tuple(f"{name} {table.copied.field(name).type}" for name in table.names) + shown
