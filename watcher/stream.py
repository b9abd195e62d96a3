"""Queries as streams of PartialResultSet: at a timestamp, resumed after a broken connection."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
from google.api_core.exceptions import (
    FailedPrecondition,
    InternalServerError,
    NotFound,
    ServiceUnavailable,
    from_grpc_error,
)
from google.api_core.gapic_v1.client_info import ClientInfo
from google.api_core.gapic_v1.routing_header import to_grpc_metadata
from google.cloud.spanner_v1 import (
    ExecuteSqlRequest,
    ReadRequest,
    ResultSet,
    ResultSetStats,
    Type,
)
from google.cloud.spanner_v1.database import Database
from google.protobuf.struct_pb2 import Struct

from watcher.errors import UnavailableError, VersionExpiredError
from watcher.wire import ResultPart, result_part

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RESTARTS_MAX = 20
"""How often one stream is taken up again, without a row meanwhile, before it is an error."""
PAUSE_SECONDS_MIN = 0.02
PAUSE_SECONDS_MAX = 5.0
CALL_SECONDS_MAX = 60.0
STREAM_SECONDS_MAX = 3600.0
WITH_STATS = 3
"""The query mode of Spanner's that tells statistics with the rows, and no plan."""
SERVICE = "/google.spanner.v1.Spanner/"

WireValue = str | bool | list[str] | None
"""A parameter as JSON carries it: INT64 and TIMESTAMP are strings."""

Request = ExecuteSqlRequest | ReadRequest
StreamCall = Callable[..., Iterable[ResultPart]]


CLIENT = ("x-goog-api-client", ClientInfo(client_library_version="watcher").to_user_agent())


def micros_of(moment: datetime) -> int:
    """A time as microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    """Microseconds since 1970 as a time in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def timestamp_text(micros: int) -> str:
    """Microseconds since 1970 as RFC 3339."""
    return moment_of(micros).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def read_only(read_timestamp_micros: int | None) -> dict[str, object]:
    """How a read-only transaction reads: at a timestamp, or strongly."""
    if read_timestamp_micros is None:
        return {"return_read_timestamp": True, "strong": True}
    return {"return_read_timestamp": True, "read_timestamp": moment_of(read_timestamp_micros)}


def pause_seconds(restarts: int) -> float:
    """How long to wait before a stream is taken up again: longer each time, with jitter."""
    longest = min(PAUSE_SECONDS_MIN * 2.0 ** (restarts - 1), PAUSE_SECONDS_MAX)
    return longest * random.uniform(0.5, 1.0)


