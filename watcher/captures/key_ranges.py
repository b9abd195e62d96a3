"""The key-range capture: a table as it was at one timestamp, page by page in the order of its key.

A page is a range of keys, so that a backfill continues where it was after a crash, on another
machine, and without holding anything. A process reads a page itself, or plans its slices for others
by reading keys alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import ListValue, Value

from spanner_schema.model.column_types import Type
from watcher.captures import TableRows, statements
from watcher.captures.poll import SAMPLE_ROWS, PollCapture, average_row
from watcher.captures.progress import BackfillProgress
from watcher.captures.row_filters import find_kept
from watcher.captures.strong_reads import TWICE, read_or_strongly, stream_or_strongly
from watcher.model.window import BEGINNING, TableSlice, Window
from watcher.spanner.keys import Key, KeyRange
from watcher.spanner.results.columns import build_schema, choose_decoder, decode_batch
from watcher.spanner.results.sent_types import check_types
from watcher.spanner.results.wire import ResultPart, collect_rows
from watcher.tables.values import WatchedTable

PAGE_ROWS = 10_000
WHOLE_TABLE = KeyRange()
PageRows = tuple[TableRows, int, Key]
"""Rows in the order of the key, how many were read for them, of which the table's filter may keep
fewer, and the key of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRangeSlice(TableSlice):
    """The rows of a range of keys, as they were at the window's end."""

    keys: KeyRange


@dataclass(frozen=True, slots=True)
class KeyRangePage:
    """The slices of a page, how many rows they had, and the last key; None at the range's end."""

    slices: tuple[KeyRangeSlice, ...]
    rows: int
    last: Key | None


