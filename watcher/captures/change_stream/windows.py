"""Reads a window of a change stream: a slice a partition, its children with it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import cast

from watcher.captures import StreamRows
from watcher.captures.change_stream.listening import Listening
from watcher.captures.change_stream.messages import decode_messages
from watcher.captures.change_stream.moving_keys import read_moving_keys
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.partition_walk import (
    Reach,
    walk_partitions,
)
from watcher.captures.change_stream.record_columns import (
    Arrival,
    RecordColumns,
    decode_arrivals,
    decode_one_by_one,
    make_stream_rows,
    read_arrivals,
)
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    MovingRecord,
    Record,
)
from watcher.captures.change_stream.repeats import Records
from watcher.captures.change_stream.rows import BATCH_ROWS, ChangeBuffer, order_key
from watcher.captures.change_stream.sizes import RecordSize
from watcher.captures.change_stream.stream_calls import StreamCalls
from watcher.captures.change_stream.stream_slices import (
    MovingSlice,
    PartitionSlice,
    StreamSlice,
)
from watcher.captures.change_stream.watched import ChangeFilter, WatchedStream
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.model.window import Window
from watcher.spanner.queries import QueryClient

BATCH_CHARACTERS = 16 * 1024 * 1024
"""A batch of wide rows ends with the record that makes it longer."""
SPAN_MICROS_MIN = 10_000_000
"""A shorter window is read whole: each part costs a call, and one for each of its partitions."""
SPANS_MAX = 8

EVERYTHING = ChangeFilter()


@dataclass(frozen=True)
class ChangeStreamCapture:
    """The ``Capture`` of the changes of a stream. Picklable; keeps nothing between windows.

    ``whole_rows`` fetches the values that the stream's capture type leaves out.
    """

    queries: QueryClient
    change_stream: WatchedStream
    change_filter: ChangeFilter = EVERYTHING
    whole_rows: WholeRows | None = None

    @property
    def calls(self) -> StreamCalls:
        """Of the stream's functions."""
        return StreamCalls(self.queries, self.change_stream)

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
                any(True for _ in self.calls.execute(name, None, window.start, window.end))
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
        for record in self.calls.query(name, None, window.start + 1, window.end):
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
        if self.whole_rows is not None:
            return self._read_few_records(window, rows_max, bytes_max)
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

    def _read_few_records(
        self, window: Window, rows_max: int, bytes_max: int
    ) -> tuple[StreamRows, ...] | None:
        """The same of rows that are completed, which costs more than to read what is sent: only if
        they are few."""
        few: list[tuple[str, Records]] = []
        rows = size = 0
        for part in self._cover(window):
            for token, record in self._choose(self._read_records(part, by_column=False)):
                assert isinstance(record, DataRecord), "records are read one by one"
                few.append((token, record))
                rows += len(record.mods)
                size += record.measure_values()
                if rows > rows_max or size > bytes_max:
                    return None
        return tuple(self.convert_records(few, window))

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
        for token, record in self._prepare(self._read_records(part, by_column), part.window):
            if isinstance(record, RecordColumns):
                if buffer.rows:
                    yield buffer.take()
                yield from self._convert_columns(record, part.window, token)
                continue
            for finished in self.change_filter.finish(record):
                buffer.add(finished, token)
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
        query = self.calls.query_columns if by_column else self.calls.query
        return walk_partitions(part, partial(query, part.function), part.window)

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
        query = partial(self.calls.query_sizes, self.change_filter.accepts_kind, part.function)
        for _, size in walk_partitions(part, query, reach):
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

    def _walk_moving(self, part: MovingSlice) -> Iterator[tuple[str, DataRecord]]:
        """The same of a stream whose partitions live on while their keys move."""

        def query(name: str, token: str | None, start: int, end: int) -> Generator[MovingRecord]:
            yield from decode_messages(self.calls.execute(name, token, start, end))

        return read_moving_keys(query, part.functions, part.window.start, part.window.end)

    def _prepare(
        self, records: Iterable[tuple[str, Records]], window: Window
    ) -> Iterator[tuple[str, Records]]:
        """Records as they are delivered, but for filters and masks: those that are watched,
        narrowed and completed."""
        if self.whole_rows is None:
            return self._choose(records)
        # What is completed is read record by record: ``_whole_records``.
        chosen = cast("Iterator[tuple[str, DataRecord]]", self._choose(records))
        return self.whole_rows.complete_all(chosen, window.end)

    def _choose(self, records: Iterable[tuple[str, Records]]) -> Iterator[tuple[str, Records]]:
        return choose_records(records, self.change_filter, self.change_stream.keys)

    def open(self, start: int) -> OpenQueries:
        """Queries that stay open, from a timestamp (outside) on."""
        (name,) = self.change_stream.functions

        def read(token: str | None, start: int) -> Iterator[Arrival]:
            return read_arrivals(self.calls.execute(name, token, start, None))

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
        silent = StreamCalls(queries, self.change_stream)

        def query(token: str | None, begin: int) -> Iterator[Record]:
            return silent.query(name, token, begin, end)

        return Listening(query, self.change_filter.accepts, start, wake)

    def convert_records(
        self, records: Iterable[tuple[str, Records]], window: Window
    ) -> Iterator[StreamRows]:
        """Records with their partitions as changes, in their order."""
        buffer = ChangeBuffer(window)
        for token, record in self._prepare(records, window):
            if isinstance(record, DataRecord):
                for finished in self.change_filter.finish(record):
                    buffer.add(finished, token)
                continue
            if buffer.rows:
                yield buffer.take()
            yield from self._convert_columns(record, window, token)
        if buffer.rows:
            yield buffer.take()


def choose_records(
    records: Iterable[tuple[str, Records]],
    change_filter: ChangeFilter,
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[str, Records]]:
    """The records that pass a filter, narrowed to what it takes of them; ``keys`` are the columns
    of primary keys in their order."""
    for token, record in records:
        if isinstance(record, RecordColumns):
            yield token, record
        elif change_filter.accepts(record):
            taken = change_filter.narrow(record)
            if len(taken.shape.primary_key) > 1:
                taken = replace(taken, shape=order_key(taken.shape, keys))
            yield token, taken


def divide_window(window: Window) -> Sequence[Window]:
    """Windows of the same length, one after the other, that hold what the window holds, for readers
    side by side: what lies in each follows from nothing but its ends, whichever partitions begin,
    end, or exchange keys meanwhile."""
    length = window.end - window.start
    count = max(1, min(SPANS_MAX, length // SPAN_MICROS_MIN))
    ends = [window.start + length * number // count for number in range(count + 1)]
    return [Window(start, end) for start, end in pairwise(ends)]
