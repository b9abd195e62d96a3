"""Commit, Rollback and BatchWrite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.empty_pb2 import Empty

from emulator.engine.read_write import ReadWriteTransaction
from emulator.errors import SpannerError, aborted, failed_precondition, invalid_argument
from emulator.faults import FaultInjector
from emulator.services.calls import RpcContext
from emulator.services.request_options import check_commit_delay
from emulator.services.sessions import Session, Sessions, SessionTransaction
from emulator.values.requests import PLAIN_ORIGIN, Committed, Mutation, TransactionOrigin
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from emulator.wire.status import to_status


class Commits:
    """Makes writes durable."""

    def __init__(self, sessions: Sessions, faults: FaultInjector) -> None:
        self._sessions = sessions
        self._faults = faults

    def commit(self, request: Message, context: RpcContext) -> Message:
        """Commits a transaction, or mutations alone. A commit that comes again gets its answer."""
        session = self._sessions.get(request.session)
        check_commit_delay(request)
        kind = request.WhichOneof("transaction")
        if kind == "transaction_id":
            transaction = self._sessions.transaction(session, request.transaction_id)
            committed = self._commit_transaction(session, transaction, request)
        elif kind == "single_use_transaction":
            if request.single_use_transaction.WhichOneof("mode") != "read_write":
                raise invalid_argument("A commit needs a read-write transaction.")
            options = request.single_use_transaction
            origin = transaction_origin(request, options.exclude_txn_from_change_streams)
            committed = self._write(session, request.mutations, origin)
        else:
            raise invalid_argument("A commit needs a transaction.")
        self._faults.may_lose_answer()
        answer = m.CommitResponse()
        times.fill_timestamp(answer.commit_timestamp, committed.commit_timestamp_micros)
        if request.return_commit_stats:
            answer.commit_stats.mutation_count = committed.mutation_count
        return answer

    def rollback(self, request: Message, context: RpcContext) -> Message:
        """Rolls a transaction back; a committed one stays committed."""
        session = self._sessions.get(request.session)
        transaction = self._sessions.transaction(session, request.transaction_id)
        expect_read_write(transaction)
        with transaction.lock:
            if transaction.committed is not None:
                raise failed_precondition("Cannot rollback a transaction after Commit().")
            transaction.roll_back()
        return Empty()

    def batch_write(self, request: Message, context: RpcContext) -> Iterator[bytes]:
        """Commits each group on its own and streams their results."""
        session = self._sessions.get(request.session)
        if not request.mutation_groups:
            raise invalid_argument("BatchWrite needs at least one group of mutations.")
        origin = transaction_origin(request, request.exclude_txn_from_change_streams)
        for index, group in enumerate(request.mutation_groups):
            context.check()
            answer = m.BatchWriteResponse(indexes=[index])
            try:
                committed = self._write(session, group.mutations, origin)
            except SpannerError as error:
                answer.status.CopyFrom(to_status(error))
            else:
                answer.status.SetInParent()
                times.fill_timestamp(answer.commit_timestamp, committed.commit_timestamp_micros)
            yield answer.SerializeToString()

    def _write(self, session: Session, protos: Message, origin: TransactionOrigin) -> Committed:
        """Mutations alone: the shortest way to the engine."""
        self._faults.may_abort_commit()
        return session.database.engine.write(read_mutations(session, protos), origin)

    def _commit_transaction(
        self, session: Session, transaction: SessionTransaction, request: Message
    ) -> Committed:
        engine = expect_read_write(transaction)
        with transaction.lock:
            if transaction.committed is not None:
                return transaction.committed
            if transaction.failure is not None:
                raise transaction.failure
            if transaction.ended:
                raise transaction_over(transaction)
            try:
                self._faults.may_abort_commit()
                mutations = read_mutations(session, request.mutations)
                transaction.committed = engine.commit(
                    mutations, transaction_origin(request, transaction.excluded)
                )
            except SpannerError as error:
                transaction.roll_back()
                transaction.aborted = error.retry_delay_seconds is not None
                transaction.failure = None if transaction.aborted else error
                raise
            finally:
                transaction.ended = True
                if session.active is transaction:
                    session.active = None
            return transaction.committed


def read_mutations(session: Session, protos: Sequence[Message]) -> list[Mutation]:
    """The mutations of a request. Raises PERMISSION_DENIED for those that the session's role may
    not write."""
    database, rights = session.database, session.rights
    mutations = database.mutations.read(database.engine.schema, protos)
    if rights is not None:
        for mutation in mutations:
            rights.require_mutation(mutation)
    return mutations


def expect_read_write(transaction: SessionTransaction) -> ReadWriteTransaction:
    """The engine's transaction. Raises unless it is read-write."""
    if not isinstance(transaction.engine, ReadWriteTransaction):
        raise failed_precondition(
            "Cannot commit or rollback a read-only or partitioned-dml transaction."
        )
    return transaction.engine


def transaction_origin(request: Message, excluded: bool) -> TransactionOrigin:
    """What change streams learn of a transaction."""
    tag = request.request_options.transaction_tag
    return TransactionOrigin(tag, excluded) if tag or excluded else PLAIN_ORIGIN


def transaction_over(transaction: SessionTransaction) -> SpannerError:
    """A commit after a rollback, or after the server gave the transaction up."""
    if transaction.aborted:
        return aborted("Transaction was aborted.")
    return failed_precondition("Cannot commit a transaction after Rollback().")
