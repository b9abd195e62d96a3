"""Read-write transactions: one at a time, serializable, with the timestamp known at commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from enum import Enum

import apsw

from ddl.schema import Type
from emulator.engine.dml import Dml, bound, commit_columns
from emulator.engine.read_only import catalog_rows
from emulator.engine.reads import merged, plan_read
from emulator.engine.refusals import transaction_closed
from emulator.engine.requests import Committed, DmlResult, KeySet, Mutation, Rows, Stats, Stored
from emulator.engine.results import collected, replayed
from emulator.engine.state import SchemaState
from emulator.engine.write_plans import PENDING_TEXT, Moment
from emulator.engine.writer import SET_LAST_COMMIT, Writer
from emulator.errors import SpannerError, aborted, invalid_argument
from emulator.sql.statements import Query
from emulator.storage.history import source
from emulator.storage.sqlite import PENDING, current, quote, replaced

LOCK_WAIT_SECONDS = 15.0


class Phase(Enum):
    """Where a transaction stands."""

    NEW = "new"
    ACTIVE = "active"
    CLOSED = "closed"
    ABORTED = "aborted"


class ReadWriteTransaction:
    """Takes the turn to write at its first read or DML, and keeps it until commit or rollback."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._mutex = threading.RLock()
        self._phase = Phase.NEW
        self._last_used = time.monotonic()
        self._dml: Dml | None = None

    def query(
        self,
        sql: str,
        params: Mapping[str, Stored],
        types: Mapping[str, Type],
        *,
        profile: bool = False,
    ) -> Rows:
        """The rows of a query, with the transaction's own DML in them."""
        with self._mutex:
            self._refuse_closed()
            statement = self._writer.state.compile(sql, types, counted=profile)
            if not isinstance(statement, Query):
                raise invalid_argument("A DML statement was sent where a query is expected.")
            dml = self._active()
            statement = dml.state.compile(sql, types, counted=profile)
            if not isinstance(statement, Query):
                raise invalid_argument("A DML statement was sent where a query is expected.")
            values = bound(statement.bindings, params, self._moment())
            if statement.catalog:
                return catalog_rows(dml.state, statement, values)
            dml.refuse_pending(statement.sql)
            return collected(
                self._writer.reader,
                statement.sql,
                values,
                statement.columns,
                dml.state.schema,
                profile=profile,
            )

    def read(
        self,
        table: str,
        index: str | None,
        columns: Sequence[str],
        keys: KeySet,
        limit: int = 0,
    ) -> Rows:
        """Rows by key, with the transaction's own DML in them."""
        with self._mutex:
            self._refuse_closed()
            dml = self._active()
            plan = plan_read(dml.state.schema, table, index, columns, keys, limit)
            tables = source((), counted=False)
            for sql, _ in plan.statements(tables)[:1]:
                dml.refuse_pending(sql)
            found = merged(
                plan,
                lambda sql, values: (
                    collected(self._writer.reader, sql, values, plan.columns, dml.state.schema).rows
                ),
                tables,
            )
            return replayed(plan.columns, found, Stats())

    def execute_dml(
        self, sql: str, params: Mapping[str, Stored], types: Mapping[str, Type]
    ) -> DmlResult:
        """Runs a DML statement; one that fails leaves nothing and the transaction goes on."""
        with self._mutex:
            self._refuse_closed()
            self._writer.state.compile(sql, types)
            dml = self._active()
            statement = dml.state.compile(sql, types)
            if isinstance(statement, Query):
                raise invalid_argument("A query was sent where a DML statement is expected.")
            execute = self._writer.connection.execute
            execute("SAVEPOINT statement")
            try:
                result = dml.execute(statement, params, self._moment())
            except (apsw.Error, SpannerError) as error:
                if not self._writer.connection.in_transaction:
                    self._end(Phase.ABORTED)
                else:
                    execute("ROLLBACK TO statement")
                    execute("RELEASE statement")
                raise self._writer.translated(error) from error
            execute("RELEASE statement")
            return result

    def commit(self, mutations: Sequence[Mutation]) -> Committed:
        """Makes everything visible at one timestamp. Raises and rolls back when a write fails."""
        with self._mutex:
            self._refuse_closed()
            if self._phase is Phase.NEW:
                self._phase = Phase.CLOSED
                return self._writer.write(mutations)
            dml = self._active()
            try:
                return self._commit(dml, mutations)
            finally:
                self._end(Phase.CLOSED)

    def rollback(self) -> None:
        """Gives everything up; harmless when there is nothing to give up."""
        with self._mutex:
            if self._phase is Phase.ACTIVE:
                self._end(Phase.CLOSED)
            elif self._phase is Phase.NEW:
                self._phase = Phase.CLOSED

    def give_up_if_idle(self, idle_seconds: float) -> bool:
        """Rolls back and releases the turn when its client has been silent for so long."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            idle = time.monotonic() - self._last_used
            if self._phase is not Phase.ACTIVE or idle < idle_seconds:
                return False
            self._end(Phase.ABORTED)
            return True
        finally:
            self._mutex.release()

    def _commit(self, dml: Dml, mutations: Sequence[Mutation]) -> Committed:
        """DML first, then mutations, as Spanner orders them."""
        writer = self._writer
        micros = writer.timeline.begin_commit()
        moment = Moment.at(micros)
        try:
            for name in dml.changed:
                writer.timeline.touched(name, micros)
            settle(writer.connection, dml, moment)
            writer.connection.execute(SET_LAST_COMMIT, (micros,))
            count = writer.apply(mutations, moment)
            writer.finish()
            writer.connection.execute("COMMIT")
        except (apsw.Error, SpannerError) as error:
            writer.abandon()
            raise writer.translated(error) from error
        finally:
            writer.timeline.end_commit()
        return Committed(micros, count)

    def _active(self) -> Dml:
        """Takes the turn if this is the first request."""
        if self._phase is Phase.NEW:
            self._writer.turn.acquire(LOCK_WAIT_SECONDS)
            self._writer.turn.holder = self
            self._phase = Phase.ACTIVE
            try:
                self._writer.connection.execute("BEGIN IMMEDIATE")
                self._writer.connection.execute(SET_LAST_COMMIT, (PENDING,))
            except BaseException:
                self._end(Phase.ABORTED)
                raise
            self._dml = Dml(self._writer.connection, self._writer.state)
        self._last_used = time.monotonic()
        if self._dml is None:
            raise transaction_closed()
        return self._dml

    def _moment(self) -> Moment:
        return Moment.pending(self._writer.clock.now())

    def _refuse_closed(self) -> None:
        if self._phase is Phase.ABORTED:
            raise aborted("Transaction was aborted: it was idle while another one waited.")
        if self._phase is Phase.CLOSED:
            raise transaction_closed()

    def _end(self, phase: Phase) -> None:
        """Rolls back what is not committed and lets the next one write."""
        self._writer.abandon()
        self._phase = phase
        self._dml = None
        self._writer.turn.release()

    @property
    def state(self) -> SchemaState:
        """The schema that the transaction works with."""
        return self._dml.state if self._dml is not None else self._writer.state


def settle(connection: apsw.Connection, dml: Dml, moment: Moment) -> None:
    """Gives the rows written by DML their commit timestamp."""
    for name in sorted(dml.changed):
        table = dml.state.schema.table(name)
        if table is None:
            continue
        sets = ['"$ts" = :ts']
        for column in commit_columns(table):
            if (name, column.name.casefold()) in dml.pending:
                text = quote(column.name)
                sets.append(f"{text} = iif({text} = :pending, :text, {text})")
        values: dict[str, Stored] = {"ts": moment.micros}
        if len(sets) > 1:
            values |= {"pending": PENDING_TEXT, "text": moment.text}
        connection.execute(
            f'UPDATE {current(table.name)} SET {", ".join(sets)} WHERE "$ts" = {PENDING}',
            values,
        )
        connection.execute(
            f'UPDATE {replaced(table.name)} SET "$to" = ? WHERE "$to" = {PENDING}',
            (moment.micros,),
        )
