"""Read-only transactions: every read at one timestamp, without ever waiting for a writer's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from emulator.engine.catalogs import Catalogs
from emulator.engine.dml import bind_parameters
from emulator.engine.privileges import Rights
from emulator.engine.query_stats import QueryStats
from emulator.engine.reads import ReadPlan, merge_rows, plan_read
from emulator.engine.refusals import too_old, translate_error, unknown_table
from emulator.engine.results import (
    Bindings,
    Check,
    nothing_to_release,
    query_plan,
    rows_in_memory,
    start_query,
)
from emulator.engine.snapshots import Snapshot, Snapshots
from emulator.engine.splits import QueryPartition, key_ranges
from emulator.engine.state import CompiledStatement, SchemaState
from emulator.engine.timeline import Timeline
from emulator.engine.write_plans import Moment
from emulator.errors import invalid_argument
from emulator.sql.statements import CompiledQuery, Statement
from emulator.storage.history import table_source
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import KeyRange, KeySet, ResultRows, Stats, Stored
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import Schema


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a read needs of its database.

    ``newest`` gives the schema as it is now, ``state_at`` the one valid at a timestamp, in a file
    whose schema is given.
    """

    snapshots: Snapshots
    timeline: Timeline
    newest: Callable[[], SchemaState]
    state_at: Callable[[int, SchemaState], SchemaState]
    oldest_readable: Callable[[], int]
    query_stats: QueryStats
    catalogs: Catalogs


