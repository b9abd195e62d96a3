"""ExecuteSql, ExecuteBatchDml and Read, at once or as streams."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from emulator.engine.partitioned import PartitionedDmlTransaction
from emulator.engine.query_stats import QueryStats
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.splits import QueryPartition
from emulator.errors import SpannerError, invalid_argument
from emulator.faults import FaultInjector
from emulator.services import change_streams
from emulator.services.calls import RpcContext
from emulator.services.measuring import Measurement, should_count_rows
from emulator.services.partitions import query_digest, read_digest, read_token
from emulator.services.request_options import check_options, check_priority
from emulator.services.sessions import Session, Sessions, SessionTransaction
from emulator.services.statements import (
    PLAN,
    BoundStatement,
    StatementOutcome,
    bind_statement,
    run,
    run_dml,
)
from emulator.services.streams import Streams, encode_whole
from emulator.services.transactions import (
    SelectedTransaction,
    Transactions,
    add_precommit_token,
    expect_writable,
)
from emulator.sql.change_streams import ReadCall, read_call
from emulator.sql.postgres import change_streams as postgres_streams
from emulator.sql.statements import begins_dml
from emulator.wire import messages as m
from emulator.wire.keys import key_decoders, read_key_set
from emulator.wire.messages import Message
from emulator.wire.status import to_status
from emulator.wire.tokens import Resume
from emulator.wire.types import result_metadata
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.grants import SELECT, TABLE


def find_read_call(sql: str, schema: Schema) -> ReadCall | None:
    """The call of a change stream's read function that a query consists of, or None."""
    read = postgres_streams.read_call if schema.dialect is Dialect.POSTGRESQL else read_call
    return read(sql, schema)


