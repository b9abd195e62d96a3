"""Calls of a change stream's functions, and what their results say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.api_core.exceptions import InvalidArgument, OutOfRange

from watcher.captures import statements
from watcher.captures.change_stream.record_columns import RecordColumns, decode_chunks
from watcher.captures.change_stream.record_values import ChildPartition, Record
from watcher.captures.change_stream.records import decode_records
from watcher.captures.change_stream.sizes import Accepts, RecordSize, decode_sizes
from watcher.captures.change_stream.watched import WatchedStream
from watcher.model.errors import StreamExpiredError, StreamNotFoundError
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.timestamps import format_timestamp

HEARTBEAT_MILLISECONDS = 10_000
OPEN_HEARTBEAT_MILLISECONDS = 1_000
"""Spanner: the least. A quiet partition's watermark is so old at most."""


@dataclass(frozen=True, slots=True)
class StreamCalls:
    """Of the functions of one stream. Both ends of what is asked for are inside."""

    queries: QueryClient
    change_stream: WatchedStream

    def query(
        self, name: str, token: str | None, start: int, end: int | None = None
    ) -> Iterator[Record]:
        """The records of a partition, or the partitions themselves; both ends are inside. Without
        an end the query stays open."""
        return decode_records(self.execute(name, token, start, end))

    def query_columns(
        self, name: str, token: str | None, start: int, end: int
    ) -> Iterator[Record | RecordColumns]:
        """As ``query``, with many records at once."""
        return decode_chunks(self.execute(name, token, start, end))

    def query_sizes(
        self, accepts_kind: Accepts, name: str, token: str | None, start: int, end: int
    ) -> Iterator[RecordSize | ChildPartition]:
        """As ``query``, of how large the records are."""
        results = self.execute(name, token, start, end)
        return decode_sizes(results, accepts_kind)

    def execute(
        self, name: str, token: str | None, start: int, end: int | None
    ) -> Iterator[ResultPart]:
        """The results of a call of a stream's function, which is under way at once."""
        beat = HEARTBEAT_MILLISECONDS if end is not None else OPEN_HEARTBEAT_MILLISECONDS
        statement = statements.read_change_stream(
            name, start, end, token, beat, self.queries.stream.sql, self.change_stream.keys_move
        )
        results = self.queries.stream.query(statement, None, with_stats=False)
        return self._explain_errors(results, name, start)

    def _explain_errors(
        self, results: Iterator[ResultPart], name: str, start: int
    ) -> Iterator[ResultPart]:
        """The results; errors that are known say what they mean."""
        try:
            yield from results
        except InvalidArgument as error:
            if name == self.change_stream.name or "not found" not in error.message:
                raise
            raise StreamNotFoundError(
                f"function READ_{name} of change stream {self.change_stream.name} does not exist"
                f" any more ({error.message}): its placement was dropped; remove it from placements"
            ) from error
        except OutOfRange as error:
            raise StreamExpiredError(
                f"change stream {self.change_stream.name} cannot be read from"
                f" {format_timestamp(start)} ({error.message}); what it no longer keeps is lost to"
                " this reader: give the reader a new position or checkpoint, with a backfill"
            ) from error
