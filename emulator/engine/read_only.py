"""Read-only transactions: every read at one timestamp, without ever waiting for a writer's lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import apsw

from ddl.schema import Type
from emulator import catalog
from emulator.engine.clock import timestamp_text
from emulator.engine.dml import bound
from emulator.engine.reads import ReadPlan, merged, plan_read
from emulator.engine.refusals import from_sqlite, too_old
from emulator.engine.requests import KeySet, Rows, Stats, Stored
from emulator.engine.results import Bindings, collected, replayed, stream
from emulator.engine.state import SchemaState
from emulator.engine.timeline import Timeline
from emulator.engine.write_plans import Moment
from emulator.errors import failed_precondition
from emulator.sql.statements import Query
from emulator.storage.history import source
from emulator.storage.sqlite import Reader, Storage

READ_STATE = 'SELECT last_commit, schema_version FROM "$state"'


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a read needs of its database. ``state`` gives the schema as it is now."""

    storage: Storage
    timeline: Timeline
    state: Callable[[], SchemaState]
    oldest_readable: Callable[[], int]


class ReadOnlyTransaction:
    """Reads at ``read_timestamp_micros``, as often as you like, until version collection."""

    def __init__(self, around: Surroundings, read_timestamp_micros: int) -> None:
        self._around = around
        self.read_timestamp_micros = read_timestamp_micros

    def query(
        self,
        sql: str,
        params: Mapping[str, Stored],
        types: Mapping[str, Type],
        *,
        profile: bool = False,
    ) -> Rows:
        """The rows of a query, read lazily from a snapshot."""
        state = self._around.state()
        statement = state.compile(sql, types, counted=profile)
        if isinstance(statement, Query) and statement.catalog:
            return catalog_rows(state, statement, self._values(statement, params))
        state, reader = self._snapshot()
        try:
            return self._query(state, reader, sql, params, types, profile)
        except BaseException:
            self._around.storage.give_back(reader)
            raise

    def read(
        self,
        table: str,
        index: str | None,
        columns: Sequence[str],
        keys: KeySet,
        limit: int = 0,
    ) -> Rows:
        """Rows by key, in key order, read lazily from a snapshot."""
        state, reader = self._snapshot()
        try:
            plan = plan_read(state.schema, table, index, columns, keys, limit)
            return self._read(state, reader, plan)
        except BaseException:
            self._around.storage.give_back(reader)
            raise

    def close(self) -> None:
        """Nothing is held between reads."""

    def _snapshot(self) -> tuple[SchemaState, Reader]:
        """A connection that sees the file as it is now, and the schema that belongs to it."""
        around = self._around
        while True:
            reader = around.storage.borrow()
            state = around.state()
            reader.connection.execute("BEGIN")
            row = reader.connection.execute(READ_STATE).fetchone()
            if row is not None and row[1] == state.version:
                break
            around.storage.give_back(reader)
        if self.read_timestamp_micros < around.oldest_readable():
            around.storage.give_back(reader)
            raise too_old(timestamp_text(self.read_timestamp_micros))
        return state, reader

    def _query(
        self,
        state: SchemaState,
        reader: Reader,
        sql: str,
        params: Mapping[str, Stored],
        types: Mapping[str, Type],
        profile: bool,
    ) -> Rows:
        statement = state.compile(sql, types, counted=profile)
        if not isinstance(statement, Query):
            raise failed_precondition(
                "DML statements can only be performed in a read-write or partitioned-dml "
                "transaction."
            )
        values = self._values(statement, params)
        as_of = self._changed_since(statement.tables)
        if as_of:
            values["asof_"] = self.read_timestamp_micros
            as_then = state.compile(sql, types, as_of, counted=profile)
            statement = as_then if isinstance(as_then, Query) else statement
        return self._stream(state, reader, statement, values, profile)

    def _values(self, statement: Query, params: Mapping[str, Stored]) -> dict[str, Stored]:
        return bound(statement.bindings, params, Moment.at(self.read_timestamp_micros))

    def _stream(
        self,
        state: SchemaState,
        reader: Reader,
        statement: Query,
        values: Bindings,
        profile: bool,
    ) -> Rows:
        def release() -> None:
            self._around.storage.give_back(reader)

        return stream(
            reader,
            statement.sql,
            values,
            statement.columns,
            state.schema,
            release,
            profile=profile,
        )

    def _read(self, state: SchemaState, reader: Reader, plan: ReadPlan) -> Rows:
        as_of = self._changed_since([plan.table.name])
        tables = source(as_of, counted=False)
        width = len(plan.columns)

        def release() -> None:
            self._around.storage.give_back(reader)

        def fetch(sql: str, values: Bindings, finish: Callable[[], None]) -> Rows:
            given = positional(sql, values, self.read_timestamp_micros if as_of else None)
            return stream(reader, sql, given, plan.columns, state.schema, finish)

        if plan.single:
            ((sql, values),) = plan.statements(tables) or [plan.statement(tables, ())]
            rows = fetch(sql, values, release)
            rows.rows = (row[:width] for row in rows.rows)
            return rows
        found = merged(plan, lambda sql, values: fetch(sql, values, lambda: None).rows, tables)
        release()
        return replayed(plan.columns, found, Stats())

    def _changed_since(self, tables: Collection[str]) -> frozenset[str]:
        """The tables that must be read as they were: the snapshot may show later changes."""
        last_change, at = self._around.timeline.last_change, self.read_timestamp_micros
        names = (name.casefold() for name in tables)
        return frozenset(name for name in names if last_change(name) > at)


def positional(sql: str, values: Bindings, as_of: int | None) -> Bindings:
    """The values of a read's question marks; ``:asof_`` comes first where it stands first.

    The source of a FROM clause stands before the conditions, so its parameter has number 1.
    """
    if as_of is None or not isinstance(values, tuple):
        return values
    return (as_of, *values) if ":asof_" in sql else values


def catalog_rows(state: SchemaState, statement: Query, values: Mapping[str, Stored]) -> Rows:
    """A query over INFORMATION_SCHEMA, answered from the schema alone."""
    connection = catalog.connection(state.schema, statement.catalog)
    try:
        return collected(
            Reader(connection, [0]), statement.sql, values, statement.columns, state.schema
        )
    except apsw.Error as error:
        raise from_sqlite(error, state.schema) from error
    finally:
        connection.close()
