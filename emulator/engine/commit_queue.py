"""Commits of mutations alone, many in one.

They wait in a queue; whoever gets the turn commits all that wait in one transaction of SQLite, each
with its own timestamp and its own fate. One that meets the locks of an older transaction is taken
back, and waits for it without the turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from emulator.engine.locks.buffer import SET_LAST_COMMIT
from emulator.engine.locks.table import Owner, Standing
from emulator.engine.write_plans import Moment
from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError
from emulator.values.requests import PLAIN_ORIGIN, Committed, Mutation, TransactionOrigin

COMMITS_TOGETHER_MAX = 64
WAIT_SECONDS = 20.0


@dataclass(slots=True)
class Request:
    """A mutation-only commit of some age and, after it, how it ended.

    ``blockers`` are the owners of locks for which it must wait before it is tried again.
    """

    mutations: Sequence[Mutation]
    origin: TransactionOrigin
    age: int
    committed: Committed | None = None
    error: BaseException | None = field(default=None)
    blockers: tuple[Owner, ...] = ()

    @property
    def done(self) -> bool:
        """Whether it was committed or failed, or must wait."""
        return self.committed is not None or self.error is not None or bool(self.blockers)


class CommitQueue:
    """The commits of a database that wait for the turn to write."""

    def __init__(self, writer: DatabaseWriter) -> None:
        self._writer = writer
        self._waiting: deque[Request] = deque()

    def write(
        self,
        mutations: Sequence[Mutation],
        origin: TransactionOrigin = PLAIN_ORIGIN,
        age: int | None = None,
    ) -> Committed:
        """Commits mutations alone; the fast path. ``age`` is that of their transaction."""
        request = Request(mutations, origin, self._writer.locks.next_age() if age is None else age)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            self._waiting.append(request)
            self._await_turn(request)
            try:
                if not request.done:
                    self._commit_waiting()
            finally:
                self._writer.turn.release()
            if not request.blockers:
                break
            blockers, request.blockers = request.blockers, ()
            self._writer.locks.wait(Owner(request.age), blockers, deadline - time.monotonic())
        if request.committed is None:
            raise request.error or AssertionError("a commit ended without a result")
        return request.committed

    def _await_turn(self, request: Request) -> None:
        """Waits for the turn; no other request may commit one that timed out."""
        try:
            self._writer.turn.acquire(WAIT_SECONDS)
        except SpannerError:
            try:
                self._waiting.remove(request)
            except ValueError:
                self._writer.turn.acquire(WAIT_SECONDS)
                return
            raise

    def _commit_waiting(self) -> None:
        """One SQLite transaction for all commits that wait."""
        batch: list[Request] = []
        while self._waiting and len(batch) < COMMITS_TOGETHER_MAX:
            batch.append(self._waiting.popleft())
        owner = Owner(0, standing=Standing.COMMITTING)
        try:
            self._commit_together(batch, owner)
        except (apsw.Error, SpannerError) as error:
            self._writer.abandon()
            fail(batch, self._writer.translate(error))
        except BaseException as error:
            self._writer.abandon()
            fail(batch, error)
            raise
        finally:
            self._writer.timeline.end_commit()
            self._writer.locks.release(owner)
            self._writer.capture.wake_readers()

    def _commit_together(self, batch: Sequence[Request], owner: Owner) -> None:
        """Each request in a savepoint of its own; nothing counts before the COMMIT.

        One alone needs none: what it has written is abandoned with the transaction.
        """
        execute = self._writer.connection.execute
        self._writer.begin()
        if len(batch) == 1:
            (only,) = batch
            micros = self._writer.timeline.begin_commit()
            count = self._apply_request(only, owner, micros)
            if only.blockers:
                self._writer.abandon()
                return
            self._writer.finish(micros, only.origin)
            execute(SET_LAST_COMMIT, (micros,))
            execute("COMMIT")
            only.committed = Committed(micros, count)
            return
        done: list[tuple[Request, Committed]] = []
        micros = 0
        for request in batch:
            micros = self._writer.timeline.begin_commit()
            execute("SAVEPOINT one")
            try:
                count = self._apply_request(request, owner, micros)
                if not request.blockers:
                    self._writer.finish(micros, request.origin)
            except (apsw.Error, SpannerError) as error:
                request.error = self._writer.translate(error)
                if not self._writer.connection.in_transaction:
                    raise
                execute("ROLLBACK TO one")
            else:
                if request.blockers:
                    execute("ROLLBACK TO one")
                else:
                    done.append((request, Committed(micros, count)))
            execute("RELEASE one")
        execute(SET_LAST_COMMIT, (micros,))
        execute("COMMIT")
        for request, committed in done:
            request.committed = committed

    def _apply_request(self, request: Request, owner: Owner, micros: int) -> int:
        """Writes the mutations of a request, or notes for whom it must wait."""
        count = 0

        def work() -> None:
            nonlocal count
            count = self._writer.apply(request.mutations, Moment.at(micros))

        owner.age = request.age
        request.blockers = self._writer.apply_locked(
            owner, self._writer.state.tables_locked_by(request.mutations), work
        )
        return count


def fail(batch: Sequence[Request], error: BaseException) -> None:
    """Marks commits as failed, apart from those that are tried again."""
    for request in batch:
        if not request.blockers:
            request.committed, request.error = None, request.error or error
