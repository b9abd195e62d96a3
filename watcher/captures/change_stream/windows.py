"""Reads a window of a change stream: a slice a partition, its children with it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from google.api_core.exceptions import InvalidArgument, OutOfRange

from watcher.captures import StreamRows, statements
from watcher.captures.change_stream.lineage import Lineage, is_child_reader
from watcher.captures.change_stream.listening import Listening
from watcher.captures.change_stream.messages import decode_messages
from watcher.captures.change_stream.moving_keys import read_moving_keys
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.record_columns import (
    Arrival,
    RecordColumns,
    decode_arrivals,
    decode_chunks,
    decode_one_by_one,
    make_stream_rows,
    read_arrivals,
)
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    MovingRecord,
    Record,
)
from watcher.captures.change_stream.records import decode_records
from watcher.captures.change_stream.repeats import Records
from watcher.captures.change_stream.rows import BATCH_ROWS, ChangeBuffer, order_key
from watcher.captures.change_stream.sizes import RecordSize, decode_sizes
from watcher.captures.change_stream.spans import divide_window
from watcher.captures.change_stream.started_queries import (
    PartitionQuery,
    Reach,
    Sized,
    StartedQueries,
)
from watcher.captures.change_stream.watched import ChangeFilter, WatchedStream
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.model.errors import StreamExpiredError, StreamNotFoundError
from watcher.model.window import Slice, Window
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.timestamps import format_timestamp

HEARTBEAT_MILLISECONDS = 10_000
OPEN_HEARTBEAT_MILLISECONDS = 1_000
"""Spanner: the least. A quiet partition's watermark is so old at most."""

BATCH_CHARACTERS = 16 * 1024 * 1024
"""A batch of wide rows ends with the record that makes it longer."""

