"""What an open transaction has written, and how it writes more: every step in a turn of its own.

A step locks what it reads, works, and locks what it has changed. When an older transaction is in
the way, the step is taken back and answers ``Blocked``: the transaction waits without the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import apsw
import grpc

from emulator.engine.dml import (
    DmlExecutor,
    DmlState,
    count_scans,
)
from emulator.engine.locks.buffer import SET_LAST_COMMIT, TouchedRows, WriteBuffer
from emulator.engine.locks.footprints import statement_ranges
from emulator.engine.locks.ranges import Footprint, RowRange, point_range
from emulator.engine.locks.table import Owner, wounded
from emulator.engine.long_statements import LongStatement
from emulator.engine.pending_timestamps import PendingTimestamps, commit_columns
from emulator.engine.results import Check, watch
from emulator.engine.state import AS_THEY_ARE, CompiledStatement
from emulator.engine.write_plans import PENDING_TEXT, Moment
from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError, invalid_argument
from emulator.sql.functions.callers import waiting
from emulator.sql.statements import CompiledQuery, Insert
from emulator.storage.sqlite import PENDING, current_table, history_table
from emulator.values.requests import (
    Committed,
    DmlResult,
    Mutation,
    Stored,
    TransactionOrigin,
)
from emulator.values.sqlite_text import quote_name

TURN_WAIT_SECONDS = 15.0

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Blocked:
    """A step has changed nothing and must wait for the owners of locks."""

    owners: tuple[Owner, ...]


class OpenWrites:
    """The writes of one transaction, whose locks belong to ``owner``.

    ``failure`` is the first error of a constraint: after it nothing is written any more.
    """

    def __init__(self, writer: DatabaseWriter, owner: Owner, strict_pending: bool) -> None:
        self._writer = writer
        self._strict_pending = strict_pending
        self._owner = owner
        self._buffer = WriteBuffer()
        self._dml: DmlExecutor | None = None
        self.failure: SpannerError | None = None

    def started(self) -> bool:
        """Whether the transaction has run a statement on the writing connection."""
        return self._dml is not None

    def have_changed(self, tables: Iterable[str]) -> bool:
        """Whether DML may have changed one of the tables."""
        dml = self._dml
        return dml is not None and any(name.casefold() in dml.changed for name in tables)

    def run(
        self, ranges: set[RowRange], work: Callable[[DmlExecutor], Outcome]
    ) -> Outcome | Blocked:
        """Locks ranges and runs work that reads, with the transaction's own writes in place."""
        with self._writer.turn.taken(TURN_WAIT_SECONDS):
            blockers = self._writer.locks.acquire(self._owner, Footprint(ranges))
            return Blocked(blockers) if blockers else work(self._enter())

    def execute(
        self,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        *,
        counted: bool,
        check: Check | None,
    ) -> DmlResult | Blocked:
        """Runs a DML statement and locks what it reads and changes; an error changes nothing."""
        writer = self._writer
        with writer.turn.taken(TURN_WAIT_SECONDS):
            statement = writer.state.recompile(statement)
            ranges = statement_ranges(writer.state.schema, statement.conditions(), params)
            blockers = writer.locks.acquire(self._owner, Footprint(ranges))
            if blockers:
                return Blocked(blockers)
            dml = self._enter()
            before = dml.copy_state()
            writer.connection.execute("SAVEPOINT step")
            try:
                outcome = self._write(dml, statement, params, counted, check)
            except (apsw.Error, SpannerError) as error:
                self._take_back(dml, before)
                refusal = writer.translate(error)
                if isinstance(refusal, SpannerError) and violates_constraint(error):
                    self.failure = refusal
                raise refusal from error
            if isinstance(outcome, Blocked):
                self._take_back(dml, before)
            else:
                writer.connection.execute("RELEASE step")
            return outcome

    def commit(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin
    ) -> Committed | Blocked:
        """One attempt to commit: DML first, then mutations, as Spanner orders them."""
        writer = self._writer
        with writer.turn.taken(TURN_WAIT_SECONDS):
            blockers = writer.locks.begin_commit(self._owner)
            if blockers:
                return Blocked(blockers)
            dml = self._enter()
            writer.connection.execute("SAVEPOINT step")
            micros = writer.timeline.begin_commit()
            try:
                outcome = self._settle_and_apply(dml, mutations, micros)
                if isinstance(outcome, Blocked):
                    self._take_back(dml, dml.copy_state())
                    writer.locks.postpone_commit(self._owner)
                    return outcome
                writer.finish(micros, origin)
                writer.connection.execute("COMMIT")
            except (apsw.Error, SpannerError) as error:
                raise writer.translate(error) from error
            finally:
                writer.timeline.end_commit()
                writer.capture.wake_readers()
            return outcome

    def drop(self) -> None:
        """The transaction has ended: nothing of it is needed any more."""
        self._dml = None
        self._buffer.drop()

    def _enter(self) -> DmlExecutor:
        """Brings the writing connection to the state of the transaction."""
        if self._dml is not None and self._dml.state is not self._writer.state:
            raise wounded()
        self._writer.enter(self._buffer)
        if self._dml is None:
            connection, state = self._writer.connection, self._writer.state
            pending = PendingTimestamps(connection, state, self._strict_pending)
            self._dml = DmlExecutor(connection, state, pending)
        return self._dml

    def _write(
        self,
        dml: DmlExecutor,
        statement: CompiledStatement,
        params: Mapping[str, Stored],
        counted: bool,
        check: Check | None,
    ) -> DmlResult | Blocked:
        """Runs a statement and then locks what it has changed."""
        writer = self._writer
        change = statement.read_as(AS_THEY_ARE, counted=counted)
        if isinstance(change, CompiledQuery):
            raise invalid_argument("A query was sent where a DML statement is expected.")
        if counted and not isinstance(change, Insert):
            change = count_scans(change)
        touched = TouchedRows()
        writer.reader.scanned[0] = 0
        with watching(writer, check), touched.recorded(writer.connection):
            result = dml.execute(change, params, Moment.pending(writer.clock.now()))
            writer.check_references()
        scanned = writer.reader.scanned[0]
        footprint = writer.footprint(touched)
        footprint.ranges |= kept_rows(dml)
        blockers = writer.locks.acquire(self._owner, footprint)
        if blockers:
            return Blocked(blockers)
        self._buffer.add(touched)
        return replace(result, rows_scanned=scanned)

    def _settle_and_apply(
        self, dml: DmlExecutor, mutations: Sequence[Mutation], micros: int
    ) -> Committed | Blocked:
        """Gives DML its timestamp and writes the mutations, or says for whom they must wait."""
        writer, moment, count = self._writer, Moment.at(micros), 0

        def work() -> None:
            nonlocal count
            count = writer.apply(mutations, moment, dml.mutations)

        for name in dml.changed:
            writer.timeline.note_change(name, micros)
        settle(writer.connection, dml, moment)
        writer.connection.execute(SET_LAST_COMMIT, (micros,))
        tables = writer.state.tables_locked_by(mutations)
        blockers = writer.apply_locked(self._owner, tables, work)
        return Blocked(blockers) if blockers else Committed(micros, count)

    def _take_back(self, dml: DmlExecutor, before: DmlState) -> None:
        """Undoes a step. After some errors SQLite has rolled back the whole transaction already:
        then it is lost."""
        dml.restore(before)
        if not self._writer.connection.in_transaction:
            self._writer.locks.wound(self._owner)
            return
        self._writer.connection.execute("ROLLBACK TO step")
        self._writer.connection.execute("RELEASE step")


@contextmanager
def watching(writer: DatabaseWriter, check: Check | None) -> Iterator[None]:
    """While it lasts, ``check`` can end what the writing connection does."""
    # It never waits for a turn: it holds up everybody who writes.
    watch(writer.reader, None if check is None else LongStatement("", check))
    try:
        with waiting(check):
            yield
    finally:
        watch(writer.reader, None)


def kept_rows(dml: DmlExecutor) -> set[RowRange]:
    """The rows that a statement has met and left as they were: they must still be there."""
    return {
        point_range(
            table.name.casefold(),
            (part.column.casefold() for part in table.primary_key),
            key,
            existence=True,
        )
        for table, key in dml.kept
    }


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
            if (name, column.name.casefold()) in dml.pending.columns:
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
