"""The one connection that writes a database: turns, commits, and what open transactions wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import apsw

from emulator.engine.cascades import CascadeRules
from emulator.engine.change_streams.capture import ChangeCapture
from emulator.engine.clock import Clock
from emulator.engine.locks.buffer import SET_LAST_COMMIT, TouchedRows, WriteBuffer
from emulator.engine.locks.footprints import rows_footprint
from emulator.engine.locks.ranges import Footprint
from emulator.engine.locks.table import LockTable, Owner, Standing, busy
from emulator.engine.mutations import delete_rows, resolve, write_rows
from emulator.engine.refusals import (
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
from emulator.limits import MUTATIONS_MAX
from emulator.storage.integrity import broken_reference
from emulator.storage.sqlite import Storage
from emulator.storage.statements import count_bytes
from emulator.values.requests import (
    PLAIN_ORIGIN,
    Mutation,
    MutationKind,
    RowWrite,
    TransactionOrigin,
)


def ignore(_micros: int) -> None:
    """Does nothing after a commit."""


class DatabaseWriter:
    """The writing connection of a database. Only the holder of ``turn`` may use it."""

    def __init__(self, storage: Storage, clock: Clock, timeline: Timeline) -> None:
        self._storage = storage
        self.reader = storage.open_writer()
        self.connection = self.reader.connection
        self.clock = clock
        self.timeline = timeline
        self.turn = Turn()
        self.locks = LockTable()
        self._resident: WriteBuffer | None = None
        self.sequences = Sequences(self.connection)
        self.capture = ChangeCapture(self.connection)
        self.state: SchemaState
        self.versions: SchemaVersions

    @cached_property
    def ddl_bytes(self) -> int:
        """The bytes of the DDL statements that were executed; who executes one adds its own."""
        return count_bytes(self.connection)

    def apply_locked(
        self, owner: Owner, tables: Collection[str], work: Callable[[], None]
    ) -> tuple[Owner, ...]:
        """Runs work that changes rows for a commit under way, and locks what it changes.

        ``tables`` (in lower case) are those that it may change or look at. When it returns owners,
        the caller takes the work back and waits for them.
        """
        if not self.locks.lock_free_tables(owner, tables):
            work()
            return ()
        touched = TouchedRows()
        with touched.recorded(self.connection):
            work()
        return self.locks.acquire(owner, self.footprint(touched))

    def footprint(self, touched: TouchedRows) -> Footprint:
        """The locks of the rows that statements have touched."""
        rows = [
            (reader, numbers)
            for name, numbers in touched.rows.items()
            if (reader := self.state.row_reader(name)) is not None
        ]
        before = self._storage.borrow()
        try:
            return rows_footprint(before.connection, self.connection, rows)
        finally:
            self._storage.give_back(before)

    def apply(self, mutations: Sequence[Mutation], moment: Moment, before: int = 0) -> int:
        """Writes mutations inside the transaction; how many there were, as Spanner counts.

        ``before`` is what the transaction's DML counts; it has no limit of its own in a commit.
        """
        state, connection = self.state, self.connection
        self._refuse_contradictions(mutations, moment)
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
                updates = mutation.kind is MutationKind.UPDATE
                count += len(rows) * plan.mutations_of(updates=updates)
            elif not isinstance(mutation, RowWrite):
                count += delete_rows(connection, state.schema, mutation, moment)
            if count > MUTATIONS_MAX:
                break
        if count > MUTATIONS_MAX:
            raise too_many_mutations()
        return before + count

    def _refuse_contradictions(self, mutations: Sequence[Mutation], moment: Moment) -> None:
        """Rows that are written and deleted where a foreign key cascades."""
        if not self.state.cascading_keys:
            return
        rules = CascadeRules(self.connection, self.state.cascading_keys, moment)
        for mutation in mutations:
            if isinstance(mutation, RowWrite):
                rules.note_write(mutation, self.state.write_plan(mutation.table, mutation.columns))
            elif (table := self.state.schema.table(mutation.table)) is not None:
                rules.note_delete(mutation, table)
        rules.finish()

    def finish(self, micros: int, origin: TransactionOrigin = PLAIN_ORIGIN) -> None:
        """Prepares a COMMIT: saves counters, checks foreign keys, records for change streams.

        Raises when a foreign key does not hold.
        """
        self.sequences.save()
        self.check_references()
        self.capture.record(self.state.schema, micros, origin)

    def check_references(self) -> None:
        """Foreign keys hold after each DML statement, and at the end of a commit."""
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
                raise broken_foreign_key(
                    table.foreign_keys[number],
                    table.name,
                    removed=bool(broken[0]),
                    number=number,
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
            self.begin()
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

    def commit_rows(
        self, tables: Collection[str], work: Callable[[int], None], age: int, wait_seconds: float
    ) -> int:
        """As ``commit_alone``, for work that changes rows which others may have locked.

        It takes the turn itself. ``tables`` as in ``apply_locked``. Raises ABORTED when an older
        transaction keeps its locks for too long.
        """
        deadline = time.monotonic() + wait_seconds
        while True:
            owner = Owner(age, standing=Standing.COMMITTING)
            blockers: tuple[Owner, ...] = ()

            def locked(micros: int, owner: Owner = owner) -> None:
                nonlocal blockers
                blockers = self.apply_locked(owner, tables, lambda: work(micros))
                if blockers:
                    raise busy()

            try:
                with self.turn.taken(wait_seconds):
                    return self.commit_alone(locked)
            except SpannerError:
                if not blockers:
                    raise
            finally:
                self.locks.release(owner)
            self.locks.wait(Owner(age), blockers, deadline - time.monotonic())

    def begin(self) -> None:
        """Begins a transaction of SQLite; that of an open transaction gives way."""
        self._evict()
        self.connection.execute("BEGIN IMMEDIATE")

    def enter(self, buffer: WriteBuffer) -> None:
        """Continues the transaction of SQLite with what an open transaction has written."""
        if self._resident is buffer and self.connection.in_transaction:
            return
        self.begin()
        try:
            buffer.load(self.connection)
        except BaseException:
            self.abandon()
            raise
        self._resident = buffer

    def _evict(self) -> None:
        """Reads out what an open transaction has written, and rolls it back in SQLite."""
        resident = self._resident
        if resident is not None and not resident.dropped and self.connection.in_transaction:
            resident.save(self.connection, self.state.schema)
        self.abandon()

    def abandon(self) -> None:
        """Rolls back an open transaction."""
        self._resident = None
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def translate(self, error: BaseException) -> BaseException:
        """An error of SQLite as Spanner's error; other errors are returned as they are."""
        return translate_error(error, self.state.schema) if isinstance(error, apsw.Error) else error
