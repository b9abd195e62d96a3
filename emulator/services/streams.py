"""Outcomes as streams that can be resumed, or as one message."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc

from emulator import limits
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.errors import SpannerError
from emulator.faults import FaultInjector, unavailable
from emulator.services.calls import Context
from emulator.services.sessions import Transaction
from emulator.services.statements import Outcome
from emulator.services.transactions import precommit
from emulator.wire.encoding import RowEncoder, delimited
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

    def stream(
        self, outcome: Outcome, transaction: Transaction, place: Resume | None, context: Context
    ) -> Iterator[bytes]:
        """PartialResultSet messages; the rows are closed whatever happens."""
        if not self._room.acquire(blocking=False):
            outcome.rows.close()
            raise too_many_streams()
        try:
            yield from self._messages(outcome, transaction, place, context)
        finally:
            outcome.rows.close()
            self._room.release()

    def _messages(
        self, outcome: Outcome, transaction: Transaction, place: Resume | None, context: Context
    ) -> Iterator[bytes]:
        engine = transaction.engine
        micros = engine.read_timestamp_micros if isinstance(engine, ReadOnlyTransaction) else 0
        result = ResultStream(
            outcome.rows,
            outcome.metadata.SerializeToString(),
            micros,
            resumable=outcome.row_count is None,
        )
        if place is not None:
            result.skip(place)
        first = result.place.rows

        def ending() -> bytes:
            outcome.rows.close()
            last = PartialResultSet()
            precommit(transaction, last)
            stats = outcome.stats()
            data: bytes = last.SerializeToString()
            return data + delimited(STATS, stats.SerializeToString()) if stats else data

        limit = self._faults.faults.unavailable_after_rows if self._faults.active else 0
        for message in result.chunks(ending, rows_in_chunk_max=limit):
            yield message
            context.check()
            if limit and self._faults.breaks_stream(result.place.rows - first):
                raise unavailable("The stream broke (fault injected).")


def too_many_streams() -> SpannerError:
    """Every stream holds a thread."""
    return SpannerError(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        f"The embedded Spanner serves at most {limits.STREAMS_MAX} open streams.",
    )


def whole(outcome: Outcome, transaction: Transaction) -> bytes:
    """One ResultSet, as ExecuteSql and Read answer."""
    encoder = RowEncoder([column.type for column in outcome.rows.columns])
    try:
        rows = [
            delimited(RESULT_ROW, b"".join([delimited(LIST_ITEM, v) for v in encoder.values(row)]))
            for row in outcome.rows.rows
        ]
    finally:
        outcome.rows.close()
    head: Message = ResultSet(metadata=outcome.metadata)
    precommit(transaction, head)
    stats = outcome.stats()
    if stats is not None:
        head.stats.CopyFrom(stats)
    data: bytes = head.SerializeToString()
    return data + b"".join(rows)
