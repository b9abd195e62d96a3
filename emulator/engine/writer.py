"""The one place where a database is written: turns, commits, and commits that share one.

Mutation-only commits wait in a queue; whoever gets the turn commits all that wait in one SQLite
transaction, each with its own timestamp and its own fate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import apsw

from emulator.engine.change_streams.capture import ChangeCapture
from emulator.engine.clock import Clock
from emulator.engine.mutations import delete_rows, resolve, write_rows
from emulator.engine.refusals import (
    MUTATIONS_MAX,
    broken_foreign_key,
    too_many_mutations,
    translate_error,
)
from emulator.engine.sequences import Sequences
from emulator.engine.state import SchemaState
from emulator.engine.timeline import Timeline
from emulator.engine.turn import Turn
from emulator.engine.versions import SchemaVersions
from emulator.engine.write_plans import Moment
from emulator.errors import SpannerError
from emulator.storage.integrity import broken_reference
from emulator.storage.sqlite import Storage
from emulator.values.requests import (
    PLAIN_ORIGIN,
    Committed,
    Mutation,
    MutationKind,
    RowWrite,
    TransactionOrigin,
)

COMMITS_TOGETHER_MAX = 64
WAIT_SECONDS = 20.0
SET_LAST_COMMIT = 'UPDATE "$state" SET last_commit = ?'


def ignore(_micros: int) -> None:
    """Does nothing after a commit."""


@dataclass(slots=True)
class Request:
    """A mutation-only commit and, after it, how it ended."""

    mutations: Sequence[Mutation]
    origin: TransactionOrigin = PLAIN_ORIGIN
    committed: Committed | None = None
    error: BaseException | None = field(default=None)

    @property
    def done(self) -> bool:
        """Whether it was committed or failed."""
        return self.committed is not None or self.error is not None


class DatabaseWriter:
    """The writing connection of a database. Only the holder of ``turn`` may use it."""

    def __init__(self, storage: Storage, clock: Clock, timeline: Timeline) -> None:
        self.reader = storage.open_writer()
        self.connection = self.reader.connection
        self.clock = clock
        self.timeline = timeline
        self.turn = Turn()
        self.sequences = Sequences(self.connection)
        self.capture = ChangeCapture(self.connection)
        self.state: SchemaState
        self.versions: SchemaVersions
        self._waiting: deque[Request] = deque()

    def write(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> Committed:
        """Commits mutations alone; the fast path."""
        request = Request(mutations, origin)
        self._waiting.append(request)
        self._await_turn(request)
        try:
            if not request.done:
                self._commit_waiting()
        finally:
            self.turn.release()
        if request.committed is None:
            raise request.error or AssertionError("a commit ended without a result")
        return request.committed

    def _await_turn(self, request: Request) -> None:
        """Waits for the turn; no other request may commit one that timed out."""
        try:
            self.turn.acquire(WAIT_SECONDS)
        except SpannerError:
            try:
                self._waiting.remove(request)
            except ValueError:
                self.turn.acquire(WAIT_SECONDS)
                return
            raise

    def _commit_waiting(self) -> None:
        """One SQLite transaction for all commits that wait."""
        batch: list[Request] = []
        while self._waiting and len(batch) < COMMITS_TOGETHER_MAX:
            batch.append(self._waiting.popleft())
        try:
            self._commit_together(batch)
        except (apsw.Error, SpannerError) as error:
            self.abandon()
            fail(batch, self.translate(error))
        except BaseException as error:
            self.abandon()
            fail(batch, error)
            raise
        finally:
            self.timeline.end_commit()
            self.capture.wake_readers()

    def _commit_together(self, batch: Sequence[Request]) -> None:
        """Each request in a savepoint of its own; nothing counts before the COMMIT.

        One alone needs none: what it has written is abandoned with the transaction.
        """
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        if len(batch) == 1:
            (only,) = batch
            micros = self.timeline.begin_commit()
            count = self.apply(only.mutations, Moment.at(micros))
            self.finish(micros, only.origin)
            execute(SET_LAST_COMMIT, (micros,))
            execute("COMMIT")
            only.committed = Committed(micros, count)
            return
        done: list[tuple[Request, Committed]] = []
        micros = 0
        for request in batch:
            micros = self.timeline.begin_commit()
            execute("SAVEPOINT one")
            try:
                count = self.apply(request.mutations, Moment.at(micros))
                self.finish(micros, request.origin)
            except (apsw.Error, SpannerError) as error:
                request.error = self.translate(error)
                if not self.connection.in_transaction:
                    raise
                execute("ROLLBACK TO one")
            else:
                done.append((request, Committed(micros, count)))
            execute("RELEASE one")
        execute(SET_LAST_COMMIT, (micros,))
        execute("COMMIT")
        for request, committed in done:
            request.committed = committed

    def apply(self, mutations: Sequence[Mutation], moment: Moment, before: int = 0) -> int:
        """Writes mutations inside the transaction; how many there were, as Spanner counts.

        ``before`` is what the transaction's DML counts; it has no limit of its own in a commit.
        """
        state, connection = self.state, self.connection
        count, marked = 0, False
        for mutation in mutations:
            if isinstance(mutation, RowWrite):
                plan = state.write_plan(mutation.table, mutation.columns)
                replaces = mutation.kind is MutationKind.REPLACE
                affected = (
                    state.tables_changed_by_delete(plan.table.name)
                    if replaces
                    else (plan.table.name.casefold(),)
                )
            else:
                plan, replaces = None, True
                affected = state.tables_changed_by_delete(mutation.table)
            if replaces and not marked:
                connection.execute(SET_LAST_COMMIT, (moment.micros,))
                marked = True
            for name in affected:
                self.timeline.note_change(name, moment.micros)
            if plan is not None and isinstance(mutation, RowWrite):
                rows = resolve(plan, mutation.rows, moment)
                write_rows(connection, plan, mutation.kind, rows, moment)
                count += plan.mutations_per_row * len(rows)
            elif not isinstance(mutation, RowWrite):
                count += delete_rows(connection, state.schema, mutation, moment)
            if count > MUTATIONS_MAX:
                break
        if count > MUTATIONS_MAX:
            raise too_many_mutations()
        return before + count

    def finish(self, micros: int, origin: TransactionOrigin = PLAIN_ORIGIN) -> None:
        """Prepares a COMMIT: saves counters, checks foreign keys, records for change streams.

        Raises when a foreign key does not hold.
        """
        self.sequences.save()
        self.check_references()
        self.capture.record(self.state.schema, micros, origin)

    def check_references(self) -> None:
        """Foreign keys hold at the end of a transaction."""
        if not self.state.has_references:
            return
        noted = self.connection.execute(
            'SELECT DISTINCT "table", "constraint" FROM "$references"'
        ).fetchall()
        for name, number in noted:
            table = self.state.schema.table(str(name))
            if table is None or not isinstance(number, int):
                continue
            broken = self.connection.execute(
                broken_reference(table, number), (name, number)
            ).fetchone()
            if broken is not None:
                key = table.foreign_keys[number]
                raise broken_foreign_key(
                    key.name or f"FK_{table.name}_{number + 1}",
                    table.name,
                    key.referenced_table,
                    str(broken[0]),
                    removed=bool(broken[1]),
                )
        if noted:
            self.connection.execute('DELETE FROM "$references"')

    def commit_alone(
        self, work: Callable[[int], None], committed: Callable[[int], None] = ignore
    ) -> int:
        """Runs work in a commit of its own, with its timestamp; everything or nothing.

        ``committed`` is called before reads at the timestamp continue. The caller holds the turn.
        """
        micros = self.timeline.begin_commit()
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(SET_LAST_COMMIT, (micros,))
            work(micros)
            self.connection.execute("COMMIT")
            committed(micros)
        except (apsw.Error, SpannerError) as error:
            self.abandon()
            raise self.translate(error) from error
        except BaseException:
            self.abandon()
            raise
        finally:
            self.timeline.end_commit()
            self.capture.wake_readers()
        return micros

    def abandon(self) -> None:
        """Rolls back an open transaction."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def translate(self, error: BaseException) -> BaseException:
        """An error of SQLite as Spanner's error; other errors are returned as they are."""
        return translate_error(error, self.state.schema) if isinstance(error, apsw.Error) else error


def fail(batch: Sequence[Request], error: BaseException) -> None:
    """Marks commits as failed."""
    for request in batch:
        request.committed, request.error = None, request.error or error