@dataclass(frozen=True)
class KeyRangeCapture:
    """The ``Capture`` of a whole table, or of a range of its keys, whenever the rows changed.

    ``poll`` is the capture that reads the table's changes. Past version garbage collection the
    table is read strongly: a row that changed since the timestamp comes as it is now, and again
    with its window.
    """

    poll: PollCapture
    keys: KeyRange = WHOLE_TABLE

    @property
    def table(self) -> WatchedTable:
        """The table."""
        return self.poll.table

    def plan(self, window: Window) -> Sequence[KeyRangeSlice]:
        """As ``Capture.plan``: one slice, also for an empty window. Reads nothing."""
        return (KeyRangeSlice(window, self.table.name, keys=self.keys),)

    def read(self, part: KeyRangeSlice) -> Iterator[TableRows]:
        """As ``Capture.read``."""

        def read(at: int | None) -> Iterator[TableRows]:
            results = self._read_range(self._columns, part.keys, 0, at)
            if self.table.row_filter is None:
                return self.poll.decode_rows(results, part.window, backfill=True)
            return (rows for rows, _, _ in self._decode_page(results, part.window))

        return stream_or_strongly(read, part.window.end, TWICE)

    def read_page(
        self, progress: BackfillProgress, rows: int = PAGE_ROWS
    ) -> tuple[list[TableRows], BackfillProgress | None]:
        """The next rows, and where the backfill is after them; None when it is done. ``rows`` are
        read at most: the table's filter may keep fewer."""
        keys, columns = self._continue_after(progress.after), self._columns
        window = Window(BEGINNING, progress.at)

        def read(at: int | None) -> list[PageRows]:
            return list(self._decode_page(self._read_range(columns, keys, rows, at), window))

        page = read_or_strongly(read, progress.at, TWICE)
        count = sum(read for _, read, _ in page)
        after = BackfillProgress(progress.at, page[-1][2]) if page and count == rows else None
        return [part for part, _, _ in page if part.batch.num_rows], after

    def read_after(self, at: int, after: Key | None, limit: int) -> Generator[PageRows, None, None]:
        """The rows above a key at a timestamp, never strongly, at most ``limit`` (0: all of them).
        Raises VersionExpiredError."""
        return self.read_within(at, self._continue_after(after), limit)

    def read_within(
        self, at: int, keys: KeyRange, limit: int = 0
    ) -> Generator[PageRows, None, None]:
        """As ``read_after``, the rows of a range of keys."""
        results = self._read_range(self._columns, keys, limit, at)
        return self._decode_page(results, Window(BEGINNING, at))

    def read_boosted(self, at: int, keys: KeyRange) -> Iterator[PageRows]:
        """As ``read_within``, by Data Boost, in the order of Spanner's partitions. Raises
        UnavailableError, AccessDeniedError and ConfigurationError, too."""
        stream, what = self.poll.queries.stream, (self.table.name, self._columns, keys)
        # assumes: partitions-cover-rows
        for partition in stream.partition_range(*what, at):
            results = stream.read_range_partition(*what, partition, data_boost=True)
            yield from self._decode_page(results, Window(BEGINNING, at))

    def read_bounds(self, at: int) -> tuple[Key, Key] | None:
        """The first and the last key at a timestamp, never strongly; None where there is no row.
        Reads two keys. Raises VersionExpiredError."""
        stream, width = self.poll.queries.stream, len(self.table.primary_key)
        queries = (statements.find_end(self.table, last) for last in (False, True))
        results = [stream.query(statement, at) for statement in queries]
        found = [[v for part in collect_rows(each, width) for v in part] for each in results]
        first, last = (read_key(values) if values else None for values in found)
        return None if first is None or last is None else (first, last)

    def iterate_ranges(
        self, at: int, after: Key | None, limit: int, rows_per_range: int
    ) -> Iterator[tuple[int, KeyRange]]:
        """The keys above one at a timestamp, at most ``limit`` (0: all of them), in ranges of so
        many rows, each with how many it has, by reading keys alone and never strongly. Raises
        VersionExpiredError."""
        keys, names = self._continue_after(after), self.table.primary_key
        results = self._read_range(names, keys, limit, at)
        for rows, end in cut_slices(results, len(names), rows_per_range):
            yield rows, replace(keys, end=end, end_inside=True)
            keys = replace(keys, start=end, start_inside=False)

    def plan_page(
        self, at: int, after: Key | None, upto: Key | None, limit: int, rows_per_slice: int
    ) -> KeyRangePage:
        """The slices of the rows above ``after`` and at most ``upto``, at most ``limit`` rows (0:
        all of them), by reading keys alone."""
        keys = self._continue_after(after)
        if upto is not None:
            keys = replace(keys, end=upto, end_inside=True)

        def read(timestamp: int | None) -> KeyRangePage:
            results = self._read_range(self.table.primary_key, keys, limit, timestamp)
            return self._cut_page(results, at, keys, limit, rows_per_slice)

        return read_or_strongly(read, at, TWICE)

    def measure_row(self, at: int, after: Key | None) -> float:
        """How many bytes a row has on average: of the first few above ``after``; 0 where there is
        none."""
        keys = self._continue_after(after)

        def measure(timestamp: int | None) -> float:
            results = self._read_range(self._columns, keys, SAMPLE_ROWS, timestamp)
            return average_row(results, len(self._columns))

        return read_or_strongly(measure, at)

    @property
    def _read_columns(self) -> tuple[tuple[str, Type], ...]:
        """The columns that are read: what is delivered, and what the table's filter looks at."""
        selected = self.poll.selected_columns
        names = {name for name, _ in selected}
        return selected + tuple(each for each in self.table.filtered if each[0] not in names)

    @property
    def _columns(self) -> list[str]:
        return [name for name, _ in self._read_columns]

    def _continue_after(self, after: Key | None) -> KeyRange:
        return self.keys if after is None else replace(self.keys, start=after, start_inside=False)

    def _read_range(
        self, columns: Sequence[str], keys: KeyRange, limit: int, read_timestamp: int | None
    ) -> Iterator[ResultPart]:
        name = self.table.name
        return self.poll.queries.stream.read_range(name, columns, keys, limit, read_timestamp)

    def _decode_page(
        self, results: Iterator[ResultPart], window: Window
    ) -> Generator[PageRows, None, None]:
        """Batches in the schema of the poll capture, each with the number of rows that were read
        for it, and the key of the last one."""
        key, nanoseconds = self.table.primary_key, self.poll.nanoseconds
        columns = self._read_columns
        types, names = [type_ for _, type_ in columns], self._columns
        schema = build_schema(columns, nanoseconds, key)
        decoders = [choose_decoder(type_, nanoseconds, name in key) for name, type_ in columns]
        width = len(decoders)
        indexes = [names.index(name) for name in key]
        for values in collect_rows(check_types(results, names, types), width):
            batch = self.poll.arrange(self._keep_rows(decode_batch(values, schema, decoders)))
            rows = TableRows(self.table, window, batch, backfill=True)
            last = read_key([values[index - width] for index in indexes])
            yield rows, len(values) // width, last

    def _keep_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that the table's filter keeps, in the columns that are delivered."""
        row_filter = self.table.row_filter
        if row_filter is None:
            return batch
        kept = batch.filter(find_kept(row_filter, batch))
        return kept.select([name for name, _ in self.poll.selected_columns])

    def _cut_page(
        self,
        results: Iterator[ResultPart],
        at: int,
        keys: KeyRange,
        limit: int,
        rows_per_slice: int,
    ) -> KeyRangePage:
        """The slices of a page, from its keys."""
        cut = list(cut_slices(results, len(self.table.primary_key), rows_per_slice))
        rows, ends = sum(count for count, _ in cut), [end for _, end in cut]
        last = ends[-1] if limit and rows >= limit else None
        ranges = split_range(keys, ends[:-1], last) if ends else ()
        window, name = Window(BEGINNING, at), self.table.name
        slices = tuple(KeyRangeSlice(window, name, keys=each) for each in ranges)
        return KeyRangePage(slices, rows, last)


def cut_slices(
    results: Iterator[ResultPart], width: int, rows_per_slice: int
) -> Iterator[tuple[int, Key]]:
    """How many keys each slice has, and its last one. The last slice may have fewer."""
    rows = 0
    last: Sequence[bytes] = ()
    for values in collect_rows(results, width):
        count = len(values) // width
        for row in range(rows_per_slice - rows - 1, count, rows_per_slice):
            yield rows_per_slice, read_key(values[row * width : (row + 1) * width])
        rows = (rows + count) % rows_per_slice
        last = values[-width:]
    if rows:
        yield rows, read_key(last)


def split_range(keys: KeyRange, ends: Sequence[Key], last: Key | None) -> Iterator[KeyRange]:
    """A range in parts that end with each of ``ends``, and with ``last`` unless it is None."""
    for end in ends:
        yield replace(keys, end=end, end_inside=True)
        keys = replace(keys, start=end, start_inside=False)
    yield keys if last is None else replace(keys, end=last, end_inside=True)


def read_key(values: Sequence[bytes]) -> Key:
    """A key as the API wrote it: nothing is lost by decoding it and writing it again."""
    return tuple(MessageToDict(ListValue(values=[Value.FromString(value) for value in values])))
