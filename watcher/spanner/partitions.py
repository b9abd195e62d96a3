"""One query or read by many: Spanner partitions it, all partitions have one timestamp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import MethodNotImplemented, NotFound, PermissionDenied
from google.cloud.spanner_v1 import (
    PartitionQueryRequest,
    PartitionReadRequest,
    ReadRequest,
    TransactionSelector,
)

from watcher.model.errors import (
    AccessDeniedError,
    ConfigurationError,
    UnavailableError,
    WatcherError,
)
from watcher.spanner.keys import KeyRange
from watcher.spanner.read_options import yield_to_others
from watcher.spanner.requests import Request, apply_options, build_read_only
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.sessions import StreamCall
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream

DATA_BOOST_PERMISSION = "spanner.databases.useDataBoost"


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """A read-only transaction that several processes share."""

    session: str
    transaction_id: bytes
    read_timestamp: int


@dataclass(frozen=True, slots=True)
class QueryPartition:
    """A part of a query or read in a batch transaction; ``token`` is Spanner's own."""

    transaction: BatchTransaction
    token: bytes


class PartitionedQuery(QueryStream):
    """Queries that Spanner can partition: of one table, without aggregates, orders and limits."""

    def partition(self, statement: Statement, read_timestamp: int) -> tuple[QueryPartition, ...]:
        """The partitions of a query at a timestamp, as many as Spanner likes: it ignores wishes for
        their number or size (``PartitionOptions``).

        Raises VersionExpiredError when the timestamp is too old to read.
        """
        sent = self._place(statement)
        request = PartitionQueryRequest(
            sql=sent.sql,
            params=sent.params,
            param_types=sent.param_types,
            transaction={"begin": {"read_only": build_read_only(read_timestamp)}},
        )
        answer = self._call(self._session.api.partition_query, request, read_timestamp)
        return list_partitions(request, answer, read_timestamp)

    def partition_range(
        self, table: str, columns: Sequence[str], keys: KeyRange, read_timestamp: int
    ) -> tuple[QueryPartition, ...]:
        """As ``partition``, of the read of a key range."""
        request = PartitionReadRequest(
            table=table,
            columns=list(columns),
            key_set=keys.key_set,
            transaction={"begin": {"read_only": build_read_only(read_timestamp)}},
        )
        answer = self._call(self._session.api.partition_read, request, read_timestamp)
        return list_partitions(request, answer, read_timestamp)

    def read_partition(
        self, statement: Statement, partition: QueryPartition, data_boost: bool
    ) -> Iterator[ResultPart]:
        """The messages of one partition, at a low priority unless the options name another one; the
        statement must be the one that was partitioned.

        Raises VersionExpiredError, UnavailableError when Spanner has forgotten the transaction, and
        AccessDeniedError or ConfigurationError where there is no Data Boost.
        """
        request = self._build_request(statement, None)
        return self._read_part(self._session.execute, request, partition, data_boost)

    def read_range_partition(
        self,
        table: str,
        columns: Sequence[str],
        keys: KeyRange,
        partition: QueryPartition,
        data_boost: bool,
    ) -> Iterator[ResultPart]:
        """As ``read_partition``, of a key range that was partitioned."""
        request = ReadRequest(table=table, columns=list(columns), key_set=keys.key_set)
        return self._read_part(self._session.read, request, partition, data_boost)

    def _read_part(
        self, call: StreamCall, request: Request, partition: QueryPartition, data_boost: bool
    ) -> Iterator[ResultPart]:
        apply_options(yield_to_others(self._options), request)
        request.transaction = TransactionSelector(id=partition.transaction.transaction_id)
        request.session = partition.transaction.session
        request.partition_token = partition.token
        request.data_boost_enabled = data_boost
        try:
            at = partition.transaction.read_timestamp
            yield from self._stream(call, request, at, own_session=False)
        except (PermissionDenied, MethodNotImplemented) as error:
            if not data_boost:
                raise
            raise explain_data_boost(error) from error
        except NotFound as error:
            raise UnavailableError(
                f"Spanner no longer knows the partition ({error.message}); start the read again"
            ) from error


def list_partitions(
    request: PartitionQueryRequest | PartitionReadRequest, answer: Any, read_timestamp: int
) -> tuple[QueryPartition, ...]:
    """Those of an answer."""
    transaction = BatchTransaction(request.session, answer.transaction.id, read_timestamp)
    return tuple(QueryPartition(transaction, each.partition_token) for each in answer.partitions)


def explain_data_boost(error: PermissionDenied | MethodNotImplemented) -> WatcherError:
    """Why a read by Data Boost is refused, and what to do."""
    if isinstance(error, MethodNotImplemented):
        return ConfigurationError(
            f"there is no Data Boost here ({error.message}): Spanner Omni has none; read without it"
        )
    return AccessDeniedError(
        f"no permission to read by Data Boost ({error.message}): grant {DATA_BOOST_PERMISSION} on"
        " the database (roles/spanner.databaseReaderWithDataBoost), or read without Data Boost"
    )
