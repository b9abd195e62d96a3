"""Queries as streams of PartialResultSet: at a timestamp, resumed after a broken connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud.spanner_v1 import (
    ExecuteSqlRequest,
    PartitionQueryRequest,
    PartitionReadRequest,
    ReadRequest,
    ResultSet,
    ResultSetStats,
)

from watcher.spanner.dialects import FIND_DIALECT, GOOGLESQL, SqlDialect, parse_dialect
from watcher.spanner.keys import KeyRange
from watcher.spanner.outages import NO_ANSWER, CallRetries, Outages
from watcher.spanner.read_options import ReadOptions, yield_to_others
from watcher.spanner.requests import (
    Request,
    SentStatement,
    apply_options,
    build_read_only,
    build_statement,
)
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.resumption import Resumption, convert_refusal
from watcher.spanner.sessions import SharedSession, StreamCall
from watcher.spanner.sql import Statement
from watcher.spanner.timestamps import to_micros

CALL_SECONDS_MAX = 60.0
WITH_STATS = 3
"""The query mode of Spanner's that returns statistics with the rows, and no plan."""
NOTHING = Statement("SELECT 1")


class QueryStream:
    """Runs read-only queries in a session that it shares with others of the process.

    What it counts, and whether it is to stop, are its own.
    """

    def __init__(self, session: SharedSession, options: ReadOptions, outages: Outages) -> None:
        self._session = session
        self._options = options
        self._outages = outages
        self.counts_scans = False
        """Whether queries ask how many rows Spanner scanned: it costs the server a little."""
        self.scanned_rows = 0
        self.restarts = 0
        """How often a stream was resumed after it broke or its deadline passed."""
        self._last_strong_read: tuple[int, float] | None = None

    @property
    def failed_calls(self) -> int:
        """Calls that got no answer, or were refused for now, and were made again."""
        return self._outages.failed_calls

    @property
    def database_name(self) -> str:
        """The resource name of the database."""
        return self._session.database_name

    @property
    def sql(self) -> SqlDialect:
        """How statements are written for the database; asked once for all who share the session."""
        known = self._session.sql
        return known if known is not None else self._find_dialect()

    def _find_dialect(self) -> SqlDialect:
        """Asks for the dialect, as any other query of a short result."""
        request = ExecuteSqlRequest(
            sql=FIND_DIALECT, transaction={"single_use": {"read_only": build_read_only(None)}}
        )
        apply_options(self._options, request)
        rows = ResultSet.pb(self._call(self._session.api.execute_sql, request, None)).rows
        sql = parse_dialect(rows[0].values[0].string_value if rows else None)
        self._session.sql = sql
        return sql

    def fetch_read_timestamp(self) -> int:
        """The timestamp, in microseconds, at which a strong read is served now: one cheap call.

        Spanner: every transaction at or below it is visible there, and none can commit there later.
        """
        # assumes: strong-read-bound
        read_timestamp, _ = self.query_numbers(NOTHING, None)
        return read_timestamp

    def query_numbers(
        self, statement: Statement, read_timestamp_micros: int | None
    ) -> tuple[int, list[int]]:
        """The read timestamp and the first column, INT64, of a query with a short result.

        Raises VersionExpiredError when the timestamp is too old to read, UnavailableError when
        nothing answers for too long.
        """
        request = self._build_request(statement, read_timestamp_micros)
        answer = self._call(self._session.api.execute_sql, request, read_timestamp_micros)
        rows = ResultSet.pb(answer).rows
        numbers = [int(row.values[0].string_value) for row in rows]
        read_timestamp = to_micros(answer.metadata.transaction.read_timestamp)
        if read_timestamp_micros is None:
            self._last_strong_read = read_timestamp, time.monotonic()
        return read_timestamp, numbers

    def estimate_now(self) -> int | None:
        """Spanner's time, in microseconds, as it goes on from the latest strong read; None before
        the first. The clock of the machine may be off."""
        if self._last_strong_read is None:
            return None
        read_timestamp, counted = self._last_strong_read
        return read_timestamp + round((time.monotonic() - counted) * 1_000_000)

    def _call(
        self,
        method: Callable[..., Any],
        request: ExecuteSqlRequest | PartitionQueryRequest | PartitionReadRequest,
        read_timestamp_micros: int | None,
    ) -> Any:
        """Makes a unary call in the session, again and again while nothing answers."""
        retries = CallRetries(self._outages)
        while True:
            request.session = ""
            try:
                request.session = self._session.name
                answer = method(
                    request=request,
                    metadata=self._session.metadata,
                    retry=None,
                    timeout=CALL_SECONDS_MAX,
                )
            except NotFound as error:
                self._session.forget(request.session, error)
            except NO_ANSWER as error:
                retries.wait_after(error)
            except FailedPrecondition as error:
                raise convert_refusal(error, read_timestamp_micros) from error
            else:
                retries.reset()
                return answer

    def query(
        self, statement: Statement, read_timestamp_micros: int | None, with_stats: bool = True
    ) -> Iterator[ResultPart]:
        """The messages of a query's result; a timestamp of None reads strongly.

        The stream is resumed after UNAVAILABLE and past its deadline; no row is repeated or
        missing. Raises VersionExpiredError when the timestamp is too old to read.
        ``with_stats`` is False for queries whose statistics Spanner does not return.
        """
        request = self._build_request(statement, read_timestamp_micros)
        if not (self.counts_scans and with_stats):
            return self._stream(self._session.execute, request, read_timestamp_micros)
        request.query_mode = ExecuteSqlRequest.QueryMode(WITH_STATS)
        results = self._stream(self._session.execute, request, read_timestamp_micros)
        return self._count_scans(results)

    def _count_scans(self, results: Iterator[ResultPart]) -> Iterator[ResultPart]:
        """Passes the messages on; adds up the statistics of the last one."""
        for message in results:
            if message.stats:
                stats = ResultSetStats.deserialize(message.stats).query_stats or {}
                self.scanned_rows += int(str(stats.get("rows_scanned", "0")).replace(",", ""))
            yield message

    def read_range(
        self,
        table: str,
        columns: Sequence[str],
        keys: KeyRange,
        limit: int,
        read_timestamp_micros: int | None,
    ) -> Iterator[ResultPart]:
        """As ``query``, for the rows of a key range in the order of the key. ``limit`` 0: all.
        Whole tables are read so: at a low priority, unless the options name another one."""
        key_set, options = keys.key_set, yield_to_others(self._options)
        return self._read(table, columns, key_set, limit, read_timestamp_micros, options)

    def read_keys(
        self,
        table: str,
        columns: Sequence[str],
        keys: Sequence[Sequence[Any]],
        read_timestamp_micros: int | None,
    ) -> Iterator[ResultPart]:
        """As ``query``, for the rows of some keys, which are in the JSON of Spanner's API."""
        key_set: dict[str, object] = {"keys": [list(key) for key in keys]}
        return self._read(table, columns, key_set, 0, read_timestamp_micros, self._options)

    def _read(
        self,
        table: str,
        columns: Sequence[str],
        key_set: dict[str, object],
        limit: int,
        read_timestamp_micros: int | None,
        options: ReadOptions,
    ) -> Iterator[ResultPart]:
        request = ReadRequest(
            table=table,
            columns=list(columns),
            key_set=key_set,
            limit=limit,
            transaction={"single_use": {"read_only": build_read_only(read_timestamp_micros)}},
        )
        apply_options(options, request)
        return self._stream(self._session.read, request, read_timestamp_micros)

    def _stream(
        self,
        call: StreamCall,
        request: Request,
        read_timestamp_micros: int | None,
        own_session: bool = True,
    ) -> Iterator[ResultPart]:
        """The messages of a stream, resumed where it broke. The call is under way at once, before
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
            self._count_restart,
        ).stream_messages()

    def _count_restart(self) -> None:
        self.restarts += 1

    def _place(self, statement: Statement) -> SentStatement:
        """A statement as it is sent; who has no parameters need not ask for the dialect."""
        return build_statement(statement, self.sql if statement.params else GOOGLESQL)

    def _build_request(
        self, statement: Statement, read_timestamp_micros: int | None
    ) -> ExecuteSqlRequest:
        sent = self._place(statement)
        request = ExecuteSqlRequest(
            sql=sent.sql,
            params=sent.params,
            param_types=sent.param_types,
            transaction={"single_use": {"read_only": build_read_only(read_timestamp_micros)}},
        )
        apply_options(self._options, request)
        return request
