"""One query read by many: Spanner partitions it, each partition is read at the same timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.api_core.exceptions import NotFound
from google.cloud.spanner_v1 import PartitionOptions, PartitionQueryRequest, TransactionSelector

from watcher.model.errors import UnavailableError
from watcher.spanner.requests import build_read_only
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """A read-only transaction that several processes share."""

    session: str
    transaction_id: bytes
    read_timestamp: int


@dataclass(frozen=True, slots=True)
class QueryPartition:
    """A part of a query in a batch transaction; ``token`` is Spanner's own."""

    transaction: BatchTransaction
    token: bytes


class PartitionedQuery(QueryStream):
    """Queries that Spanner can partition: of one table, without aggregates, orders and limits."""

    def partition(
        self, statement: Statement, read_timestamp: int, partitions_max: int
    ) -> tuple[QueryPartition, ...]:
        """The partitions of a query at a timestamp. Spanner takes ``partitions_max`` as a hint; 0
        gives none.

        Raises VersionExpiredError when the timestamp is too old to read.
        """
        options = PartitionOptions(max_partitions=partitions_max) if partitions_max else None
        sent = self._place(statement)
        request = PartitionQueryRequest(
            sql=sent.sql,
            params=sent.params,
            param_types=sent.param_types,
            transaction={"begin": {"read_only": build_read_only(read_timestamp)}},
            partition_options=options,
        )
        answer = self._call(self._session.api.partition_query, request, read_timestamp)
        transaction = BatchTransaction(request.session, answer.transaction.id, read_timestamp)
        return tuple(
            QueryPartition(transaction, each.partition_token) for each in answer.partitions
        )

    def read_partition(
        self, statement: Statement, partition: QueryPartition, data_boost: bool
    ) -> Iterator[ResultPart]:
        """The messages of one partition; the statement must be the one that was partitioned.

        Raises VersionExpiredError, or UnavailableError when Spanner has forgotten the transaction.
        """
        request = self._build_request(statement, None)
        request.transaction = TransactionSelector(id=partition.transaction.transaction_id)
        request.session = partition.transaction.session
        request.partition_token = partition.token
        request.data_boost_enabled = data_boost
        try:
            yield from self._stream(
                self._session.execute,
                request,
                partition.transaction.read_timestamp,
                own_session=False,
            )
        except NotFound as error:
            raise UnavailableError(
                f"Spanner no longer knows the partition ({error.message}); start the read again"
            ) from error
