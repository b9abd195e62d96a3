"""Read-write transactions: serializable, one writer at a time, the timestamp known at commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

import apsw
import grpc

from emulator.engine.dml import DmlExecutor, bind_parameters, commit_columns, count_scans
from emulator.engine.observations import Observations
from emulator.engine.read_only import (
    QueryRequest,
    ReadOnlyTransaction,
    Surroundings,
    expect_query,
)
from emulator.engine.reads import ReadPlan, merge_rows, plan_read
from emulator.engine.refusals import transaction_closed
from emulator.engine.results import Check, collect_rows, rows_in_memory, watch
from emulator.engine.state import AS_THEY_ARE, CompiledStatement, SchemaState
from emulator.engine.write_plans import PENDING_TEXT, Moment
from emulator.engine.writer import SET_LAST_COMMIT, DatabaseWriter
from emulator.errors import SpannerError, aborted, invalid_argument
from emulator.sql.statements import CompiledQuery, Insert
from emulator.storage.history import table_source
from emulator.storage.sqlite import PENDING, current_table, history_table
from emulator.values.requests import (
    PLAIN_ORIGIN,
    Committed,
    DmlResult,
    KeySet,
    Mutation,
    ResultRows,
    Stats,
    Stored,
    TransactionOrigin,
)
from emulator.values.sqlite_text import quote_name

LOCK_WAIT_SECONDS = 15.0


class Phase(Enum):
    """The phases of a transaction."""

    NEW = "new"
    READING = "reading"
    ACTIVE = "active"
    CLOSED = "closed"
    ABORTED = "aborted"


class ReadWriteTransaction:
    """Reads a snapshot until its first DML; from then on it keeps the turn to write.

    What it read before is looked at again when it takes the turn: see ``observations``. A statement
    that fails against a constraint ends all writing: the transaction repeats its error.
    """

    def __init__(self, around: Surroundings, writer: DatabaseWriter) -> None:
        self._around = around
        self._writer = writer
        self._mutex = threading.RLock()
        self._phase = Phase.NEW
        self._last_used = time.monotonic()
        self._dml: DmlExecutor | None = None
        self._observed: Observations | None = None
        self._failure: SpannerError | None = None

    def query(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        profile: bool = False,
        check: Check | None = None,
    ) -> ResultRows:
        """The rows of a query, with the transaction's own DML in them.

        ``check`` is called now and then while SQLite works; what it raises ends the query.
        """
        with self._mutex:
            self._refuse_closed()
            self._last_used = time.monotonic()
            state = self.state
            statement = state.recompile(statement)
            plain = statement.plain
            if not isinstance(plain, CompiledQuery):
                raise invalid_argument("A DML statement was sent where a query is expected.")
            if plain.catalog:
                values = bind_parameters(plain.bindings, params, self._snapshot_moment())
                stats = self._around.query_stats
                return self._around.catalogs.rows(state, plain, values, stats)
            if plain.draws:
                self._activate()
            query = expect_query(statement.read_as(AS_THEY_ARE, counted=profile))
            if self._dml is None:
                request = QueryRequest(statement, params, profile, check)
                return self._observe_query(query, request)
            # Counting names every column of a table: judge the query as it was asked.
            self._dml.refuse_pending(plain.sql)
            values = bind_parameters(query.bindings, params, self._pending_moment())
            return self._run(query, values, profile, check)

    def read(
        self,
        table: str,
        index: str | None,
        columns: Sequence[str],
        keys: KeySet,
        limit: int = 0,
        *,
        check: Check | None = None,
    ) -> ResultRows:
        """Rows by key, with the transaction's own DML in them; ``check`` as in ``query``."""
        with self._mutex:
            self._refuse_closed()
            self._last_used = time.monotonic()
            plan = plan_read(self.state.schema, table, index, columns, keys, limit)
            if self._dml is None:
                return self._observe_read(plan, table, index, columns, keys, limit, check)
            for sql, _ in plan.statements(table_source((), counted=False))[:1]:
                self._dml.refuse_pending(sql)
            return self._read(plan, check)

    def _observe_query(self, query: CompiledQuery, request: QueryRequest) -> ResultRows:
        """Reads the snapshot and remembers the result."""
        observations = self._observations()
        snapshot = ReadOnlyTransaction(self._around, observations.read_timestamp_micros)
        result = snapshot.query(
            request.statement, request.params, profile=request.profile, check=request.check
        )
        rows = list(result.rows)
        values = bind_parameters(query.bindings, request.params, self._snapshot_moment())
        observations.add(query.tables, rows, lambda: self._run(query, values, profile=False).rows)
        return rows_in_memory(result.columns, rows, result.stats)

    def _observe_read(
        self,
        plan: ReadPlan,
        table: str,
        index: str | None,
        columns: Sequence[str],
        keys: KeySet,
        limit: int,
        check: Check | None,
    ) -> ResultRows:
        """Reads the snapshot and remembers the result."""
        observations = self._observations()
        snapshot = ReadOnlyTransaction(self._around, observations.read_timestamp_micros)
        result = snapshot.read(table, index, columns, keys, limit, check=check)
        rows = list(result.rows)
        observations.add([plan.table.name], rows, lambda: self._read(plan).rows)
        return rows_in_memory(result.columns, rows, result.stats)

    def _run(
        self,
        statement: CompiledQuery,
        values: Mapping[str, Stored],
        profile: bool,
        check: Check | None = None,
    ) -> ResultRows:
        """A query on the writing connection."""
        return collect_rows(
            self._writer.reader,
            statement.sql,
            values,
            statement.columns,
            self.state.schema,
            profile=profile,
            check=check,
        )

    def _read(self, plan: ReadPlan, check: Check | None = None) -> ResultRows:
        """A read on the writing connection."""
        schema = self.state.schema
        rows = merge_rows(
            plan,
            lambda sql, values: (
                collect_rows(
                    self._writer.reader, sql, values, plan.columns, schema, check=check
                ).rows
            ),
            table_source((), counted=False),
        )
        return rows_in_memory(plan.columns, rows, Stats())

    def _observations(self) -> Observations:
        """The snapshot of the transaction; taken at its first read."""
        if self._observed is None:
            self._phase = Phase.READING
            micros = self._writer.timeline.strong()
            state = self._around.state_at(micros, self._writer.state)
            self._observed = Observations(micros, state)
        return self._observed

    def execute_dml(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        counted: bool = False,
        check: Check | None = None,
    ) -> DmlResult:
        """Runs a DML statement; one that fails changes nothing, and the transaction continues.

        ``counted`` counts the rows that it scans. ``check`` as in ``query``.
        """
        with self._mutex:
            self._refuse_closed()
            self._repeat_failure()
            # An error is found before the transaction takes the turn to write.
            statement = self.state.recompile(statement)
            dml = self._activate()
            change = dml.state.recompile(statement).read_as(AS_THEY_ARE, counted=counted)
            if isinstance(change, CompiledQuery):
                raise invalid_argument("A query was sent where a DML statement is expected.")
            if counted and not isinstance(change, Insert):
                change = count_scans(change)
            self._writer.reader.scanned[0] = 0
            execute = self._writer.connection.execute
            execute("SAVEPOINT statement")
            watch(self._writer.reader, check)
            try:
                result = dml.execute(change, params, self._pending_moment())
            except (apsw.Error, SpannerError) as error:
                if not self._writer.connection.in_transaction:
                    self._end(Phase.ABORTED)
                else:
                    execute("ROLLBACK TO statement")
                    execute("RELEASE statement")
                refusal = self._writer.translate(error)
                if isinstance(refusal, SpannerError) and violates_constraint(error):
                    self._failure = refusal
                raise refusal from error
            finally:
                watch(self._writer.reader, None)
            execute("RELEASE statement")
            return replace(result, rows_scanned=self._writer.reader.scanned[0])

    def commit(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> Committed:
        """Makes everything visible at one timestamp. Raises and rolls back when a write fails."""
        with self._mutex:
            self._refuse_closed()
            if self._phase is Phase.NEW or (self._phase is Phase.READING and not mutations):
                # What was only read was true at its snapshot: there is nothing to look at again.
                self._phase = Phase.CLOSED
                return self._writer.write(mutations, origin)
            if self._failure is not None:
                self._end(Phase.CLOSED)
                raise self._failure
            dml = self._activate()
            try:
                return self._commit(dml, mutations, origin)
            finally:
                self._end(Phase.CLOSED)

    def rollback(self) -> None:
        """Rolls back; does nothing if the transaction has ended."""
        with self._mutex:
            if self._phase is Phase.ACTIVE:
                self._end(Phase.CLOSED)
            elif self._phase in (Phase.NEW, Phase.READING):
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

    def _commit(
        self, dml: DmlExecutor, mutations: Sequence[Mutation], origin: TransactionOrigin
    ) -> Committed:
        """DML first, then mutations, as Spanner orders them."""
        writer = self._writer
        micros = writer.timeline.begin_commit()
        moment = Moment.at(micros)
        try:
            for name in dml.changed:
                writer.timeline.note_change(name, micros)
            settle(writer.connection, dml, moment)
            writer.connection.execute(SET_LAST_COMMIT, (micros,))
            count = writer.apply(mutations, moment, dml.mutations)
            writer.finish(micros, origin)
            writer.connection.execute("COMMIT")
        except (apsw.Error, SpannerError) as error:
            writer.abandon()
            raise writer.translate(error) from error
        finally:
            writer.timeline.end_commit()
            writer.capture.wake_readers()
        return Committed(micros, count)

    def _activate(self) -> DmlExecutor:
        """Takes the turn to write, and checks again what was read without it."""
        self._last_used = time.monotonic()
        if self._dml is None:
            writer = self._writer
            writer.turn.acquire(LOCK_WAIT_SECONDS)
            writer.turn.holder = self
            self._phase = Phase.ACTIVE
            self._dml = DmlExecutor(writer.connection, writer.state)
            try:
                writer.connection.execute("BEGIN IMMEDIATE")
                writer.connection.execute(SET_LAST_COMMIT, (PENDING,))
                observed = self._observed
                if observed is not None and not observed.hold(writer.timeline, writer.state):
                    raise aborted(
                        "Transaction was aborted: another transaction changed what it read."
                    )
            except BaseException:
                self._end(Phase.ABORTED)
                raise
            self._last_used = time.monotonic()
        return self._dml

    def _pending_moment(self) -> Moment:
        return Moment.pending(self._writer.clock.now())

    def _snapshot_moment(self) -> Moment:
        """The time of what is read from the snapshot."""
        return Moment.at(self._observations().read_timestamp_micros)

    def _repeat_failure(self) -> None:
        """After an error of a constraint nothing is written any more, as in Spanner."""
        if self._failure is not None:
            raise self._failure

    def _refuse_closed(self) -> None:
        if self._phase is Phase.ABORTED:
            raise aborted("Transaction was aborted: retry the whole transaction.")
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
        if self._dml is not None:
            return self._dml.state
        return self._observed.state if self._observed is not None else self._writer.state


def violates_constraint(error: BaseException) -> bool:
    """Whether a statement failed because of the rows, not because of its text."""
    if isinstance(error, SpannerError):
        return error.code is grpc.StatusCode.ALREADY_EXISTS or (
            isinstance(error.__cause__, apsw.ConstraintError)
        )
    return isinstance(error, apsw.ConstraintError)


def settle(connection: apsw.Connection, dml: DmlExecutor, moment: Moment) -> None:
    """Gives the rows written by DML their commit timestamp."""
    for name in sorted(dml.changed):
        table = dml.state.schema.table(name)
        if table is None:
            continue
        sets = ['"$ts" = :ts']
        for column in commit_columns(table):
            if (name, column.name.casefold()) in dml.pending:
                text = quote_name(column.name)
                sets.append(f"{text} = iif({text} = :pending, :text, {text})")
        values: dict[str, Stored] = {"ts": moment.micros}
        if len(sets) > 1:
            values |= {"pending": PENDING_TEXT, "text": moment.text}
        connection.execute(
            f'UPDATE {current_table(table.name)} SET {", ".join(sets)} WHERE "$ts" = {PENDING}',
            values,
        )
        connection.execute(
            f'UPDATE {history_table(table.name)} SET "$to" = ? WHERE "$to" = {PENDING}',
            (moment.micros,),
        )
