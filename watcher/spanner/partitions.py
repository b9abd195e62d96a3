"""One query read by many: Spanner partitions it, each partition is read at the same timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.api_core.exceptions import MethodNotImplemented, NotFound, PermissionDenied
from google.cloud.spanner_v1 import PartitionQueryRequest, TransactionSelector

from watcher.model.errors import (
    AccessDeniedError,
    ConfigurationError,
    UnavailableError,
    WatcherError,
)
from watcher.spanner.read_options import yield_to_others
from watcher.spanner.requests import apply_options, build_read_only
from watcher.spanner.results.wire import ResultPart
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
    """A part of a query in a batch transaction; ``token`` is Spanner's own."""

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
        transaction = BatchTransaction(request.session, answer.transaction.id, read_timestamp)
        return tuple(
            QueryPartition(transaction, each.partition_token) for each in answer.partitions
        )

    def read_partition(
        self, statement: Statement, partition: QueryPartition, data_boost: bool
    ) -> Iterator[ResultPart]:
        """The messages of one partition, at a low priority unless the options name another one; the
        statement must be the one that was partitioned.

        Raises VersionExpiredError, UnavailableError when Spanner has forgotten the transaction, and
        AccessDeniedError or ConfigurationError where there is no Data Boost.
        """
        request = self._build_request(statement, None)
        apply_options(yield_to_others(self._options), request)
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
        except (PermissionDenied, MethodNotImplemented) as error:
            if not data_boost:
                raise
            raise explain_data_boost(error) from error
        except NotFound as error:
            raise UnavailableError(
                f"Spanner no longer knows the partition ({error.message}); start the read again"
            ) from error


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
