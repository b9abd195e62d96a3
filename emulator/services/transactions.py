"""Which transaction a request runs in: an id, a new one, or one for this request alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.read_write import ReadWriteTransaction
from emulator.engine.results import Check
from emulator.errors import SpannerError, invalid_argument
from emulator.faults import FaultInjector
from emulator.services.calls import RpcContext
from emulator.services.sessions import Session, Sessions, SessionTransaction
from emulator.values.requests import BoundKind, TimestampBound, TransactionOrigin
from emulator.wire import messages, times
from emulator.wire.messages import Message
from emulator.wire.tokens import Resume
from emulator.wrong import Wrong, is_wrong

BOUND_FIELDS = {
    "read_timestamp": BoundKind.READ_TIMESTAMP,
    "exact_staleness": BoundKind.EXACT_STALENESS,
    "min_read_timestamp": BoundKind.MIN_READ_TIMESTAMP,
    "max_staleness": BoundKind.MAX_STALENESS,
}
WAITS = {BoundKind.READ_TIMESTAMP, BoundKind.MIN_READ_TIMESTAMP}
ROUNDED_UP = {BoundKind.MIN_READ_TIMESTAMP, BoundKind.EXACT_STALENESS}
"""Commit timestamps are whole microseconds: a read at a timestamp sees those up to it, and a read
that may be no older than a timestamp is at the next. A longer staleness is an earlier read."""
WAIT_MICROS_MAX = 3_600 * 1_000_000
OPTIMISTIC = messages.TransactionOptions.ReadWrite.OPTIMISTIC


@dataclass(frozen=True, slots=True)
class SelectedTransaction:
    """A transaction for one request; ``begun`` is its description for the response's metadata.

    ``check`` raises when nobody waits for the answer any more.
    """

    transaction: SessionTransaction
    begun: Message | None = None
    check: Check | None = None

    def add_transaction(self, metadata: Message) -> Message:
        """The metadata of a result, with the transaction where the client needs it."""
        if self.begun is not None:
            metadata.transaction.CopyFrom(self.begun)
        return metadata

    @contextmanager
    def abandon_on_error(self) -> Iterator[None]:
        """Gives the transaction up when the request is refused."""
        try:
            yield
        except SpannerError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """The request that was to begin the transaction failed: the client never learns its id."""
        if self.begun is not None and self.transaction.id:
            self.transaction.roll_back()


class Transactions:
    """Begins and finds the transactions of requests."""

    def __init__(self, sessions: Sessions, faults: FaultInjector) -> None:
        self._sessions = sessions
        self._faults = faults

    def begin(self, session: Session, options: Message, context: RpcContext) -> SessionTransaction:
        """A transaction with an id, as BeginTransaction or a first statement asks for it."""
        mode = options.WhichOneof("mode")
        engine = session.database.engine
        if mode == "read_only":
            bound = read_bound(options.read_only, single_use=False)
            return self._sessions.begin(session, begin_read_only(session, bound, context))
        if mode == "partitioned_dml":
            origin = TransactionOrigin(excluded=options.exclude_txn_from_change_streams)
            return self._sessions.begin(session, engine.partitioned_dml(origin))
        if mode == "read_write":
            previous = options.read_write.multiplexed_session_previous_transaction_id
            age = self._sessions.retried_age(session, previous)
            optimistic = options.read_write.read_lock_mode == OPTIMISTIC
            strict = self._faults.strict_pending_timestamps or is_wrong(Wrong.READ_AFTER_DML)
            transaction = engine.read_write(age, optimistic=optimistic, strict_pending=strict)
            begun = self._sessions.begin(session, transaction)
            begun.excluded = options.exclude_txn_from_change_streams
            return begun
        raise invalid_argument("BeginTransaction needs a transaction mode.")

    def select(
        self, session: Session, selector: Message, context: RpcContext, place: Resume | None = None
    ) -> SelectedTransaction:
        """The transaction that a TransactionSelector names.

        ``place`` is where a stream resumes: a read-only transaction that is begun for the
        request then reads at the same timestamp as before.
        """
        kind = selector.WhichOneof("selector")
        if kind == "id":
            return SelectedTransaction(
                self._sessions.transaction(session, selector.id), check=context.check
            )
        if kind == "begin":
            options = selector.begin
            if place is not None and options.WhichOneof("mode") == "read_only":
                engine = begin_read_only(session, exact_bound(place), context)
                transaction = self._sessions.begin(session, engine)
            else:
                transaction = self.begin(session, options, context)
            return SelectedTransaction(
                transaction, transaction_message(transaction, options), context.check
            )
        options = selector.single_use
        if options.WhichOneof("mode") not in {None, "read_only"}:
            raise invalid_argument(
                "Transaction mode for read only single use transaction should be read_only."
            )
        bound = read_bound(options.read_only, single_use=True)
        if place is not None:
            bound = exact_bound(place)
        engine = begin_read_only(session, bound, context)
        transaction = SessionTransaction(b"", session.name, engine, session.multiplexed)
        returned = options.read_only.return_read_timestamp
        begun = transaction_message(transaction, options) if returned else None
        return SelectedTransaction(transaction, begun, context.check)


def begin_read_only(
    session: Session, bound: TimestampBound, context: RpcContext
) -> ReadOnlyTransaction:
    """A read-only transaction, once its timestamp has come; a caller that leaves ends the wait."""
    clock = session.database.engine.clock
    ahead = bound.micros - clock.wall()
    waits = bound.kind in WAITS and not is_wrong(Wrong.STRONG_READ_BOUND)
    if waits and 0 < ahead <= WAIT_MICROS_MAX:
        context.wait_until(bound.micros, clock)
    return session.database.engine.read_only(bound)


def exact_bound(place: Resume) -> TimestampBound:
    """The timestamp at which a stream was read."""
    return TimestampBound(BoundKind.READ_TIMESTAMP, place.read_timestamp_micros)


def read_bound(options: Message, *, single_use: bool) -> TimestampBound:
    """The timestamp bound of read-only options."""
    kind = options.WhichOneof("timestamp_bound")
    if kind is None or kind == "strong":
        return TimestampBound()
    chosen = BOUND_FIELDS[kind]
    if chosen in {BoundKind.MIN_READ_TIMESTAMP, BoundKind.MAX_STALENESS} and not single_use:
        raise invalid_argument(
            f"Timestamp bound: {kind} for read can be only be used for a single use transaction."
        )
    amount = times.to_micros(getattr(options, kind), up=chosen in ROUNDED_UP)
    if amount < 0:
        raise invalid_argument(f"{kind} must not be negative.")
    return TimestampBound(chosen, amount)


def transaction_message(transaction: SessionTransaction, options: Message) -> Message:
    """A transaction as the API shows it: read-only ones say their timestamp on request."""
    proto = messages.Transaction(id=transaction.id)
    engine = transaction.engine
    if isinstance(engine, ReadOnlyTransaction) and options.read_only.return_read_timestamp:
        times.fill_timestamp(proto.read_timestamp, engine.read_timestamp_micros)
    return proto


def add_precommit_token(transaction: SessionTransaction, target: Message) -> None:
    """Multiplexed read-write transactions hand a token from answer to answer, up to the commit."""
    if transaction.multiplexed and isinstance(transaction.engine, ReadWriteTransaction):
        transaction.seen += 1
        target.precommit_token.precommit_token = transaction.id
        target.precommit_token.seq_num = transaction.seen


def expect_writable(transaction: SessionTransaction) -> ReadWriteTransaction:
    """The engine's read-write transaction. Raises when it is of another kind."""
    if not isinstance(transaction.engine, ReadWriteTransaction):
        raise not_writable()
    return transaction.engine


def not_writable() -> SpannerError:
    """A commit or DML in a transaction that is not read-write."""
    return invalid_argument("The transaction is not a read-write transaction.")
