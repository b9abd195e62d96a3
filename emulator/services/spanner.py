"""google.spanner.v1.Spanner: the data API."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.empty_pb2 import Empty

from emulator import limits
from emulator.errors import SpannerError, invalid_argument
from emulator.faults import FaultInjector
from emulator.services.calls import Call, RpcContext
from emulator.services.commits import Commits
from emulator.services.filters import select
from emulator.services.paging import cut_page
from emulator.services.partitions import Partitions
from emulator.services.queries import QueryMethods
from emulator.services.sessions import Session, Sessions
from emulator.services.transactions import Transactions, add_precommit_token, transaction_message
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message

SERVICE = "/google.spanner.v1.Spanner/"


class SpannerApi:
    """The methods of the service; sessions and BeginTransaction here, the rest in their modules."""

    def __init__(self, sessions: Sessions, faults: FaultInjector) -> None:
        self._sessions = sessions
        self._transactions = Transactions(sessions, faults)
        self._commits = Commits(sessions, faults)
        self._queries = QueryMethods(sessions, self._transactions, faults)
        self._partitions = Partitions(sessions, self._transactions)

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        queries, commits, partitions = self._queries, self._commits, self._partitions
        named = {
            "CreateSession": Call(m.CreateSessionRequest, self.create_session),
            "BatchCreateSessions": Call(m.BatchCreateSessionsRequest, self.batch_create_sessions),
            "GetSession": Call(m.GetSessionRequest, self.get_session),
            "ListSessions": Call(m.ListSessionsRequest, self.list_sessions),
            "DeleteSession": Call(m.DeleteSessionRequest, self.delete_session),
            "BeginTransaction": Call(m.BeginTransactionRequest, self.begin),
            "Commit": Call(m.CommitRequest, commits.commit),
            "Rollback": Call(m.RollbackRequest, commits.rollback),
            "BatchWrite": Call(m.BatchWriteRequest, streaming=commits.batch_write),
            "ExecuteSql": Call(m.ExecuteSqlRequest, queries.execute_sql),
            "ExecuteStreamingSql": Call(m.ExecuteSqlRequest, streaming=queries.execute_streaming),
            "ExecuteBatchDml": Call(m.ExecuteBatchDmlRequest, queries.execute_batch),
            "Read": Call(m.ReadRequest, queries.read),
            "StreamingRead": Call(m.ReadRequest, streaming=queries.read_streaming),
            "PartitionQuery": Call(m.PartitionQueryRequest, partitions.query),
            "PartitionRead": Call(m.PartitionReadRequest, partitions.read),
        }
        return {SERVICE + name: call for name, call in named.items()}

    def create_session(self, request: Message, context: RpcContext) -> Message:
        """A new session, multiplexed on request."""
        return session_message(self._sessions.create(request.database, request.session))

    def batch_create_sessions(self, request: Message, context: RpcContext) -> Message:
        """Several sessions at once; fewer than asked for when that is very many."""
        if request.session_count < 1:
            raise invalid_argument(
                f"Invalid number of sessions {request.session_count}. Requested sessions should be "
                "greater than 0."
            )
        if request.session_template.multiplexed:
            raise invalid_argument("Multiplexed sessions may not be created in batch.")
        count = min(request.session_count, limits.SESSIONS_IN_BATCH_MAX)
        sessions = (
            self._sessions.create(request.database, request.session_template) for _ in range(count)
        )
        answer = m.BatchCreateSessionsResponse()
        answer.session.extend(session_message(session) for session in sessions)
        return answer

    def get_session(self, request: Message, context: RpcContext) -> Message:
        """A session."""
        return session_message(self._sessions.get(request.name))

    def list_sessions(self, request: Message, context: RpcContext) -> Message:
        """The sessions of a database."""
        chosen = select(self._sessions.list_sessions(request.database), request, session_message)
        sessions, token = cut_page(chosen, request)
        answer = m.ListSessionsResponse(next_page_token=token)
        answer.sessions.extend(session_message(session) for session in sessions)
        return answer

    def delete_session(self, request: Message, context: RpcContext) -> Message:
        """Ends a session; a missing one is not an error."""
        self._sessions.delete(request.name)
        return Empty()

    def begin(self, request: Message, context: RpcContext) -> Message:
        """Begins a transaction; with ``mutation_key`` one of mutations only."""
        session = self._sessions.get(request.session)
        keyed = request.HasField("mutation_key")
        if keyed and session.multiplexed and request.options.HasField("read_write"):
            check_mutation_key(session, request.mutation_key)
        transaction = self._transactions.begin(session, request.options, context)
        answer = transaction_message(transaction, request.options)
        if keyed:
            add_precommit_token(transaction, answer)
        return answer


def check_mutation_key(session: Session, mutation: Message) -> None:
    """A mutation of the ones that will be committed. Raises as their commit would, with
    INVALID_ARGUMENT for what is wrong with its values."""
    try:
        session.database.mutations.read(session.database.engine.schema, [mutation])
    except SpannerError as error:
        if error.code is grpc.StatusCode.FAILED_PRECONDITION:
            raise invalid_argument(error.message) from error
        raise


def session_message(session: Session) -> Message:
    """A session as the API shows it."""
    proto = m.Session(
        name=session.name,
        labels=session.labels,
        creator_role=session.creator_role,
        multiplexed=session.multiplexed,
    )
    times.fill_timestamp(proto.create_time, session.create_time_micros)
    times.fill_timestamp(proto.approximate_last_use_time, session.last_use_micros)
    return proto