EVERYTHING = ChangeFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSlice(Slice):
    """A part of a window of a change stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSlice(StreamSlice):
    """A partition of a stream that is active when the window begins, and those of its children that
    are its to read. Without a token: the records that the query for the partitions itself returned;
    with ``with_partitions``, all that the window holds. ``function`` is without ``READ_``;
    ``began`` is set for a partition that begins inside the window."""

    function: str
    token: str | None
    began: int = 0
    with_partitions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingSlice(StreamSlice):
    """All that functions tell of a window, where keys move between partitions."""

    functions: tuple[str, ...]


@dataclass(frozen=True)
class ChangeStreamCapture:
    """The ``Capture`` of the changes of a stream. Picklable; keeps nothing between windows.

    ``whole_rows`` fetches the values that the stream's capture type leaves out.
    """

    queries: QueryClient
    change_stream: WatchedStream
    change_filter: ChangeFilter = EVERYTHING
    whole_rows: WholeRows | None = None

    def plan(self, window: Window) -> Sequence[StreamSlice]:
        """As ``Capture.plan``: the partitions that are active when the window begins, by one call
        of each function. Where keys move between partitions, the window in shorter ones, each
        function by itself; the call checks its start.

        Raises StreamExpiredError when the stream no longer keeps records as old as that.
        """
        if window.empty:
            return ()
        if self.change_stream.keys_move:
            for name in self.change_stream.functions:
                any(True for _ in self._execute(name, None, window.start, window.end))
            return [
                MovingSlice(span, functions=(name,))
                for span in divide_window(window)
                for name in self.change_stream.functions
            ]
        return [
            part
            for name in self.change_stream.functions
            for part in self._plan_partitions(name, window)
        ]

    def _plan_partitions(self, name: str, window: Window) -> Sequence[PartitionSlice]:
        """The partitions of a function."""
        # assumes: stream-names-partitions
        begins: dict[str | None, int] = {}
        for record in self._query(name, None, window.start + 1, window.end):
            if isinstance(record, ChildPartition):
                begins[record.token] = record.start
            elif isinstance(record, DataRecord):
                begins[None] = 0
        return [
            PartitionSlice(window, function=name, token=token, began=began)
            for token, began in begins.items()
        ]

    def read(self, part: StreamSlice) -> Iterator[StreamRows]:
        """As ``Capture.read``. Slices can be read side by side: of a merged child's parents only
        one continues with it."""
        return self._read(part, BATCH_ROWS)

    def read_window(self, window: Window) -> Iterator[StreamRows]:
        """The changes of a whole window: of each key in commit order."""
        for part in self._cover(window):
            yield from self._read(part, BATCH_ROWS)

    def read_few(
        self, window: Window, rows_max: int, bytes_max: int
    ) -> tuple[StreamRows, ...] | None:
        """The changes of a whole window, of each key in commit order; None where they are more, or
        longer."""
        few: list[StreamRows] = []
        rows = size = 0
        for part in self._cover(window):
            for changes in self._read(part, rows_max + 1):
                few.append(changes)
                rows += changes.batch.num_rows
                size += changes.batch.nbytes
                if rows > rows_max or size > bytes_max:
                    return None
        return tuple(few)

    def has_changes(self, window: Window) -> bool:
        """Whether a window holds any change; reads no further than the first."""
        return any(True for part in self._cover(window) for _ in self._read(part, 1))

    def _cover(self, window: Window) -> Sequence[StreamSlice]:
        """Slices that have everything of a window. Where keys move, also between functions, one has
        all of it: only so is each key in order."""
        functions = self.change_stream.functions
        if self.change_stream.keys_move:
            return [MovingSlice(window, functions=functions)]
        return [
            PartitionSlice(window, function=name, token=None, with_partitions=True)
            for name in functions
        ]

    def _read(self, part: StreamSlice, batch_rows: int) -> Iterator[StreamRows]:
        if part.window.empty:
            return
        buffer, size = ChangeBuffer(part.window), 0
        by_column = batch_rows > 1 and self._whole_records
        for token, record in self._read_records(part, by_column):
            if isinstance(record, RecordColumns):
                if buffer.rows:
                    yield buffer.take()
                yield from self._convert_columns(record, part.window, token)
                continue
            self._add(buffer, record, token)
            size += record.measure_values()
            if buffer.rows >= batch_rows or (size >= BATCH_CHARACTERS and buffer.rows):
                yield buffer.take()
                size = 0
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

    def _read_records(
        self, part: StreamSlice, by_column: bool
    ) -> Iterator[tuple[str, DataRecord | RecordColumns]]:
        """The records of a slice, each with the token of its partition."""
        if isinstance(part, MovingSlice):
            return self._walk_moving(part)
        assert isinstance(part, PartitionSlice)
        query = self._query_columns if by_column else self._query
        return self._walk(part, partial(query, part.function), part.window)

    def read_sizes(self, window: Window, reach: Reach) -> Iterator[RecordSize]:
        """How large the records of a window are that pass the filter, in no certain order. What
        comes after ``reach`` is not read; it may come closer meanwhile."""
        if window.empty:
            return
        for part in self._cover(window):
            if isinstance(part, MovingSlice):
                yield from self._measure_moving(part, reach)
            elif isinstance(part, PartitionSlice):
                yield from self._measure(part, reach)

    def _measure(self, part: PartitionSlice, reach: Reach) -> Iterator[RecordSize]:
        query = partial(self._query_sizes, part.function)
        for _, size in self._walk(part, query, reach):
            yield size

    def _measure_moving(self, part: MovingSlice, reach: Reach) -> Iterator[RecordSize]:
        """The same of a stream whose partitions live on while their keys move."""
        for span in divide_window(part.window):
            if span.start >= reach.end:
                return
            for _, record in self._walk_moving(replace(part, window=span)):
                if record.commit_timestamp <= reach.end and self.change_filter.accepts(record):
                    at, size = record.commit_timestamp, record.measure_values()
                    yield RecordSize(at, len(record.mods), size)

    def _walk(
        self, part: PartitionSlice, query: PartitionQuery[Sized], reach: Reach
    ) -> Iterator[tuple[str, Sized]]:
        """The records of a partition and its children, each with the token of its partition."""
        # assumes: stream-start-inside
        # assumes: stream-end-inside
        # assumes: stream-commit-order
        # assumes: stream-children-last
        # assumes: stream-key-in-one-partition
        lineage = Lineage(part.window.end)
        ahead = StartedQueries(query, reach)
        start = max(part.window.start + 1, part.began)
        place: ChildPartition | None = ChildPartition(part.token or "", (), start)
        while place is not None:
            if place.start <= reach.end:
                yield from self._walk_one(part, place, ahead, reach, lineage)
            place = lineage.take_next()

    def _walk_one(
        self,
        part: PartitionSlice,
        place: ChildPartition,
        ahead: StartedQueries[Sized],
        reach: Reach,
        lineage: Lineage,
    ) -> Iterator[tuple[str, Sized]]:
        """The records of one partition; its children are announced, and asked for."""
        for record in ahead.take(place):
            if isinstance(record, ChildPartition):
                announced = part.with_partitions or is_child_reader(place.token, record)
                if announced and lineage.announce(record):
                    ahead.start(record)
            elif not isinstance(record, Heartbeat):
                if isinstance(record, RecordSize) and record.commit_timestamp > reach.end:
                    return
                yield place.token, record

    def _walk_moving(self, part: MovingSlice) -> Iterator[tuple[str, DataRecord]]:
        """The same of a stream whose partitions live on while their keys move."""

        def query(name: str, token: str | None, start: int, end: int) -> Generator[MovingRecord]:
            yield from decode_messages(self._execute(name, token, start, end))

        return read_moving_keys(query, part.functions, part.window.start, part.window.end)

    def _add(self, buffer: ChangeBuffer, record: DataRecord, token: str) -> None:
        if not self.change_filter.accepts(record):
            return
        record = self.change_filter.narrow(record)
        if len(record.shape.primary_key) > 1:
            record = replace(record, shape=order_key(record.shape, self.change_stream.keys))
        if self.whole_rows is not None:
            record = self.whole_rows.complete(record, buffer.window.end)
        buffer.add(self.change_filter.mask(record), token)

    def open(self, start: int) -> OpenQueries:
        """Queries that stay open, from a timestamp (outside) on."""
        (name,) = self.change_stream.functions

        def read(token: str | None, start: int) -> Iterator[Arrival]:
            return read_arrivals(self._execute(name, token, start, None))

        decode = decode_arrivals if self._whole_records else decode_one_by_one
        return OpenQueries(read, decode, start)

    def listen(self, start: int, end: int, wake: Callable[[], object]) -> Listening | None:
        """Hears of changes after ``start``, up to ``end`` in the future; None where keys move
        between partitions, and of placements. What fails is not tried again: a window finds
        out."""
        # assumes: stream-open-to-the-end
        if self.change_stream.keys_move or len(self.change_stream.functions) != 1:
            return None
        (name,) = self.change_stream.functions
        queries = QueryClient(self.queries.address, self.queries.options, outage_seconds=0.0)
        silent = replace(self, queries=queries)

        def query(token: str | None, begin: int) -> Iterator[Record]:
            return silent._query(name, token, begin, end)

        return Listening(query, self.change_filter.accepts, start, wake)

    def convert_records(
        self, records: Iterable[tuple[str, Records]], window: Window
    ) -> Iterator[StreamRows]:
        """Records with their partitions as changes, in their order."""
        buffer = ChangeBuffer(window)
        for token, record in records:
            if isinstance(record, DataRecord):
                self._add(buffer, record, token)
                continue
            if buffer.rows:
                yield buffer.take()
            yield from self._convert_columns(record, window, token)
        if buffer.rows:
            yield buffer.take()

    def _query(
        self, name: str, token: str | None, start: int, end: int | None = None
    ) -> Iterator[Record]:
        """The records of a partition, or the partitions themselves; both ends are inside. Without
        an end the query stays open."""
        return decode_records(self._execute(name, token, start, end))

    def _query_columns(
        self, name: str, token: str | None, start: int, end: int
    ) -> Iterator[Record | RecordColumns]:
        """As ``_query``, with many records at once."""
        return decode_chunks(self._execute(name, token, start, end))

    def _query_sizes(
        self, name: str, token: str | None, start: int, end: int
    ) -> Iterator[RecordSize | ChildPartition]:
        """As ``_query``, of how large the records are."""
        results = self._execute(name, token, start, end)
        return decode_sizes(results, self.change_filter.accepts_kind)

    def _execute(
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
