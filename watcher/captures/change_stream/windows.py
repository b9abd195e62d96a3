"""Reads a window of a change stream: a slice a partition, its children with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.api_core.exceptions import OutOfRange

from watcher.captures import StreamRows, statements
from watcher.captures.change_stream.lineage import Lineage, is_child_reader
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.record_columns import (
    RecordColumns,
    decode_chunks,
    make_stream_rows,
)
from watcher.captures.change_stream.records import (
    ChildPartition,
    DataRecord,
    Record,
    decode_records,
)
from watcher.captures.change_stream.rows import BATCH_ROWS, ChangeBuffer
from watcher.captures.change_stream.watched import ChangeFilter, WatchedStream
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.errors import StreamExpiredError
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.timestamps import format_timestamp
from watcher.window import Slice, Window

HEARTBEAT_MILLISECONDS = 10_000
OPEN_HEARTBEAT_MILLISECONDS = 1_000
"""Spanner: the least. A quiet partition's watermark is so old at most."""

EVERYTHING = ChangeFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSlice(Slice):
    """A partition of a stream that is active when the window begins, and those of its children that
    are its to read. Without a token: the records that the query for the partitions itself returned;
    with ``with_partitions``, all that the window holds."""

    stream: str
    token: str | None
    with_partitions: bool = False


@dataclass(frozen=True)
class ChangeStreamCapture:
    """The ``Capture`` of the changes of a stream. Picklable; keeps nothing between windows.

    ``whole_rows`` fetches the values that the stream's capture type leaves out.
    """

    queries: QueryClient
    change_stream: WatchedStream
    change_filter: ChangeFilter = EVERYTHING
    whole_rows: WholeRows | None = None

    def plan(self, window: Window) -> Sequence[PartitionSlice]:
        """As ``Capture.plan``: the partitions that are active when the window begins, by one call.

        Raises StreamExpiredError when the stream no longer keeps records as old as that.
        """
        if window.empty:
            return ()
        tokens: list[str | None] = []
        for record in self._query(None, window.start + 1, window.end):
            if isinstance(record, ChildPartition):
                tokens.append(record.token)
            elif isinstance(record, DataRecord) and None not in tokens:
                tokens.append(None)
        name = self.change_stream.name
        return [PartitionSlice(window, stream=name, token=token) for token in tokens]

    def read(self, part: PartitionSlice) -> Iterator[StreamRows]:
        """As ``Capture.read``. Slices can be read side by side: of a merged child's parents only
        one continues with it."""
        return self._read(part, BATCH_ROWS)

    def read_window(self, window: Window) -> Iterator[StreamRows]:
        """The changes of a whole window: of each key in commit order."""
        return self._read(self._cover(window), BATCH_ROWS)

    def has_changes(self, window: Window) -> bool:
        """Whether a window holds any change; reads no further than the first."""
        return any(True for _ in self._read(self._cover(window), 1))

    def _cover(self, window: Window) -> PartitionSlice:
        """A slice that has everything of a window."""
        name = self.change_stream.name
        return PartitionSlice(window, stream=name, token=None, with_partitions=True)

    def _read(self, part: PartitionSlice, batch_rows: int) -> Iterator[StreamRows]:
        if part.window.empty:
            return
        buffer = ChangeBuffer(part.window, self.change_stream.keys)
        for token, record in self._walk(part, batch_rows > 1 and self._whole_records):
            if isinstance(record, RecordColumns):
                if buffer.rows:
                    yield buffer.take()
                yield from self._convert_columns(record, part.window, token)
                continue
            self._add(buffer, record, token)
            if buffer.rows >= batch_rows:
                yield buffer.take()
        if buffer.rows:
            yield buffer.take()

    @property
    def _whole_records(self) -> bool:
        """True where changes are delivered as they were sent: no column is left out or added."""
        return self.whole_rows is None and not self.change_filter.columns

    def _convert_columns(
        self, columns: RecordColumns, window: Window, token: str
    ) -> Iterator[StreamRows]:
        """The changes of many records."""
        keys = self.change_stream.keys
        rows = make_stream_rows(columns, window, keys, token, self.change_filter)
        if rows is not None:
            yield rows

    def _walk(
        self, part: PartitionSlice, by_column: bool
    ) -> Iterator[tuple[str, DataRecord | RecordColumns]]:
        """The records of a partition and its children, each with the token of its partition."""
        lineage = Lineage(part.window.end)
        place: ChildPartition | None = ChildPartition(part.token or "", (), part.window.start + 1)
        while place is not None:
            results = self._stream_results(place.token or None, place.start, part.window.end)
            for record in (decode_chunks if by_column else decode_records)(results):
                if isinstance(record, DataRecord | RecordColumns):
                    yield place.token, record
                elif isinstance(record, ChildPartition) and (
                    part.with_partitions or is_child_reader(place.token, record)
                ):
                    lineage.announce(record)
            place = lineage.take_next()

    def _add(self, buffer: ChangeBuffer, record: DataRecord, token: str) -> None:
        if self.change_filter.accepts(record):
            record = self.change_filter.narrow(record)
            buffer.add(self.whole_rows.complete(record) if self.whole_rows else record, token)

    def open(self, start: int) -> OpenQueries:
        """Queries that stay open, from a timestamp (outside) on."""
        return OpenQueries(self._query, start)

    def convert_records(
        self, records: Iterable[tuple[str, DataRecord]], window: Window
    ) -> StreamRows | None:
        """Records with their partitions as changes; None where none passes the filter."""
        buffer = ChangeBuffer(window, self.change_stream.keys)
        for token, record in records:
            self._add(buffer, record, token)
        return buffer.take() if buffer.rows else None

    def _query(self, token: str | None, start: int, end: int | None = None) -> Iterator[Record]:
        """The records of a partition, or the partitions themselves; both ends are inside. Without
        an end the query stays open."""
        return decode_records(self._stream_results(token, start, end))

    def _stream_results(
        self, token: str | None, start: int, end: int | None
    ) -> Iterator[ResultPart]:
        name = self.change_stream.name
        beat = HEARTBEAT_MILLISECONDS if end is not None else OPEN_HEARTBEAT_MILLISECONDS
        statement = statements.read_change_stream(name, start, end, token, beat)
        try:
            yield from self.queries.stream.query(statement, None, with_stats=False)
        except OutOfRange as error:
            raise StreamExpiredError(
                f"change stream {name} cannot be read from {format_timestamp(start)}"
                f" ({error.message}); what it no longer keeps is lost to this reader: give the"
                " reader a new position or checkpoint, with a backfill"
            ) from error
