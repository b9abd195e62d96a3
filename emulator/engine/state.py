"""A schema as the engine uses it: its version, its layout, and what was compiled for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property

import apsw

from emulator.engine.cascades import cascading_keys
from emulator.engine.locks.conditions import TableConditions, statement_conditions
from emulator.engine.locks.footprints import RowReader, row_reader
from emulator.engine.privileges import Reads, Rights
from emulator.engine.statement_reads import StatementReads, list_columns_read
from emulator.engine.write_plans import WritePlan, plan_write
from emulator.sql.compile import compile_statement
from emulator.sql.hints import STATISTICS_PACKAGE
from emulator.sql.partitionable import PartitionedTable, find_partitioned_table
from emulator.sql.statements import CompiledQuery, Delete, Statement, TableSource, Update
from emulator.storage.history import AS_IT_IS, Placement, table_source
from emulator.storage.layout import TableLayout, tables_referred_to
from emulator.values.requests import Mutation, MutationKind, RowWrite
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.protos import list_bundle_types

STATEMENTS_MAX = 2_000
VARIANTS_MAX = 100
SCHEMAS_MAX = 64
DELETING = frozenset({MutationKind.REPLACE})
AS_THEY_ARE: frozenset[str] = frozenset()
"""Reads every table as it is now."""


class CatalogStatements:
    """Queries of INFORMATION_SCHEMA, which each new schema would compile again.

    They are the same for every schema, but for those that may have to do with protocol buffers or
    packages of statistics.
    """

    def __init__(self) -> None:
        self._known: dict[object, Statement] = {}

    def compile(
        self, text: str, schema: Schema, types: Mapping[str, Type], tables: TableSource
    ) -> Statement:
        """As ``compile_statement``."""
        if list_bundle_types(schema) or STATISTICS_PACKAGE in text.upper():
            return compile_statement(text, schema, types, tables)
        key = (schema.dialect, text, tuple(sorted(types.items())))
        statement = self._known.get(key)
        if statement is None:
            statement = compile_statement(text, schema, types, tables)
            if reads_only_catalog(statement):
                if len(self._known) >= STATEMENTS_MAX:
                    self._known.clear()
                self._known[key] = statement
        return statement


CATALOG = CatalogStatements()


def reads_only_catalog(statement: Statement) -> bool:
    """Whether it is a query of INFORMATION_SCHEMA and of nothing else."""
    return (
        isinstance(statement, CompiledQuery)
        and bool(statement.catalog)
        and not (statement.tables or statement.views or statement.functions or statement.draws)
    )


class CompiledStatement:
    """A statement compiled for a schema. ``plain`` reads every table as it is now."""

    __slots__ = (
        "_conditions",
        "_partitioned",
        "_variants",
        "placement",
        "plain",
        "schema",
        "text",
        "types",
    )

    def __init__(
        self, text: str, types: Mapping[str, Type], schema: Schema, placement: Placement
    ) -> None:
        self.text = text
        self.types = types
        self.schema = schema
        self.placement = placement
        self._variants: dict[tuple[frozenset[str], bool, str], Statement] = {}
        self._partitioned: PartitionedTable | None = None
        self._conditions: tuple[TableConditions, ...] | None = None
        self.plain = self.read_as(AS_THEY_ARE)

    def read_as(
        self, as_of: frozenset[str], *, counted: bool = False, within: str = ""
    ) -> Statement:
        """The statement for one way of reading its tables; compiled once for each."""
        if self._variants and self._reads_no_table():
            return self.plain
        key = (as_of, counted, within)
        statement = self._variants.get(key)
        if statement is None:
            tables = table_source(as_of, counted=counted, within=within, placement=self.placement)
            statement = CATALOG.compile(self.text, self.schema, self.types, tables)
            if len(self._variants) >= VARIANTS_MAX:
                self._variants.clear()
            self._variants[key] = statement
        return statement

    def _reads_no_table(self) -> bool:
        """Whether every variant is the same, as of an INSERT of values."""
        return not (self.plain.tables or isinstance(self.plain, Update | Delete))

    def conditions(self) -> tuple[TableConditions, ...]:
        """What the statement asks of the tables that it reads; a transaction locks what fits."""
        if self._conditions is None:
            types = {each.name.casefold(): each.type for each in self.plain.bindings.user}
            tables = self.plain.tables
            if isinstance(self.plain, Update | Delete):
                tables = (*tables, self.plain.table)
            found: tuple[TableConditions, ...] = ()
            if tables:
                found = statement_conditions(self.text, self.schema, types, tables)
            self._conditions = found
        return self._conditions

    def find_partitioned_table(self) -> PartitionedTable:
        """By what a query is cut into partitions.

        Raises INVALID_ARGUMENT for a query that cannot be cut.
        """
        if self._partitioned is None:
            self._partitioned = find_partitioned_table(self.text, self.schema, self.types)
        return self._partitioned


class Compiled:
    """What was compiled for a schema: it serves every database that has an equal one."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plans: dict[tuple[str, tuple[str, ...]], WritePlan] = {}
        self.statements: dict[object, CompiledStatement] = {}