class QueryStream:
    """Runs read-only queries in one multiplexed session, which is made anew when it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._api = database.spanner_api
        self._metadata = (("google-cloud-resource-prefix", database.name),)
        self._session = ""
        self.counts_scans = False
        """Whether queries ask how many rows Spanner scanned: it costs the server a little."""
        self.scanned_rows = 0
        self.stopping: threading.Event | None = None
        """Once it is set nothing is tried again."""
        self.restarts = 0
        """How often a stream was taken up again after it broke."""
        # The generated client would make an object of every value: see watcher.wire.
        channel = self._api.transport.grpc_channel
        self._execute = stream_call(channel, "ExecuteStreamingSql", ExecuteSqlRequest.serialize)
        self._read = stream_call(channel, "StreamingRead", ReadRequest.serialize)

    @property
    def database_name(self) -> str:
        """The resource name of the database."""
        return str(self._database.name)

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

        Raises VersionExpiredError when the timestamp is too old to read.
        """
        request = self._request(sql, params, types, read_timestamp_micros)
        for attempt in range(RESTARTS_MAX):
            request.session = self._session_name()
            try:
                answer = self._api.execute_sql(
                    request=request, metadata=self._metadata, retry=None, timeout=CALL_SECONDS_MAX
                )
            except NotFound as error:
                self._forget(request.session, error)
                continue
            except (ServiceUnavailable, InternalServerError):
                self._pause(pause_seconds(attempt))
                continue
            except FailedPrecondition as error:
                raise expired_or(error, read_timestamp_micros) from error
            rows = ResultSet.pb(answer).rows
            numbers = [int(row.values[0].string_value) for row in rows]
            return micros_of(answer.metadata.transaction.read_timestamp), numbers
        raise UnavailableError(f"{self._database.name} does not answer, after {RESTARTS_MAX} tries")

    def rows(
        self,
        sql: str,
        params: Mapping[str, WireValue],
        types: Mapping[str, Type],
        read_timestamp_micros: int | None,
        counted: bool = True,
    ) -> Iterator[ResultPart]:
        """The messages of a query's result; None reads strongly.

        A message is passed on when a resume token covers it, so that after UNAVAILABLE no row is
        repeated or missing. Raises VersionExpiredError when the timestamp is too old to read.
        ``counted`` is False for what Spanner cannot tell the statistics of.
        """
        request = self._request(sql, params, types, read_timestamp_micros)
        if not (self.counts_scans and counted):
            return self._resumed(self._execute, request, read_timestamp_micros)
        request.query_mode = ExecuteSqlRequest.QueryMode(WITH_STATS)
        return self._counted(self._resumed(self._execute, request, read_timestamp_micros))

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
        return self._resumed(self._read, request, read_timestamp_micros)

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
        return self._resumed(self._read, request, read_timestamp_micros)

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
        begun = self._begin(call, request, own_session)
        return self._continued(begun, call, request, read_timestamp_micros, own_session)

    def _continued(
        self,
        begun: Iterable[ResultPart],
        call: StreamCall,
        request: Request,
        read_timestamp_micros: int | None,
        own_session: bool,
    ) -> Iterator[ResultPart]:
        waiting: list[ResultPart] = []
        restarts = 0
        while True:
            try:
                for message in messages(begun):
                    waiting.append(message)
                    if message.resume_token:
                        restarts = 0
                        request.resume_token = message.resume_token
                        yield from waiting
                        waiting = []
                yield from waiting
                return
            except (ServiceUnavailable, InternalServerError) as error:
                restarts += 1
                self.restarts += 1
                if restarts > RESTARTS_MAX:
                    raise UnavailableError(
                        f"{self._database.name} broke a stream {restarts} times: {error.message}"
                    ) from error
                self._pause(pause_seconds(restarts))
                waiting = []
            except NotFound as error:
                if not own_session:
                    raise
                self._forget(request.session, error)
                waiting = []
            except FailedPrecondition as error:
                raise expired_or(error, read_timestamp_micros) from error
            begun = self._begin(call, request, own_session)

    def _pause(self, seconds: float) -> None:
        """Waits before something is tried again. Raises UnavailableError when it is to stop."""
        if self.stopping is None:
            time.sleep(seconds)
        elif self.stopping.wait(seconds):
            raise UnavailableError(f"{self._database.name} did not answer, and it is time to stop")

    def _begin(self, call: StreamCall, request: Request, own_session: bool) -> Iterable[ResultPart]:
        if own_session:
            request.session = self._session_name()
        routing = to_grpc_metadata([("session", request.session)])
        metadata = (*self._metadata, routing, CLIENT)
        return call(request, metadata=metadata, timeout=STREAM_SECONDS_MAX)

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
        return ExecuteSqlRequest(
            sql=sql,
            params=values,
            param_types=dict(types),
            transaction={"single_use": {"read_only": read_only(read_timestamp_micros)}},
        )

    def _session_name(self) -> str:
        if not self._session:
            session = self._api.create_session(
                request={"database": self._database.name, "session": {"multiplexed": True}},
                metadata=self._metadata,
            )
            self._session = session.name
        return self._session

    def _forget(self, session: str, error: NotFound) -> None:
        """A session that is gone is replaced, once for all streams that were under way in it;
        anything else that is gone is an error."""
        if "session" not in error.message.lower():
            raise error
        if session == self._session:
            self._session = ""


def messages(begun: Iterable[ResultPart]) -> Iterator[ResultPart]:
    """The messages of a call; its errors as those of google.api_core."""
    try:
        yield from begun
    except grpc.RpcError as error:
        raise from_grpc_error(error) from error


def stream_call(
    channel: grpc.Channel, method: str, serializer: Callable[[Any], bytes]
) -> StreamCall:
    """A streaming method of Spanner's whose messages are read as ``watcher.wire`` defines them."""
    call: StreamCall = channel.unary_stream(
        SERVICE + method, request_serializer=serializer, response_deserializer=result_part
    )
    return call


def expired_or(error: FailedPrecondition, read_timestamp_micros: int | None) -> Exception:
    """Tells a read older than the version retention from other refusals, by Spanner's words."""
    if read_timestamp_micros is not None and "maximum timestamp staleness" in error.message:
        return VersionExpiredError(
            f"the database keeps no versions as old as {timestamp_text(read_timestamp_micros)}"
            f" ({error.message}); its version_retention_period, 1h unless set and 7d at most,"
            " says how long it does"
        )
    return error