class QueryMethods:
    """Reads and statements."""

    def __init__(
        self, sessions: Sessions, transactions: Transactions, faults: FaultInjector
    ) -> None:
        self._sessions = sessions
        self._transactions = transactions
        self._streams = Streams(faults)

    def execute_sql(self, request: Message, context: RpcContext) -> Message:
        """Runs a statement; the whole result in one message."""
        session = self._sessions.get(request.session)
        if find_read_call(request.sql, session.database.engine.schema) is not None:
            change_streams.refuse_unary()
        statement, selected, _ = self._prepare(session, request, context)
        stats = session.database.engine.query_stats
        return self._execute(
            request, statement, selected, stats, lambda o: [encode_whole(o, selected.transaction)]
        )[0]

    def execute_streaming(self, request: Message, context: RpcContext) -> Iterator[bytes]:
        """Runs a statement; a query's stream can be resumed."""
        session = self._sessions.get(request.session)
        call = find_read_call(request.sql, session.database.engine.schema)
        if call is not None:
            yield from change_streams.stream_records(call, session, request, self._streams, context)
            return
        statement, selected, resume = self._prepare(session, request, context)
        transaction = selected.transaction
        stats = session.database.engine.query_stats
        if not statement.is_query and request.query_mode != PLAN:
            yield from self._execute(
                request,
                statement,
                selected,
                stats,
                lambda o: list(self._streams.stream(o, transaction, None, context)),
            )
            return
        outcome = self._run(statement, selected, request, stats)
        digest = query_digest(request)
        yield from self._streams.stream(outcome, transaction, resume, context, digest)

    def execute_batch(self, request: Message, context: RpcContext) -> Message:
        """Runs DML statements in order; the first that fails ends the batch, said in its status."""
        session = self._sessions.get(request.session)
        if not request.statements:
            raise invalid_argument("No statements in batch DML request.")
        check_priority(request)
        selected = self._transactions.select(session, request.transaction, context)
        transaction = selected.transaction
        expect_writable(transaction)
        digest = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()
        with transaction.lock:
            previous = transaction.find_answer(request.seqno, digest)
            if previous is not None:
                return previous
            answer = self._batch(session, selected, request)
            transaction.remember(request.seqno, digest, answer)
        return answer

    def read(self, request: Message, context: RpcContext) -> Message:
        """Reads rows by key; the whole result in one message."""
        selected, outcome, _ = self._read(request, context)
        return encode_whole(outcome, selected.transaction)

    def read_streaming(self, request: Message, context: RpcContext) -> Iterator[bytes]:
        """Reads rows by key; the stream can be resumed."""
        selected, outcome, resume = self._read(request, context)
        digest = read_digest(request)
        yield from self._streams.stream(outcome, selected.transaction, resume, context, digest)

    def _prepare(
        self, session: Session, request: Message, context: RpcContext
    ) -> tuple[BoundStatement, SelectedTransaction, Resume | None]:
        """The statement of a request, its transaction, and where its stream resumes."""
        resume = parse_resume(request)
        selected = self._transactions.select(session, request.transaction, context, resume)
        with selected.abandon_on_error():
            check_options(request, selected.transaction.engine)
            statement = bind_statement(
                selected, request, session.rights, planned=request.query_mode == PLAN
            )
            if request.partition_token:
                within = read_token(request.partition_token, query_digest(request))
                cut = statement.compiled.find_partitioned_table()
                part = QueryPartition(cut.table, cut.index, within)
                statement = replace(statement, part=part)
        return statement, selected, resume

    def _execute(
        self,
        request: Message,
        statement: BoundStatement,
        selected: SelectedTransaction,
        stats: QueryStats,
        write: Callable[[StatementOutcome], list[bytes]],
    ) -> list[bytes]:
        """DML runs once for each seqno: a request that comes again gets the first answer again."""
        if statement.is_query or request.query_mode == PLAN:
            return write(self._run(statement, selected, request, stats))
        transaction = selected.transaction
        digest = hashlib.sha256(
            request.sql.encode() + request.params.SerializeToString(deterministic=True)
        ).digest()
        with transaction.lock:
            previous = transaction.find_answer(request.seqno, digest)
            if isinstance(previous, list):
                return previous
            answer = write(self._run(statement, selected, request, stats))
            if not isinstance(transaction.engine, PartitionedDmlTransaction):
                transaction.remember(request.seqno, digest, answer)
            return answer

    def _run(
        self,
        statement: BoundStatement,
        selected: SelectedTransaction,
        request: Message,
        stats: QueryStats,
    ) -> StatementOutcome:
        """Runs a statement; a transaction that it was to begin ends with it when it fails."""
        if request.query_mode == PLAN:
            return self._plan(statement, selected)
        tag = request.request_options.request_tag
        measurement = Measurement(stats, statement, selected.transaction, tag)
        counted = should_count_rows(stats, request)
        try:
            outcome = run(statement, selected, request.query_mode, counted=counted)
        except SpannerError:
            measurement.record_failure()
            selected.abandon()
            raise
        return measurement.record_when_read(outcome, counted=counted)

    def _run_batch_dml(
        self, stats: QueryStats, statement: BoundStatement, selected: SelectedTransaction
    ) -> StatementOutcome:
        """A statement of a batch."""
        measurement = Measurement(stats, statement, selected.transaction, "")
        counted = stats.should_count(statement.compiled.text)
        try:
            outcome = run_dml(statement, selected, 0, counted=counted)
        except SpannerError:
            measurement.record_failure()
            raise
        return measurement.record_when_read(outcome, counted=counted)

    def _plan(self, statement: BoundStatement, selected: SelectedTransaction) -> StatementOutcome:
        """A plan; nothing is run."""
        try:
            return run(statement, selected, PLAN)
        except SpannerError:
            selected.abandon()
            raise

    def _read(
        self, request: Message, context: RpcContext
    ) -> tuple[SelectedTransaction, StatementOutcome, Resume | None]:
        session = self._sessions.get(request.session)
        resume = parse_resume(request)
        within = None
        if request.partition_token:
            within = read_token(request.partition_token, read_digest(request))
        if request.limit < 0 or not request.columns:
            raise invalid_argument("A read needs columns, and a limit that is not negative.")
        require_read(session, request)
        selected = self._transactions.select(session, request.transaction, context, resume)
        engine = selected.transaction.engine
        with selected.abandon_on_error():
            check_options(request, engine)
            keys = read_key_set(
                key_decoders(engine.state.schema, request.table, request.index), request.key_set
            )
            if isinstance(engine, PartitionedDmlTransaction):
                raise invalid_argument("Partitioned DML transactions do not support reads.")
            index = request.index or None
            arguments = request.table, index, tuple(request.columns), keys, request.limit
            if within is None:
                rows = engine.read(*arguments, check=selected.check)
            elif isinstance(engine, ReadOnlyTransaction):
                rows = engine.read(*arguments, check=selected.check, within=within)
            else:
                raise invalid_argument(
                    "A partition can only be read in the transaction that created it."
                )
        return (
            selected,
            StatementOutcome(rows, selected.add_transaction(result_metadata(rows.columns))),
            resume,
        )

    def _batch(self, session: Session, selected: SelectedTransaction, request: Message) -> Message:
        """The results of a batch up to the first statement that fails."""
        answer = m.ExecuteBatchDmlResponse()
        transaction = selected.transaction
        try:
            for number, proto in enumerate(request.statements):
                if not begins_dml(proto.sql):
                    raise invalid_argument(f"Statement {number}: '{proto.sql}' is not valid DML.")
                statement = bind_statement(selected, proto, session.rights)
                begun = None if answer.result_sets else selected.begun
                first = SelectedTransaction(transaction, begun, selected.check)
                outcome = self._run_batch_dml(session.database.engine.query_stats, statement, first)
                answer.result_sets.add().ParseFromString(
                    encode_whole(outcome, strip_precommit(transaction))
                )
        except SpannerError as error:
            if error.retry_delay_seconds is not None:
                selected.abandon()
                raise
            if not answer.result_sets:
                selected.abandon()
            answer.status.CopyFrom(to_status(error))
        add_precommit_token(transaction, answer)
        return answer


def strip_precommit(transaction: SessionTransaction) -> SessionTransaction:
    """The transaction without the precommit tokens, which a batch returns only once."""
    return SessionTransaction(
        transaction.id, transaction.session, transaction.engine, multiplexed=False
    )


def require_read(session: Session, request: Message) -> None:
    """Raises PERMISSION_DENIED unless the session's role may read these columns."""
    rights = session.rights
    if rights is not None:
        rights.require(SELECT, TABLE, request.table, request.columns)


def parse_resume(request: Message) -> Resume | None:
    """Where a stream resumes; None for a new one."""
    return Resume.from_bytes(request.resume_token) if request.resume_token else None
