"""Repairs copies: what differs from Spanner at the end of the last cut is replaced by what Spanner
has there. The rules are R1 to R6 of docs/replica-protocol.md."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import COMPARISON_STARTED, COPY_REPAIRED
from watcher.replica.copies import HeadedCopy, OpenCopy, Replacement, ReplacingCopy
from watcher.replica.cuts.cut import Cut
from watcher.replica.keys.sets import KeySet
from watcher.replica.stores.stored_files import LOAD_ADVICE
from watcher.replica.verification.comparison import Depth, Found
from watcher.replica.verification.copied_rows import CopiedRows
from watcher.replica.verification.replicas import (
    OpenTable,
    ReplicaTable,
    VerifyOptions,
    open_tables,
)
from watcher.replica.verification.report import DifferenceKind, Repair, Report, TableReport
from watcher.replica.verification.row_hashes import render_parts
from watcher.spanner.key_values import Parts
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.masks import MaskKey

LOG = logging.getLogger("watcher.verify")
ROWS_MAX = 1_000_000
"""Of more rows that differ, a load is the cheaper repair."""
DEPTH = Depth(ranges_max=1_000, shown_max=ROWS_MAX)
EXPLAINED_MAX = 10_000
"""Of so many changed rows it is said which columns differ."""
KIND = "repair"


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """Which tables (names or globs). ``dry_run``: nothing is changed."""

    tables: tuple[str, ...]
    dry_run: bool = False
    depth: Depth = DEPTH
    mask_keys: tuple[MaskKey, ...] = ()


def repair(
    queries: QueryClient,
    copies: OpenCopy,
    cut: Cut,
    options: RepairOptions,
    check: Callable[[], None],
) -> tuple[Report, Cut]:
    """Repairs the newest versions of copies, so that they are Spanner's tables at the end of a cut:
    what was found, and the cut with the versions that are equal. ``check`` raises when this process
    must not write any more.

    Raises ReplicaError, with nothing changed, for a table that cannot be repaired;
    CopyConflictError where others write meanwhile; and as ``verify``.
    """
    tables: list[ReplicaTable | TableReport] = []
    for each in open_tables(queries, copies, cut, options.tables, options.mask_keys):
        tables.append(check_repairable(each) if isinstance(each, ReplicaTable) else each)
    reports, repaired = [], cut
    for replica in tables:
        if isinstance(replica, TableReport):
            reports.append(replica)
            continue
        COMPARISON_STARTED.log(LOG, table=replica.table.name)
        report, version = TableRepair(replica, options, check).run()
        reports.append(report)
        if report.equal:
            repaired = name_version(repaired, report.table, version)
    return Report(cut.end, tuple(reports), cut.explain()), repaired


def name_version(cut: Cut, table: str, version: int) -> Cut:
    """The cut with a version of a copy that is equal to Spanner."""
    described = replace(cut.tables[table], version=version)
    return replace(cut, tables={**cut.tables, table: described}).settle(table)


def check_repairable(replica: ReplicaTable) -> ReplicaTable:
    """The table with the newest version of its copy. Raises ReplicaError where it is not at the
    cut, or where its rows cannot be replaced."""
    name, copy, end = replica.table.name, replica.copy, replica.cut.end
    if not isinstance(copy, ReplacingCopy):
        raise ReplicaError(
            f"{name} cannot be repaired: copies in {replica.cut.copies} are written by Spark alone;"
            f" {LOAD_ADVICE}"
        )
    state = copy.read_state()
    if state is None:
        raise ReplicaError(f"{name} cannot be repaired: there is no copy; 'replicate' loads it")
    if state.progress is not None:
        raise ReplicaError(
            f"{name} cannot be repaired while it is loaded ({state.progress.explain()}): let"
            " 'replicate' finish the load"
        )
    if state.end > end:
        raise ReplicaError(
            f"{name} cannot be repaired: its copy is at {format_timestamp(state.end)}, the last cut"
            f" at {format_timestamp(end)}; run 'replicate --once' first"
        )
    if replica.described.source is None:
        raise ReplicaError(
            f"{name} cannot be repaired: an earlier release has written the last cut; run"
            " 'replicate --once' first"
        )
    if reason := copy.explain_fixed():
        raise ReplicaError(f"{name} cannot be repaired: {reason}; {LOAD_ADVICE}")
    if isinstance(copy, HeadedCopy) and (later := copy.list_later()):
        raise ReplicaError(
            f"{name} cannot be repaired: {later[0].detail}, comes after the newest window; roll the"
            f" table back to the snapshot before it, or {LOAD_ADVICE}"
        )
    described = replace(replica.described, version=state.version)
    cut = replace(replica.cut, tables={**replica.cut.tables, name: described})
    return replace(replica, cut=cut)


class TableRepair:
    """The repair of one copy."""

    def __init__(
        self, replica: ReplicaTable, options: RepairOptions, check: Callable[[], None]
    ) -> None:
        self._replica = replica
        self._dry_run = options.dry_run
        self._verify = VerifyOptions(depth=options.depth)
        self._check = check

    def run(self) -> tuple[TableReport, int]:
        """What was found and replaced, and the version of the copy after that."""
        replica = self._replica
        version = replica.described.version
        table = replica.open(self._verify)
        if isinstance(table, str):
            raise ReplicaError(f"{replica.table.name} cannot be repaired: {table}; {LOAD_ADVICE}")
        found = table.comparison.find()
        report = table.report(found)
        if not found.findings.count or found.problem:
            return report, version
        if not found.complete or found.findings.count > len(found.findings.shown):
            raise ReplicaError(
                f"{report.table}: more rows differ than are repaired one by one; {LOAD_ADVICE}"
            )
        return self._replace(table, found, report)

    def _replace(
        self, table: OpenTable, found: Found, report: TableReport
    ) -> tuple[TableReport, int]:
        replica = self._replica
        kinds = sort_kinds(found)
        keys = {key for _, key in found.findings.shown}
        rows = CopiedRows.of_table(table).read(keys, replica.cut.end)
        changed = kinds[DifferenceKind.CHANGED]
        repaired = Repair(
            len(kinds[DifferenceKind.MISSING]),
            len(kinds[DifferenceKind.EXTRA]),
            len(changed),
            count_columns(table, rows, changed[:EXPLAINED_MAX]),
        )
        version = replica.described.version
        if not self._dry_run:
            version = self._write(Replacement(version, KeySet(table.order, keys), rows, KIND))
            repaired = replace(repaired, version=version)
            self._prove(version, found)
        return replace(report, repair=repaired), version

    def _write(self, replacement: Replacement) -> int:
        copy = self._replica.copy
        assert isinstance(copy, ReplacingCopy), "check_repairable comes first"
        self._check()
        state = copy.replace_rows(replacement, self._replica.cut.end)
        COPY_REPAIRED.log(LOG, table=self._replica.table.name, version=state.version)
        return state.version

    def _prove(self, version: int, found: Found) -> None:
        """Compares the ranges that differed once more. Raises ReplicaError."""
        described = replace(self._replica.described, version=version)
        name = self._replica.table.name
        cut = replace(self._replica.cut, tables={**self._replica.cut.tables, name: described})
        table = replace(self._replica, cut=cut).open(self._verify)
        if isinstance(table, str) or table.comparison.find(found.differing).differing:
            raise ReplicaError(
                f"{name} still differs after its repair, which is version {version}: {LOAD_ADVICE},"
                " and report it"
            )


def sort_kinds(found: Found) -> Mapping[DifferenceKind, list[Parts]]:
    """The keys that differ, by how they do."""
    kinds: dict[DifferenceKind, list[Parts]] = {kind: [] for kind in DifferenceKind}
    for kind, key in found.findings.shown:
        kinds[kind].append(key)
    return kinds


def count_columns(table: OpenTable, rows: pa.Table, keys: Sequence[Parts]) -> dict[str, int]:
    """In how many rows of some keys each column of the copy differs from ``rows``."""
    if not keys:
        return {}
    wanted = KeySet(table.order, keys)
    names = [*table.order.names, *(each.name for each in table.columns)]
    there = table.replica.copy.scan(table.replica.described.version, names)
    copied = render_texts(table, (batch.filter(pa.array(wanted.find(batch))) for batch in there))
    read = render_texts(table, rows.select(names).to_batches())
    counts = Counter(
        column.name
        for key in keys
        for column, text, other in zip(table.columns, copied[key], read[key], strict=True)
        if text != other
    )
    return dict(sorted(counts.items()))


def render_texts(
    table: OpenTable, batches: Iterable[pa.RecordBatch]
) -> dict[Parts, tuple[str, ...]]:
    """The canonical text of each column, by key."""
    texts: dict[Parts, tuple[str, ...]] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        columns = [
            render_parts(batch.column(each.name), each).to_pylist() for each in table.columns
        ]
        values = zip(*columns, strict=True) if columns else [()] * batch.num_rows
        texts |= dict(zip(table.order.read_batch(batch), values, strict=True))
    return texts
