"""One query read by many: Spanner parts it, each part is read at the same timestamp, anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.api_core.exceptions import NotFound
from google.cloud.spanner_v1 import (
    PartitionOptions,
    PartitionQueryRequest,
    TransactionSelector,
    Type,
)
from google.protobuf.struct_pb2 import Struct

from watcher.errors import UnavailableError
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.stream import QueryStream, WireValue, read_only

Params = Mapping[str, WireValue]
Types = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """A read-only transaction that several processes share."""

    session: str
    transaction_id: bytes
    read_timestamp: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of a query in a batch transaction; ``token`` is Spanner's own."""

    transaction: BatchTransaction
    token: bytes


class PartitionedQuery(QueryStream):
    """Queries that Spanner parts: one table, without aggregates, orders and limits."""

    def partition(
        self, sql: str, params: Params, types: Types, read_timestamp: int, most: int
    ) -> tuple[Partition, ...]:
        """The parts of a query at a timestamp; Spanner takes ``most`` as a hint, 0 is none.

        Raises VersionExpiredError when the timestamp is too old to read.
        """
        values = Struct()
        values.update(params)
        request = PartitionQueryRequest(
            sql=sql,
            params=values,
            param_types=dict(types),
            transaction={"begin": {"read_only": read_only(read_timestamp)}},
            partition_options=PartitionOptions(max_partitions=most) if most else None,
        )
        answer = self._answer(self._session.api.partition_query, request, read_timestamp)
        session = request.session
        transaction = BatchTransaction(session, answer.transaction.id, read_timestamp)
        return tuple(Partition(transaction, each.partition_token) for each in answer.partitions)

    def part(
        self, sql: str, params: Params, types: Types, partition: Partition, data_boost: bool
    ) -> Iterator[ResultPart]:
        """The messages of one part; the query must be the one that was parted.

        Raises VersionExpiredError, or UnavailableError when Spanner has forgotten the transaction.
        """
        request = self._request(sql, params, types, None)
        request.transaction = TransactionSelector(id=partition.transaction.transaction_id)
        request.session = partition.transaction.session
        request.partition_token = partition.token
        request.data_boost_enabled = data_boost
        try:
            yield from self._resumed(
                self._session.execute,
                request,
                partition.transaction.read_timestamp,
                own_session=False,
            )
        except NotFound as error:
            raise UnavailableError(
                f"Spanner does not know the partition any more ({error.message}); read again"
            ) from error
