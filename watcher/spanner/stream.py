"""Queries as streams of PartialResultSet: at a timestamp, resumed after a broken connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud.spanner_v1 import (
    ExecuteSqlRequest,
    PartitionQueryRequest,
    ReadRequest,
    ResultSet,
    ResultSetStats,
    Type,
)
from google.protobuf.struct_pb2 import Struct

from watcher.spanner.outages import NO_ANSWER, Outages, Tries
from watcher.spanner.read_options import ReadOptions
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.resumption import Request, Resumption, expired_or
from watcher.spanner.sessions import SharedSession, StreamCall
from watcher.spanner.timestamps import micros_of, moment_of

CALL_SECONDS_MAX = 60.0
WITH_STATS = 3
"""The query mode of Spanner's that tells statistics with the rows, and no plan."""

WireValue = str | bool | list[str] | None
"""A parameter as JSON carries it: INT64 and TIMESTAMP are strings."""


def read_only(read_timestamp_micros: int | None) -> dict[str, object]:
    """How a read-only transaction reads: at a timestamp, or strongly."""
    if read_timestamp_micros is None:
        return {"return_read_timestamp": True, "strong": True}
    return {"return_read_timestamp": True, "read_timestamp": moment_of(read_timestamp_micros)}


class QueryStream:
    """Runs read-only queries in a session that it shares with others of the process.

    What it counts and whether it is to stop are its own.
    """

    def __init__(self, session: SharedSession, options: ReadOptions, outages: Outages) -> None:
        self._session = session
        self._options = options
        self._outages = outages
        self.counts_scans = False
        """Whether queries ask how many rows Spanner scanned: it costs the server a little."""
        self.scanned_rows = 0
        self.restarts = 0
        """How often a stream was taken up again after it broke or its deadline passed."""

    @property
    def database_name(self) -> str:
        """The resource name of the database."""
        return self._session.database_name

    def look(
        self, sql: str, params: Mapping[str, WireValue], types: Mapping[str, Type]
    ) -> tuple[int, bool]:
        """The timestamp, in microseconds, at which a strong read of the query is served now, and
        whether it found anything: one cheap call.

        Spanner: every transaction at or below it is visible there, and none can commit there later.
        """
        read_timestamp, numbers = self.numbers(sql, params, types, None)
        return read_timestamp, bool(numbers)

    def numbers(
        self,
        sql: str,
        params: Mapping[str, WireValue],
        types: Mapping[str, Type],
        read_timestamp_micros: int | None,
    ) -> tuple[int, list[int]]:
        """The read timestamp and the first column, INT64, of a query with a short result.

        Raises VersionExpiredError when the timestamp is too old to read, UnavailableError when
        nothing answers for too long.
        """
        request = self._request(sql, params, types, read_timestamp_micros)
        answer = self._answer(self._session.api.execute_sql, request, read_timestamp_micros)
        rows = ResultSet.pb(answer).rows
        numbers = [int(row.values[0].string_value) for row in rows]
        return micros_of(answer.metadata.transaction.read_timestamp), numbers

    def _answer(
        self,
        call: Callable[..., Any],
        request: ExecuteSqlRequest | PartitionQueryRequest,
        read_timestamp_micros: int | None,
    ) -> Any:
        """What a unary call of the session answers; it is tried again while nothing answers."""
        tries = Tries(self._outages)
        while True:
            try:
                request.session = self._session.name
                answer = call(
                    request=request,
                    metadata=self._session.metadata,
                    retry=None,
                    timeout=CALL_SECONDS_MAX,
                )
            except NotFound as error:
                self._session.forget(request.session, error)
            except NO_ANSWER as error:
                tries.failed(error)
            except FailedPrecondition as error:
                raise expired_or(error, read_timestamp_micros) from error
            else:
                tries.answered()
                return answer

    def rows(
        self,
        sql: str,
        params: Mapping[str, WireValue],
        types: Mapping[str, Type],
        read_timestamp_micros: int | None,
        counted: bool = True,
    ) -> Iterator[ResultPart]:
        """The messages of a query's result; None reads strongly.

        The stream is taken up again after UNAVAILABLE and past its deadline; no row is repeated or
        missing. Raises VersionExpiredError when the timestamp is too old to read.
        ``counted`` is False for what Spanner cannot tell the statistics of.
        """
        request = self._request(sql, params, types, read_timestamp_micros)
        if not (self.counts_scans and counted):
            return self._resumed(self._session.execute, request, read_timestamp_micros)
        request.query_mode = ExecuteSqlRequest.QueryMode(WITH_STATS)
        return self._counted(self._resumed(self._session.execute, request, read_timestamp_micros))

    def _counted(self, results: Iterator[ResultPart]) -> Iterator[ResultPart]:
        """The messages; what the last one tells is added up."""
        for message in results:
            if message.stats:
                told = ResultSetStats.deserialize(message.stats).query_stats or {}
                self.scanned_rows += int(str(told.get("rows_scanned", "0")).replace(",", ""))
            yield message

    def read_range(
        self,
        table: str,
        columns: Sequence[str],
        first: tuple[Sequence[Any] | None, bool],
        end: tuple[Sequence[Any] | None, bool],
        limit: int,
        read_timestamp_micros: int | None,
    ) -> Iterator[ResultPart]:
        """As ``rows``, for the rows of a key range in the order of the key.

        ``first`` and ``end`` are keys and whether they are inside of the range. None is the
        table's own first or last key. ``limit`` 0 is none.
        """
        (low, low_inside), (high, high_inside) = first, end
        keys: dict[str, object] = {"all_": True}
        if low is not None or high is not None:
            # An empty key stands before, or after, every key; it must be inside.
            bounds = {
                "start_closed" if low_inside or low is None else "start_open": list(low or ()),
                "end_closed" if high_inside or high is None else "end_open": list(high or ()),
            }
            keys = {"ranges": [bounds]}
        request = ReadRequest(
            table=table,
            columns=list(columns),
            key_set=keys,
            limit=limit,
            transaction={"single_use": {"read_only": read_only(read_timestamp_micros)}},
        )
        self._options.apply_to(request)
        return self._resumed(self._session.read, request, read_timestamp_micros)

    def read_keys(
        self,
        table: str,
        columns: Sequence[str],
        keys: Sequence[Sequence[Any]],
        read_timestamp_micros: int | None,
    ) -> Iterator[ResultPart]:
        """As ``rows``, for the rows of some keys, which are in the JSON of Spanner's API."""
        request = ReadRequest(
            table=table,
            columns=list(columns),
            key_set={"keys": [list(key) for key in keys]},
            transaction={"single_use": {"read_only": read_only(read_timestamp_micros)}},
        )
        self._options.apply_to(request)
        return self._resumed(self._session.read, request, read_timestamp_micros)

    def _resumed(
        self,
        call: StreamCall,
        request: Request,
        read_timestamp_micros: int | None,
        own_session: bool = True,
    ) -> Iterator[ResultPart]:
        """The messages of a stream, taken up again where it broke. It is under way at once, before
        anybody asks for the first message.

        Without ``own_session`` the request names the session, which cannot be replaced.
        """
        return Resumption(
            self._session,
            call,
            request,
            self._outages,
            read_timestamp_micros,
            own_session,
            self._restarted,
        ).messages()

    def _restarted(self) -> None:
        self.restarts += 1

    def _request(
        self,
        sql: str,
        params: Mapping[str, WireValue],
        types: Mapping[str, Type],
        read_timestamp_micros: int | None,
    ) -> ExecuteSqlRequest:
        values = Struct()
        for name, value in params.items():
            values[name] = value
        request = ExecuteSqlRequest(
            sql=sql,
            params=values,
            param_types=dict(types),
            transaction={"single_use": {"read_only": read_only(read_timestamp_micros)}},
        )
        self._options.apply_to(request)
        return request