class ReadOnlyTransaction:
    """Reads at ``read_timestamp_micros``, as often as you like, until version collection."""

    def __init__(self, around: Surroundings, read_timestamp_micros: int) -> None:
        self._around = around
        self.read_timestamp_micros = read_timestamp_micros

    @property
    def state(self) -> SchemaState:
        """The schema valid at the timestamp. Raises when versions of that time are collected."""
        micros, newest = self.read_timestamp_micros, self._around.newest()
        if micros < self._around.oldest_readable():
            raise too_old(timestamp_from_micros(micros))
        return self._around.state_at(micros, newest)

    def query(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        profile: bool = False,
        check: Check | None = None,
        part: QueryPartition | None = None,
        rights: Rights | None = None,
    ) -> ResultRows:
        """The rows of a query, or of one partition of it, read lazily from a snapshot.

        ``check`` is called now and then while SQLite works; what it raises ends the query. The
        catalog shows what ``rights`` are for.
        """
        if reads_catalog(statement.plain):
            return self._query_catalog(statement, params, rights)
        snapshot = self._snapshot()
        try:
            return self._query(snapshot, QueryRequest(statement, params, profile, check, part))
        except BaseException:
            self._around.snapshots.close(snapshot, complete=True)
            raise

    def explain(
        self, statement: CompiledStatement, params: Mapping[str, Stored]
    ) -> tuple[str, ...]:
        """SQLite's plan of a query, a line a step, which is not run: whatever its values are. The
        catalog has none."""
        if reads_catalog(statement.plain):
            return ()
        snapshot = self._snapshot()
        try:
            query, values = self._prepare(snapshot, QueryRequest(statement, params, profile=True))
            return query_plan(snapshot.reader.connection, query.sql, values)
        except apsw.Error as error:
            raise translate_error(error, snapshot.state.schema) from error
        finally:
            self._around.snapshots.close(snapshot, complete=True)

    def _query_catalog(
        self, statement: CompiledStatement, params: Mapping[str, Stored], rights: Rights | None
    ) -> ResultRows:
        now = is_wrong(Wrong.SCHEMA_AT_TIMESTAMP)
        state = self._around.newest() if now else self.state
        query = expect_query(state.recompile(statement).plain)
        values = self._values(query, params)
        return self._around.catalogs.rows(state, query, values, self._around.query_stats, rights)

    def read(
        self,
        table: str,
        index: str | None,
        columns: Sequence[str],
        keys: KeySet,
        limit: int = 0,
        *,
        check: Check | None = None,
        within: KeyRange | None = None,
    ) -> ResultRows:
        """Rows by key, in key order, read lazily from a snapshot; ``check`` as in ``query``."""
        snapshot = self._snapshot()
        try:
            refuse_changed(snapshot.state.schema, self._around.newest().schema, [table])
            plan = plan_read(snapshot.state.schema, table, index, columns, keys, limit, within)
            return self._read(snapshot, plan, check)
        except BaseException:
            self._around.snapshots.close(snapshot, complete=True)
            raise

    def splits(
        self, table: str, index: str | None, keys: KeySet, partitions_max: int
    ) -> list[KeyRange]:
        """Ranges of keys, each with about as many of the rows, that together hold all rows."""
        snapshot = self._snapshot()
        try:
            plan = plan_read(snapshot.state.schema, table, index, (), keys, 0)
            as_of = snapshot.tables_changed_since([plan.table.name], self._around.timeline)
            tables = table_source(as_of, counted=False, placement=snapshot.state.placement)
            moment = self.read_timestamp_micros if as_of else None

            def fetch(sql: str, values: Bindings) -> list[tuple[Stored, ...]]:
                bindings = bind_positions(sql, values, moment)
                return list(snapshot.reader.connection.execute(sql, bindings))

            return key_ranges(plan, fetch, tables, partitions_max)
        finally:
            self._around.snapshots.close(snapshot, complete=True)

    def close(self) -> None:
        """Nothing is held between reads."""

    def _snapshot(self) -> Snapshot:
        """A snapshot at the timestamp. Raises when versions of that time are collected."""
        snapshot = self._around.snapshots.open(self.read_timestamp_micros)
        if self.read_timestamp_micros < self._around.oldest_readable():
            self._around.snapshots.close(snapshot, complete=True)
            raise too_old(timestamp_from_micros(self.read_timestamp_micros))
        return snapshot

    def _query(self, snapshot: Snapshot, request: QueryRequest) -> ResultRows:
        query, values = self._prepare(snapshot, request)
        return start_query(
            snapshot.reader,
            query.sql,
            values,
            query.columns,
            snapshot.state.schema,
            self._release(snapshot),
            profile=request.profile,
            check=request.check,
        )

    def _prepare(
        self, snapshot: Snapshot, request: QueryRequest
    ) -> tuple[CompiledQuery, dict[str, Stored]]:
        """The query as it is run, and its values."""
        state = snapshot.state
        statement = state.recompile(request.statement)
        tables = expect_query(statement.plain).tables
        refuse_changed(state.schema, self._around.newest().schema, tables)
        within, bounds = request.part.condition(state.schema) if request.part else ("", {})
        as_of = snapshot.tables_changed_since(
            expect_query(statement.plain).tables, self._around.timeline
        )
        query = expect_query(statement.read_as(as_of, counted=request.profile, within=within))
        values = self._values(query, request.params) | bounds
        if as_of:
            values["asof_"] = self.read_timestamp_micros
        return query, values

    def _values(self, statement: CompiledQuery, params: Mapping[str, Stored]) -> dict[str, Stored]:
        return bind_parameters(statement.bindings, params, Moment.at(self.read_timestamp_micros))

    def _release(self, snapshot: Snapshot) -> Callable[[bool], None]:
        def release(complete: bool) -> None:
            self._around.snapshots.close(snapshot, complete=complete)

        return release

    def _read(self, snapshot: Snapshot, plan: ReadPlan, check: Check | None) -> ResultRows:
        as_of = snapshot.tables_changed_since([plan.table.name], self._around.timeline)
        tables = table_source(as_of, counted=False, placement=snapshot.state.placement)
        width = len(plan.columns)
        release = self._release(snapshot)

        def fetch(sql: str, values: Bindings, finish: Callable[[bool], None]) -> ResultRows:
            bindings = bind_positions(sql, values, self.read_timestamp_micros if as_of else None)
            schema = snapshot.state.schema
            return start_query(
                snapshot.reader, sql, bindings, plan.columns, schema, finish, check=check
            )

        if plan.single:
            ((sql, values),) = plan.statements(tables) or [plan.statement(tables, ())]
            rows = fetch(sql, values, release)
            rows.rows = (row[:width] for row in rows.rows)
            return rows
        merged = merge_rows(
            plan, lambda sql, values: fetch(sql, values, nothing_to_release).rows, tables
        )
        release(True)
        return rows_in_memory(plan.columns, merged, Stats())


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query with the values of its parameters, and how it is to be read."""

    statement: CompiledStatement
    params: Mapping[str, Stored]
    profile: bool
    check: Check | None = None
    part: QueryPartition | None = None


def reads_catalog(statement: Statement) -> bool:
    """Whether it is a query of the catalog. Raises INVALID_ARGUMENT for one that draws numbers."""
    if not isinstance(statement, CompiledQuery):
        return False
    if statement.draws:
        raise invalid_argument(
            "GET_NEXT_SEQUENCE_VALUE is only allowed in read-write transactions."
        )
    return bool(statement.catalog)


def expect_query(statement: Statement) -> CompiledQuery:
    """The statement. Raises INVALID_ARGUMENT for DML, which a read-only transaction refuses."""
    if not isinstance(statement, CompiledQuery):
        raise invalid_argument(
            "DML statements can only be performed in a read-write or partitioned-dml "
            "transaction. Current transaction type is ReadOnly."
        )
    return statement


def bind_positions(sql: str, values: Bindings, as_of: int | None) -> Bindings:
    """The values of a read's question marks; ``:asof_`` comes first where the text names it.

    The FROM clause comes before the conditions, so its parameter has number 1.
    """
    if as_of is None or not isinstance(values, tuple):
        return values
    return (as_of, *values) if ":asof_" in sql else values


BEFORE_CHANGES = (
    Wrong.COLUMNS_AT_TIMESTAMP,
    Wrong.DROPPED_TABLE_READABLE,
    Wrong.RENAMED_TABLE_READABLE,
)


def refuse_changed(then: Schema, now: Schema, tables: Iterable[str]) -> None:
    """Wrong on purpose: refuses to read a table as it was before a schema change."""
    if not any(map(is_wrong, BEFORE_CHANGES)):
        return
    for name in tables:
        before, after = then.table(name), now.table(name)
        if before is None:
            continue
        successors = [t for t in now.tables if then.table(t.name) is None]
        # It may have got a column since.
        renamed = any(t.columns[: len(before.columns)] == before.columns for t in successors)
        if after is not None and before.columns != after.columns:
            entry = Wrong.COLUMNS_AT_TIMESTAMP
        elif after is None:
            entry = Wrong.RENAMED_TABLE_READABLE if renamed else Wrong.DROPPED_TABLE_READABLE
        else:
            continue
        if is_wrong(entry):
            raise unknown_table(name)
