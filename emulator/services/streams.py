"""Outcomes as streams that can be resumed, or as one message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc

from emulator import limits
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.read_write import ReadWriteTransaction
from emulator.errors import SpannerError, aborted
from emulator.faults import FaultInjector, unavailable
from emulator.services.calls import RpcContext
from emulator.services.parking import Parking
from emulator.services.sessions import Engine, SessionTransaction
from emulator.services.statements import StatementOutcome
from emulator.services.transactions import add_precommit_token
from emulator.wire.encoding import RowEncoder, delimit
from emulator.wire.messages import Message, PartialResultSet, ResultSet
from emulator.wire.results import STATS, ResultStream
from emulator.wire.tokens import Resume

RESULT_ROW = b"\x12"
LIST_ITEM = b"\x0a"


class Streams:
    """Writes results; at most ``STREAMS_MAX`` at once, so that commits always find a thread."""

    def __init__(self, faults: FaultInjector) -> None:
        self._faults = faults
        self._room = threading.BoundedSemaphore(limits.STREAMS_MAX)
        self._parking = Parking()

    @contextmanager
    def room(self) -> Iterator[None]:
        """A slot among the open streams."""
        if not self._room.acquire(blocking=False):
            raise too_many_streams()
        try:
            yield
        finally:
            self._room.release()

    def may_break_at(self, rows: int) -> bool:
        """Whether ``may_break`` has anything to do after this many rows."""
        limit = self._faults.faults.unavailable_after_rows if self._faults.active else 0
        return bool(limit) and rows % limit == 0

    def may_break(self, rows: int) -> None:
        """Raises UNAVAILABLE when a fault breaks a stream after this many rows."""
        if self.may_break_at(rows) and self._faults.breaks_stream(rows):
            raise unavailable("The stream broke (fault injected).")

    def stream(
        self,
        outcome: StatementOutcome,
        transaction: SessionTransaction,
        resume: Resume | None,
        context: RpcContext,
        digest: bytes = b"",
    ) -> Iterator[bytes]:
        """PartialResultSet messages; the rows are closed whatever happens.

        ``digest`` distinguishes the query or read from others of the session.
        """
        if not self._room.acquire(blocking=False):
            outcome.rows.close()
            raise too_many_streams()
        kept = False
        try:
            outcome, result, begun = self._resume(outcome, transaction, resume, digest, context)
            first = result.resume.rows
            limit = self._faults.faults.unavailable_after_rows if self._faults.active else 0
            messages = result.chunks(
                self._make_ending(outcome, transaction), rows_in_chunk_max=limit
            )
            for message in messages:
                yield message
                context.check()
                if limit and self._faults.breaks_stream(result.resume.rows - first):
                    token = result.resume.to_bytes()
                    parked_at = (transaction.session, digest, token)
                    self._parking.leave(parked_at, outcome, result, begun)
                    kept = True
                    raise unavailable("The stream broke (fault injected).")
        finally:
            if not kept:
                outcome.rows.close()
            self._room.release()

    def _resume(
        self,
        outcome: StatementOutcome,
        transaction: SessionTransaction,
        resume: Resume | None,
        digest: bytes,
        context: RpcContext,
    ) -> tuple[StatementOutcome, ResultStream, RpcContext]:
        """A stream at the row from which it resumes, and the call for which it was begun."""
        if resume is not None:
            parked = self._parking.fetch((transaction.session, digest, resume.to_bytes()))
            if parked is not None:
                outcome.rows.close()
                parked.context.hand_over(context)
                return parked.outcome, parked.result, parked.context
        engine = transaction.engine
        result = ResultStream(
            outcome.rows,
            outcome.metadata.SerializeToString() if resume is None else None,
            engine.read_timestamp_micros if isinstance(engine, ReadOnlyTransaction) else 0,
            resumable=outcome.row_count is None,
        )
        if resume is not None:
            self._skip(result, resume, engine)
        return outcome, result, context

    def _skip(self, result: ResultStream, resume: Resume, engine: Engine) -> None:
        """A read-only transaction has the same rows again. In one that writes, the clock went on,
        and rows that it has not locked may have changed: it begins anew."""
        try:
            result.skip(resume)
        except SpannerError:
            if isinstance(engine, ReadWriteTransaction):
                engine.rollback()
                raise aborted("Transaction was aborted: its rows are not the same again.") from None
            raise

    def _make_ending(
        self, outcome: StatementOutcome, transaction: SessionTransaction
    ) -> Callable[[], bytes]:
        """Returns a function that builds the last message's fields once all rows are read."""

        def last_message() -> bytes:
            outcome.rows.close()
            last = PartialResultSet()
            add_precommit_token(transaction, last)
            stats = outcome.stats()
            data: bytes = last.SerializeToString()
            return data + delimit(STATS, stats.SerializeToString()) if stats else data

        return last_message


def too_many_streams() -> SpannerError:
    """Every stream holds a thread."""
    return SpannerError(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        f"The embedded Spanner serves at most {limits.STREAMS_MAX} streams at once: "
        "close one and retry.",
    )


def encode_whole(outcome: StatementOutcome, transaction: SessionTransaction) -> bytes:
    """One ResultSet, as ExecuteSql and Read answer."""
    encoder = RowEncoder([column.type for column in outcome.rows.columns])
    try:
        rows = [
            delimit(RESULT_ROW, b"".join([delimit(LIST_ITEM, v) for v in encoder.values(row)]))
            for row in outcome.rows.rows
        ]
    finally:
        outcome.rows.close()
    head: Message = ResultSet(metadata=outcome.metadata)
    add_precommit_token(transaction, head)
    stats = outcome.stats()
    if stats is not None:
        head.stats.CopyFrom(stats)
    data: bytes = head.SerializeToString()
    return data + b"".join(rows)
