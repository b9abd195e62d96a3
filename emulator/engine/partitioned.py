"""Partitioned DML: one idempotent statement, part by part, each part a commit of its own."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from emulator.engine.dml import DmlExecutor, bind_parameters, count_scans
from emulator.engine.pending_timestamps import PendingTimestamps
from emulator.engine.refusals import translate_error, unknown_table
from emulator.engine.state import CompiledStatement, SchemaState
from emulator.engine.write_plans import Moment
from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError, invalid_argument, unsupported
from emulator.sql.statements import Delete, Statement, Update
from emulator.storage.sqlite import Storage, current_table, index_name
from emulator.values.requests import PLAIN_ORIGIN, DmlResult, Stored, TransactionOrigin
from emulator.values.sqlite_text import quote_name

ROWS_AT_ONCE = 2_000
LOCK_WAIT_SECONDS = 60.0


class PartitionedDmlTransaction:
    """Finds the rows first, without a lock, and then writes them a few thousand at a time.

    A row that changes in between is judged again, so it is written only if it still fits.
    """

    def __init__(
        self, storage: Storage, writer: DatabaseWriter, origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> None:
        self._origin = origin
        self._storage = storage
        self._writer = writer
        self._age = writer.locks.next_age()

    @property
    def state(self) -> SchemaState:
        """The schema as it is now."""
        return self._writer.state

    def execute(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        counted: bool = False,
    ) -> DmlResult:
        """Runs an UPDATE or DELETE; the result has a lower bound of the number of rows.

        ``counted`` counts the rows that are scanned to find those that fit.
        """
        state = self._writer.state
        change = refuse_others(state.recompile(statement).plain, state)
        if change.asserted_rows is not None:
            raise invalid_argument("ASSERT_ROWS_MODIFIED is not supported in partitioned DML.")
        rows, scanned = self._find_rows(state, count_scans(change) if counted else change, params)
        count = sum(
            self._execute_part(statement, params, rows[start : start + ROWS_AT_ONCE])
            for start in range(0, len(rows), ROWS_AT_ONCE)
        )
        return DmlResult(count, rows_scanned=scanned)

    def _find_rows(
        self, state: SchemaState, statement: Update | Delete, params: Mapping[str, Stored]
    ) -> tuple[array[int], int]:
        """The rows that fit now, by their number in SQLite, and how many rows were counted."""
        table = state.schema.table(statement.table)
        if table is None:
            raise unknown_table(statement.table)
        index = state.schema.index(statement.index) if statement.index else None
        hint = f" INDEXED BY {index_name(index.name)}" if index else ""
        alias = quote_name(statement.alias)
        sql = (
            f"SELECT {alias}._rowid_ FROM {current_table(table.name)} AS {alias}{hint} "
            f"WHERE {statement.where_sql}"
        )
        moment = Moment.pending(self._writer.clock.now())
        values = bind_parameters(statement.bindings, params, moment)
        reader = self._storage.borrow()
        try:
            reader.scanned[0] = 0
            rows = array("q", (row[0] for row in reader.connection.execute(sql, values)))
            return rows, reader.scanned[0]
        except apsw.Error as error:
            raise translate_error(error, state.schema) from error
        finally:
            self._storage.give_back(reader)

    def _execute_part(
        self, statement: CompiledStatement, params: Mapping[str, Stored], rows: Sequence[int]
    ) -> int:
        """One commit. The schema may have changed since the rows were found."""
        writer = self._writer
        count = 0

        def work(micros: int) -> None:
            nonlocal count
            state = writer.state
            part = restrict_to_rows(refuse_others(state.recompile(statement).plain, state))
            pending = PendingTimestamps(writer.connection, state)
            dml = DmlExecutor(writer.connection, state, pending)
            for name in tables_changed_by(state, part):
                writer.timeline.note_change(name, micros)
            count = dml.execute(part, params, Moment.at(micros), json.dumps(list(rows))).row_count
            writer.finish(micros, self._origin)

        change = refuse_others(statement.plain, writer.state)
        tables = writer.state.with_parents(tables_changed_by(writer.state, change))
        writer.commit_rows(tables, work, self._age, LOCK_WAIT_SECONDS)
        return count


def tables_changed_by(state: SchemaState, statement: Update | Delete) -> set[str]:
    """The tables that a statement may change."""
    if isinstance(statement, Delete):
        return state.tables_changed_by_delete(statement.table)
    return {statement.table.casefold()}


def restrict_to_rows(statement: Update | Delete) -> Update | Delete:
    """The statement for some rows only; found by number, so a forced index is not needed."""
    where = (
        f"{quote_name(statement.alias)}._rowid_ IN (SELECT value FROM json_each(:rows_)) "
        f"AND ({statement.where_sql})"
    )
    return replace(statement, where_sql=where, index=None)


def refuse_others(statement: Statement, state: SchemaState) -> Update | Delete:
    """Only an UPDATE or DELETE that looks at nothing but the row itself can be partitioned."""
    if not isinstance(statement, Update | Delete):
        raise invalid_argument("INSERT is not supported for Partitioned DML.")
    if statement.tables:
        raise not_partitionable(f"it has a subquery over {', '.join(sorted(statement.tables))}")
    if statement.returning is not None:
        raise unsupported("THEN RETURN is not supported in Partitioned DML.")
    if state.schema.table(statement.table) is None:
        raise unknown_table(statement.table)
    return statement


def not_partitionable(why: str) -> SpannerError:
    """A statement that cannot be run row by row."""
    return invalid_argument(f"The statement is not fully partitionable: {why}.")