class KnownSchemas:
    """The schemas that were used last, with what was compiled for each. Thread-safe.

    Tests make hundreds of databases with one schema: each would compile its statements again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[object, Compiled] = OrderedDict()

    def find(self, schema: Schema) -> Compiled:
        """What was compiled for an equal schema; nothing yet if there is none."""
        key = tuple(
            tuple(sorted(value.items())) if isinstance(value, Mapping) else value
            for value in (getattr(schema, each.name) for each in fields(schema) if each.compare)
        )
        with self._lock:
            compiled = self._known.pop(key, None) or Compiled(schema)
            self._known[key] = compiled
            if len(self._known) > SCHEMAS_MAX:
                self._known.popitem(last=False)
        return compiled


SCHEMAS = KnownSchemas()


class SchemaState:
    """Immutable, apart from its caches.

    It is valid from the timestamp ``since`` on, in Unix microseconds, until there is a later one.
    ``version`` is that of the file for which it is made; where its tables lie in a file of a later
    schema is its ``placement``.
    """

    def __init__(
        self,
        version: int,
        schema: Schema,
        layouts: Mapping[str, TableLayout],
        since: int,
        placement: Placement = AS_IT_IS,
    ) -> None:
        self.version = version
        self.schema = schema
        self.layouts = layouts
        self.since = since
        self.placement = placement
        self.has_references = any(table.foreign_keys for table in schema.tables)
        self.cascading_keys = cascading_keys(schema)
        self._columns_read: dict[str, frozenset[tuple[str, str]]] = {}
        self._row_readers: dict[str, RowReader | None] = {}
        self._locked: dict[frozenset[tuple[str, bool]], frozenset[str]] = {}
        self._rights: dict[str, Rights] = {}
        self._reads: StatementReads | None = None

    @cached_property
    def _compiled(self) -> Compiled:
        """Looked for when something is compiled: most states of a long change of schemas never
        are. Of a file of a later schema nothing is shared."""
        return SCHEMAS.find(self.schema) if self.placement is AS_IT_IS else Compiled(self.schema)

    def write_plan(self, table: str, columns: tuple[str, ...]) -> WritePlan:
        """The prepared statements for writing these columns."""
        plans = self._compiled.plans
        plan = plans.get((table, columns))
        if plan is None:
            plan = plan_write(self.schema, table, columns)
            if len(plans) >= STATEMENTS_MAX:
                plans.clear()
            plans[table, columns] = plan
        return plan

    def compile(self, sql: str, types: Mapping[str, Type]) -> CompiledStatement:
        """A statement for this schema; compiled once per text and types."""
        key = (sql, tuple(sorted(types.items())))
        statements = self._compiled.statements
        statement = statements.get(key)
        if statement is None:
            statement = CompiledStatement(sql, types, self._compiled.schema, self.placement)
            if len(statements) >= STATEMENTS_MAX:
                statements.clear()
            statements[key] = statement
        return statement

    def recompile(self, statement: CompiledStatement) -> CompiledStatement:
        """A statement for this schema; the same one if it was compiled for it."""
        if statement.schema is self._compiled.schema and statement.placement is self.placement:
            return statement
        return self.compile(statement.text, statement.types)

    def rights(self, role: str) -> Rights:
        """The privileges of a role. Raises PERMISSION_DENIED for one that does not exist."""
        rights = self._rights.get(role)
        if rights is None:
            rights = self._rights[role] = Rights(self.schema, role)
        return rights

    def find_reads(self, statement: CompiledStatement) -> Reads:
        """The columns that a statement reads, of tables, and of views with their definer's
        rights."""
        if self._reads is None:
            self._reads = StatementReads(self.schema)
        return self._reads.find(statement.text, statement.types)

    def tables_changed_by_delete(self, table: str) -> set[str]:
        """The tables, in lower case, that a delete may change: this one and those that cascade."""
        affected: set[str] = set()
        waiting = [table.casefold()]
        while waiting:
            name = waiting.pop()
            if name in affected:
                continue
            affected.add(name)
            for child in self.schema.tables:
                parents = {key.referenced_table.casefold() for key in child.foreign_keys}
                if child.interleave is not None:
                    parents.add(child.interleave.parent.casefold())
                if name in parents:
                    waiting.append(child.name.casefold())
        return affected

    def tables_locked_by(self, mutations: Sequence[Mutation]) -> frozenset[str]:
        """The tables, in lower case, that mutations may change or look at."""
        written = frozenset(
            (mutation.table, isinstance(mutation, RowWrite) and mutation.kind not in DELETING)
            for mutation in mutations
        )
        locked = self._locked.get(written)
        if locked is None:
            names: set[str] = set()
            for table, only_written in written:
                alone = {table.casefold()}
                names |= alone if only_written else self.tables_changed_by_delete(table)
            locked = self._locked[written] = frozenset(self.with_parents(names))
        return locked

    def with_parents(self, names: set[str]) -> set[str]:
        """Tables, in lower case, and those to which their rows refer."""
        tables = (self.schema.table(name) for name in names)
        return names.union(*(tables_referred_to(table) for table in tables if table is not None))

    def row_reader(self, table: str) -> RowReader | None:
        """How locks read the rows of a table (in lower case); None when it is not there."""
        if table not in self._row_readers:
            known = self.schema.table(table)
            self._row_readers[table] = None if known is None else row_reader(self.schema, known)
        return self._row_readers[table]

    def columns_read(self, connection: apsw.Connection, sql: str) -> frozenset[tuple[str, str]]:
        """The SQLite tables and columns that a statement reads, asked of SQLite itself."""
        columns = self._columns_read.get(sql)
        if columns is None:
            columns = list_columns_read(connection, sql)
            if len(self._columns_read) >= STATEMENTS_MAX:
                self._columns_read.clear()
            self._columns_read[sql] = columns
        return columns
