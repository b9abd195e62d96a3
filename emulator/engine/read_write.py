"""Read-write transactions: serializable by locks, their writes in a buffer until the commit.

A transaction locks what it reads and what it writes, and runs each statement in a turn of its own.
It waits without the turn; the protocol is in docs/emulator-locks.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

import grpc

from emulator.engine.commit_queue import CommitQueue
from emulator.engine.dml import DmlExecutor, bind_parameters
from emulator.engine.locks.footprints import key_set_ranges, statement_ranges
from emulator.engine.locks.ranges import Footprint, RowRange
from emulator.engine.locks.table import Owner, wounded
from emulator.engine.open_writes import Blocked, OpenWrites
from emulator.engine.own_reads import run_query, run_read
from emulator.engine.privileges import Rights
from emulator.engine.read_only import ReadOnlyTransaction, Surroundings, expect_query
from emulator.engine.reads import plan_read
from emulator.engine.refusals import transaction_closed
from emulator.engine.results import Check, rows_in_memory
from emulator.engine.state import AS_THEY_ARE, CompiledStatement, SchemaState
from emulator.engine.write_plans import Moment
from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError, aborted, invalid_argument
from emulator.sql.statements import CompiledQuery
from emulator.storage.history import table_source
from emulator.values.requests import (
    PLAIN_ORIGIN,
    Committed,
    DmlResult,
    KeySet,
    Mutation,
    ResultRows,
    Stored,
    TransactionOrigin,
)

LOCK_WAIT_SECONDS = 15.0

Outcome = TypeVar("Outcome")


class Phase(Enum):
    """The phases of a transaction."""

    NEW = "new"
    ACTIVE = "active"
    CLOSED = "closed"
    ABORTED = "aborted"


class ReadWriteTransaction:
    """Locks rows from its first read or write to its end; the older of two transactions wins.

    A statement that fails against a constraint ends all writing: the transaction repeats its error.
    ``age`` is that of the transaction of which this one is a retry. Nobody waits for an
    ``optimistic`` one: it is aborted when what it has read or written changes before its commit.
    ``strict_pending``: it reads no table with a commit timestamp that is not known yet.
    """

    def __init__(
        self,
        around: Surroundings,
        queue: CommitQueue,
        writer: DatabaseWriter,
        age: int | None = None,
        *,
        optimistic: bool = False,
        strict_pending: bool = False,
    ) -> None:
        self._around = around
        self._queue = queue
        self._writer = writer
        self._mutex = threading.RLock()
        self._phase = Phase.NEW
        self._last_used = time.monotonic()
        age = writer.locks.next_age() if age is None else age
        self._owner = Owner(age, self.give_up_if_idle, optimistic)
        self._writes = OpenWrites(writer, self._owner, strict_pending)

    @property
    def age(self) -> int:
        """How old it is among the transactions of its database: the lower, the older."""
        return self._owner.age

    @property
    def is_aborted(self) -> bool:
        """Whether it must be tried again as a whole."""
        return self._phase is Phase.ABORTED or self._owner.wounded

    @property
    def state(self) -> SchemaState:
        """The schema that the transaction works with."""
        return self._writer.state

    def query(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        profile: bool = False,
        check: Check | None = None,
        rights: Rights | None = None,
    ) -> ResultRows:
        """The rows of a query, with the transaction's own DML in them.

        ``check`` is called now and then while it waits or works; what it raises ends the query. The
        catalog shows what ``rights`` are for.
        """
        with self._mutex:
            self._use()
            state = self.state
            statement = state.recompile(statement)
            plain = statement.plain
            if not isinstance(plain, CompiledQuery):
                raise invalid_argument("A DML statement was sent where a query is expected.")
            if plain.catalog:
                values = bind_parameters(plain.bindings, params, self._snapshot_moment())
                stats = self._around.query_stats
                return self._around.catalogs.rows(state, plain, values, stats, rights)
            if not plain.tables and not plain.draws:
                return self._snapshot().query(statement, params, profile=profile, check=check)
            values = bind_parameters(plain.bindings, params, self._pending_moment())
            ranges = statement_ranges(state.schema, statement.conditions(), params)
            if not plain.draws and not self._writes.have_changed(plain.tables):
                self._lock(ranges, state, check)
                result = self._snapshot().query(statement, params, profile=profile, check=check)
                return self._keep(result)
            self._phase = Phase.ACTIVE
            query = expect_query(statement.read_as(AS_THEY_ARE, counted=profile))

            def run(dml: DmlExecutor) -> ResultRows:
                # Counting names every column of a table: judge the query as it was asked.
                dml.pending.refuse_query(plain.sql)
                return run_query(self._writer, query, values, profile=profile, check=check)

            return self._repeat(lambda: self._writes.run(ranges, run), check)

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
            self._use()
            state = self.state
            plan = plan_read(state.schema, table, index, columns, keys, limit)
            ranges = key_set_ranges(plan.table, plan.index, keys)
            if not self._writes.have_changed([plan.table.name]):
                self._lock(ranges, state, check)
                snapshot = self._snapshot()
                return self._keep(snapshot.read(table, index, columns, keys, limit, check=check))

            def run(dml: DmlExecutor) -> ResultRows:
                for sql, _ in plan.statements(table_source((), counted=False))[:1]:
                    dml.pending.refuse_query(sql)
                return run_read(self._writer, plan, check)

            return self._repeat(lambda: self._writes.run(ranges, run), check)

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
            self._use()
            if self._writes.failure is not None:
                # After an error of a constraint nothing is written any more, as in Spanner.
                raise self._writes.failure
            # An error is found before the transaction takes the turn to write.
            statement = self.state.recompile(statement)
            bind_parameters(statement.plain.bindings, params, self._pending_moment())
            self._phase = Phase.ACTIVE
            return self._repeat(
                lambda: self._writes.execute(statement, params, counted=counted, check=check), check
            )

    def commit(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> Committed:
        """Makes everything visible at one timestamp. Raises and rolls back when a write fails."""
        with self._mutex:
            self._use()
            try:
                return self._repeat(lambda: self._commit(mutations, origin))
            finally:
                if self._phase is not Phase.ABORTED:
                    self._end(Phase.CLOSED)

    def rollback(self) -> None:
        """Rolls back; does nothing if the transaction has ended."""
        with self._mutex:
            if self._phase in (Phase.NEW, Phase.ACTIVE):
                self._end(Phase.CLOSED)

    def give_up_if_idle(self, idle_seconds: float) -> bool:
        """Rolls back and gives all locks back when its client has been silent for so long."""
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

    def _use(self) -> None:
        """A request has come. Raises when the transaction has ended."""
        if self._phase is Phase.CLOSED:
            raise transaction_closed()
        if self._phase is Phase.ABORTED:
            raise aborted("Transaction was aborted: retry the whole transaction.")
        if self._owner.wounded:
            self._end(Phase.ABORTED)
            raise wounded()
        self._last_used = time.monotonic()

    def _commit(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin
    ) -> Committed | Blocked:
        """One attempt; what has locked nothing that it writes goes the fast way."""
        if self._writes.failure is not None:
            raise self._writes.failure
        if self._writes.started() or (self._phase is Phase.ACTIVE and mutations):
            return self._writes.commit(mutations, origin)
        blockers = self._writer.locks.begin_commit(self._owner)
        return Blocked(blockers) if blockers else self._queue.write(mutations, origin, self.age)

    def _lock(self, ranges: set[RowRange], state: SchemaState, check: Check | None) -> None:
        """Locks what is about to be read; ``state`` is the schema with which it was made out."""

        def attempt() -> Blocked | None:
            blockers = self._writer.locks.acquire(self._owner, Footprint(ranges))
            if not blockers and self.state is not state:
                raise wounded()
            return Blocked(blockers) if blockers else None

        self._phase = Phase.ACTIVE
        self._repeat(attempt, check)

    def _repeat(
        self, attempt: Callable[[], Outcome | Blocked], check: Check | None = None
    ) -> Outcome:
        """Tries again as long as older transactions are in the way; ABORTED ends all."""
        try:
            while isinstance(outcome := attempt(), Blocked):
                self._writer.locks.wait(self._owner, outcome.owners, LOCK_WAIT_SECONDS, check)
            self._last_used = time.monotonic()
        except SpannerError as error:
            if error.code is grpc.StatusCode.ABORTED:
                self._end(Phase.ABORTED)
            raise
        return outcome

    def _snapshot(self) -> ReadOnlyTransaction:
        """All that is committed now. What is locked does not change after it."""
        return ReadOnlyTransaction(self._around, self._writer.timeline.strong())

    def _keep(self, result: ResultRows) -> ResultRows:
        """A result in memory. Raises ABORTED when locks were lost while it was read."""
        rows = list(result.rows)
        if self._owner.wounded:
            self._end(Phase.ABORTED)
            raise wounded()
        return rows_in_memory(result.columns, rows, result.stats)

    def _pending_moment(self) -> Moment:
        return Moment.pending(self._writer.clock.now())

    def _snapshot_moment(self) -> Moment:
        """The time of what is read from a snapshot."""
        return Moment.at(self._writer.timeline.strong())

    def _end(self, phase: Phase) -> None:
        """Forgets what is not committed and gives all locks back."""
        self._phase = phase
        self._writes.drop()
        self._writer.locks.release(self._owner)
