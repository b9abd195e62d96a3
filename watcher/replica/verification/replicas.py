"""Compares a replica with Spanner at a cut."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Dialect, Schema, Table
from spanner_schema.model.selection import matches_any
from watcher.captures.row_filters import render_filter
from watcher.model.errors import TableNotFoundError
from watcher.model.log_events.copies import COMPARISON_STARTED
from watcher.replica.copies import (
    STAMP_COLUMNS,
    HeadedCopy,
    OpenCopy,
    StoredCopy,
    check_version,
    is_dropped,
)
from watcher.replica.cuts.cut import Cut, TableCut
from watcher.replica.keys.order import KeyOrder
from watcher.replica.verification.canonical import ComparedColumn
from watcher.replica.verification.column_groups import (
    CALLS_MAX,
    ColumnGroup,
    Grouping,
    count_calls,
)
from watcher.replica.verification.comparison import Comparison, Depth, Found, Keep
from watcher.replica.verification.report import Report, TableReport
from watcher.replica.verification.row_hashes import add_hashes
from watcher.replica.verification.spanner_sums import ComparedTable
from watcher.spanner.dialects import DIALECTS
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.supported_types import is_supported
from watcher.spanner.sql import RowCondition, combine_conditions
from watcher.tables.masks import Mask, MaskKey
from watcher.tables.predicate_parser import make_row_filter
from watcher.tables.predicates import RowFilter
from watcher.tables.schema_reader import read_epoch

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
    keys_alone: bool = False
    """Whether only the keys are compared."""
    mask_keys: tuple[MaskKey, ...] = ()
    """Where keys of hashes are: that of a table is recognized."""


def verify(
    queries: QueryClient, copies: OpenCopy, cut: Cut, options: VerifyOptions | None = None
) -> Report:
    """Compares the copies of a cut with the tables of Spanner at its end.

    Raises VersionExpiredError when Spanner no longer keeps versions of the cut, ReplicaError when a
    version of a copy is gone, TableNotFoundError for a name that the cut does not have.
    """
    options = options or VerifyOptions()

    def compare(replica: ReplicaTable) -> TableReport:
        outside = list_outside(replica.copy, replica.described) if options.newest else ()
        return replace(replica.compare(options), outside=outside)

    tables = open_tables(queries, copies, cut, options.tables, options.mask_keys)
    return Report(cut.end, tuple(report_tables(tables, compare)), cut.explain())


def report_tables(
    tables: Iterable[ReplicaTable | TableReport], report: Callable[[ReplicaTable], TableReport]
) -> Iterator[TableReport]:
    """The report of each table; of one that Spanner does not have it is there already."""
    for each in tables:
        if isinstance(each, ReplicaTable):
            COMPARISON_STARTED.log(LOG, table=each.table.name)
            yield report(each)
        else:
            yield each


def open_tables(
    queries: QueryClient,
    copies: OpenCopy,
    cut: Cut,
    names: Sequence[str],
    mask_keys: tuple[MaskKey, ...] = (),
) -> Iterator[ReplicaTable | TableReport]:
    """The tables of a cut that are meant; of one that Spanner does not have, a report. Raises
    TableNotFoundError."""
    schema = read_epoch(queries.stream, cut.end).schema
    for name in select_tables(cut, names):
        table = schema.table(name)
        if table is None:
            yield report_problem(name, "Spanner has no such table at the cut")
        else:
            yield ReplicaTable(queries, schema, table, copies(name), cut, mask_keys)


def list_outside(copy: StoredCopy, described: TableCut) -> tuple[str, ...]:
    """What others have done to a copy after the version of a cut."""
    state = copy.read_state()
    if state is None:
        return ()
    if state.version < described.version:
        return (f"version {state.version} is the newest one: the copy was rolled back",)
    commits = list(copy.list_outside(described.version, state.version))
    if isinstance(copy, HeadedCopy):
        commits += copy.list_later()
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
    mask_keys: tuple[MaskKey, ...] = ()

    @property
    def described(self) -> TableCut:
        """The copy in the cut."""
        return self.cut.tables[self.table.name]

    @cached_property
    def row_filter(self) -> RowFilter | None:
        """Which rows the copy has. Raises ConfigurationError."""
        where = self.described.view.where
        return None if where is None else make_row_filter(where, self.table, self.schema.dialect)

    def list_masks(self, columns: Collection[str]) -> tuple[Mask, ...]:
        """The masks of some columns. Raises ConfigurationError for a hash whose key is not
        known."""
        return self.described.view.list_masks(self.table.name, self.mask_keys, columns)

    def compare(self, options: VerifyOptions) -> TableReport:
        """Compares them."""
        opened = self.open(options)
        if isinstance(opened, str):
            return report_problem(self.table.name, opened)
        return opened.report(opened.comparison.find())

    def open(self, options: VerifyOptions) -> OpenTable | str:
        """The two, ready to be compared; or why their columns cannot be."""
        copied = self._read_schema()
        if problem := self._explain_columns(copied):
            return problem
        order = KeyOrder.of_table(self.table, self.schema.dialect)
        key = find_columns(copied, self.table, order.names, one_zero=True)
        ignored = {n.casefold() for n in (*self.described.uncompared, *options.ignored_columns)}
        others = [
            each.name
            for each in sorted(self.table.columns, key=lambda column: column.name)
            if each.name in copied.names
            and each.name not in order.names
            and each.name.casefold() not in ignored
            and not options.keys_alone
        ]
        one_zero = self.schema.dialect is Dialect.POSTGRESQL
        masks = {mask.column: mask for mask in self.list_masks(others)}
        columns = tuple(
            replace(each, mask=masks.get(each.name))
            for each in find_columns(copied, self.table, others, one_zero)
        )
        condition = self._condition()
        room = CALLS_MAX - (0 if condition is None else count_calls(condition.sql))
        groups = Grouping(key, self.schema.dialect, options.data_boost, room).group(columns)
        names = tuple(column.name for column in self.table.columns)
        compared = ComparedTable(
            self.queries, self.table.name, names, order, groups, self.cut.end, condition
        )
        wanted = [*order.names, *others]
        comparison = Comparison(
            compared, partial(self._scan, wanted, groups), options.depth, options.data_boost
        )
        return OpenTable(
            replica=self,
            copied=copied,
            order=order,
            columns=columns,
            groups=groups,
            comparison=comparison,
            uncompared=tuple(n for n in names if n in copied.names and n not in wanted),
            left_out=tuple(name for name in names if name not in copied.names),
        )

    def _explain_columns(self, copied: pa.Schema) -> str:
        """Why the columns of the copy are not those that it is to have; empty where they are."""
        there = {each.name: is_supported(each.type) for each in self.table.columns}
        kept = [field.name for field in copied if is_dropped(field)]
        surplus = [
            name
            for name in copied.names
            if not there.get(name) and name not in (*STAMP_COLUMNS, *kept)
        ]
        if surplus:
            return f"Spanner has no column {', '.join(surplus)}, the copy has"
        left_out = {name.casefold() for name in self.described.left_out}
        missing = [
            name
            for name, supported in there.items()
            if supported and name not in copied.names and name.casefold() not in left_out
        ]
        return f"the copy has no column {', '.join(missing)}, Spanner has" if missing else ""

    def _read_schema(self) -> pa.Schema:
        check_version(self.copy, self.table.name, self.described.version, self.cut.end)
        return self.copy.read_schema(self.described.version)

    def _scan(
        self, names: Sequence[str], groups: Sequence[ColumnGroup], keep: Keep | None
    ) -> Iterable[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self.copy.scan(self.described.version, names)
        if keep is not None:
            batches = (each.filter(pa.array(keep(each))) for each in batches)
        return add_hashes(batches, groups)

    def _condition(self) -> RowCondition | None:
        """Leaves out what the copy has not: rows that do not satisfy its condition, and softly
        deleted ones."""
        sql, row_filter = DIALECTS[self.schema.dialect], self.row_filter
        kept = [] if row_filter is None else [render_filter(row_filter, sql)]
        return combine_conditions([*kept, *self._render_deleted()])

    def _render_deleted(self) -> Iterator[RowCondition]:
        if (name := self.described.deleted) is None:
            return
        column = self.table.column(name)
        quoted = DIALECTS[self.schema.dialect].quote_column(name)
        if column is not None and column.type.code is TypeCode.BOOL:
            yield RowCondition(f"COALESCE({quoted}, FALSE) = FALSE")
        else:
            yield RowCondition(f"{quoted} IS NULL")


@dataclass(frozen=True)
class OpenTable:
    """A table and its copy, as they are compared: the columns of the copy, those of the key, and
    the others that are compared."""

    replica: ReplicaTable
    copied: pa.Schema
    order: KeyOrder
    columns: tuple[ComparedColumn, ...]
    groups: tuple[ColumnGroup, ...]
    comparison: Comparison
    uncompared: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The columns that are compared, those of the key first."""
        return [*self.order.names, *(each.name for each in self.columns)]

    def report(self, found: Found) -> TableReport:
        """What was found."""
        report = self.comparison.report(found, self.uncompared)
        described = self.replica.described
        return replace(
            report, left_out=self.left_out, caveats=described.caveats, view=described.view
        )


def find_columns(
    copied: pa.Schema, table: Table, names: Sequence[str], one_zero: bool = False
) -> tuple[ComparedColumn, ...]:
    """Columns of a table as they are compared with those of its copy."""
    columns = {column.name: column for column in table.columns}
    return tuple(
        ComparedColumn(name, columns[name].type, is_exact(copied.field(name).type), one_zero)
        for name in names
    )


def is_exact(type_: pa.DataType) -> bool:
    """Whether a copy keeps a TIMESTAMP, or those of an array, as text."""
    return bool(pa.types.is_string(getattr(type_, "value_type", type_)))


def report_problem(table: str, problem: str) -> TableReport:
    """A table that cannot be compared."""
    return TableReport(table, 0, 0, 0, 0, (), True, (), problem)
