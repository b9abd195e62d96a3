"""Compares a replica with Spanner at a cut."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ddl.schema import Schema, Table, TypeCode
from ddl.selection import matches_any
from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.errors import TableNotFoundError
from watcher.replica.copies import OpenCopy, StoredCopy, check_version
from watcher.replica.cuts import Cut, TableCut
from watcher.spanner.dialects import DIALECTS
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.supported_types import is_supported
from watcher.spanner.sql import RowCondition
from watcher.tables.schema_reader import read_epoch
from watcher.verification.canonical import ComparedColumn
from watcher.verification.comparison import Comparison, Depth
from watcher.verification.copy_sums import add_hashes
from watcher.verification.key_order import KeyColumn, KeyOrder
from watcher.verification.report import Report, TableReport
from watcher.verification.spanner_sums import ComparedTable, compared_columns

LOG = logging.getLogger("watcher.verify")
EVERY_TABLE = ("*",)
WITH_DEFAULTS = Depth()


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Which tables (names or globs) and columns are compared, and how."""

    tables: tuple[str, ...] = EVERY_TABLE
    ignored_columns: tuple[str, ...] = ()
    data_boost: bool = False
    newest: bool = True
    """Whether the cut is the newest one: what others have written to the copies after it counts."""
    depth: Depth = WITH_DEFAULTS


def verify(
    queries: QueryClient, copies: OpenCopy, cut: Cut, options: VerifyOptions | None = None
) -> Report:
    """Compares the copies of a cut with the tables of Spanner at its end.

    Raises VersionExpiredError when Spanner no longer keeps versions of the cut, ReplicaError when a
    version of a copy is gone, TableNotFoundError for a name that the cut does not have.
    """
    options = options or VerifyOptions()
    schema = read_epoch(queries.stream, cut.end).schema
    reports = []
    for name in select_tables(cut, options.tables):
        LOG.info("comparing table %s", name)
        table = schema.table(name)
        if table is None:
            reports.append(report_problem(name, "Spanner has no such table at the cut"))
            continue
        replica = ReplicaTable(queries, schema, table, copies(name), cut)
        outside = list_outside(copies(name), cut.tables[name]) if options.newest else ()
        reports.append(replace(replica.compare(options), outside=outside))
    return Report(cut.end, tuple(reports), cut.explain())


def list_outside(copy: StoredCopy, described: TableCut) -> tuple[str, ...]:
    """What others have done to a copy after the version of a cut."""
    state = copy.read_state()
    if state is None:
        return ()
    commits = copy.list_outside(described.version, state.version)
    return tuple(f"version {each.version}: {each.detail}" for each in commits)


def select_tables(cut: Cut, names: Sequence[str]) -> list[str]:
    """The tables of a cut that are meant. Raises TableNotFoundError."""
    selected = [name for name in sorted(cut.tables) if matches_any(name, names)]
    if not selected:
        raise TableNotFoundError(
            f"the cut has no table {', '.join(names)}; it has: {', '.join(sorted(cut.tables))}"
        )
    return selected


@dataclass(frozen=True)
class ReplicaTable:
    """A table of a cut, and its copy."""

    queries: QueryClient
    schema: Schema
    table: Table
    copy: StoredCopy
    cut: Cut

    @property
    def _cut(self) -> TableCut:
        return self.cut.tables[self.table.name]

    def compare(self, options: VerifyOptions) -> TableReport:
        """Compares them."""
        copied = self._read_schema()
        readable = [(c.name, c.type) for c in self.table.columns if is_supported(c.type)]
        names = {name for name, _ in readable}
        surplus = [n for n in copied.names if n not in names and n != COMMIT_TIMESTAMP_COLUMN]
        if surplus:
            return report_problem(
                self.table.name, f"Spanner has no column {', '.join(surplus)}, the copy has"
            )
        ignored = (*self._cut.uncompared, *options.ignored_columns)
        columns = compared_columns(copied, readable, ignored)
        order = self._order()
        compared = ComparedTable(
            self.queries, self.table.name, order, columns, self.cut.end, self._condition()
        )
        wanted = list(dict.fromkeys([*order.names, *(each.name for each in columns)]))
        comparison = Comparison(
            compared, lambda: self._scan(wanted, columns), options.depth, options.data_boost
        )
        shown = {each.name for each in columns}
        visible = [c.name for c in self.table.columns if not c.hidden or c.name in copied.names]
        return comparison.run([name for name in visible if name not in shown])

    def _read_schema(self) -> pa.Schema:
        check_version(self.copy, self.table.name, self._cut.version, self.cut.end)
        return self.copy.read_schema(self._cut.version)

    def _scan(
        self, names: Sequence[str], columns: Sequence[ComparedColumn]
    ) -> Iterable[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self.copy.scan(self._cut.version, names)
        return add_hashes(batches, columns)

    def _order(self) -> KeyOrder:
        types = {column.name.casefold(): column.type for column in self.table.columns}
        return KeyOrder(
            tuple(
                KeyColumn(part.column, types[part.column.casefold()], part.descending)
                for part in self.table.primary_key
            ),
            self.schema.dialect,
        )

    def _condition(self) -> RowCondition | None:
        """Leaves softly deleted rows out: the copy has none."""
        if (name := self._cut.deleted) is None:
            return None
        column = self.table.column(name)
        quoted = DIALECTS[self.schema.dialect].quote_column(name)
        if column is not None and column.type.code is TypeCode.BOOL:
            return RowCondition(f"COALESCE({quoted}, FALSE) = FALSE")
        return RowCondition(f"{quoted} IS NULL")


def report_problem(table: str, problem: str) -> TableReport:
    """A table that cannot be compared."""
    return TableReport(table, 0, 0, 0, 0, (), True, (), problem)
