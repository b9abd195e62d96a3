"""The poll capture: the rows that changed in a window, through the null-filtered index.

It sees the newest version of a row in the window, and no deletes: for those use a change stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows, statements
from watcher.captures.masked_values import mask_column
from watcher.captures.row_filters import find_kept
from watcher.captures.statements import STAMPS
from watcher.captures.strong_reads import LATER, read_or_strongly, stream_or_strongly
from watcher.model.window import ShardGroup, ShardSlice, Window
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.timestamp_columns import round_up_timestamps, truncate_timestamps
from watcher.spanner.results.wire import ResultPart, join_chunks
from watcher.spanner.sql import Statement
from watcher.tables.values import WatchedTable

Wait = Callable[[], int]
"""Waits for the number that a query answers with; the query is under way already."""
SAMPLE_ROWS = 200
"""Rows that are read to learn how long they are."""


@dataclass(frozen=True)
class PollCapture:
    """The ``Capture`` of the rows of one table that changed, a group of shards a slice.

    The table's filter leaves rows out of what ``read`` gives, or, for copies, all of their values
    but the key; ``look`` and ``count`` do not apply it. ``stamps`` are those of
    ``_commit_timestamp`` and ``_shard_id`` that batches have.
    """

    queries: QueryClient
    table: WatchedTable
    groups: tuple[ShardGroup, ...]
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
    stamps: tuple[str, ...] = STAMPS

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of every batch: the table's, then ``stamps``.

        TIMESTAMPs of the primary key are exact text, whatever ``nanoseconds`` says.
        """
        return self._build_schema(self.table.primary_key)

    @property
    def typed_schema(self) -> pa.Schema:
        """As ``schema``, with TIMESTAMPs of the primary key as all the others are."""
        return self._build_schema(())

    def _build_schema(self, exact: tuple[str, ...]) -> pa.Schema:
        types = {
            COMMIT_TIMESTAMP_COLUMN: Type(TypeCode.TIMESTAMP),
            SHARD_ID_COLUMN: self.table.column_type(self.table.shard_column or ""),
        }
        columns = build_schema(self.table.columns, self.nanoseconds, exact)
        return pa.schema([*columns, *build_schema((name, types[name]) for name in self.stamps)])

    def look(self, start: int) -> tuple[Window, bool]:
        """The window from a position up to now, and whether it holds any row: one cheap call.

        Its end is a timestamp at which a strong read was served.
        """
        statement = statements.find_any_after(self.table, start)
        end, numbers = self.queries.stream.query_numbers(statement, None)
        return Window(start, max(start, end)), bool(numbers)

    def plan(self, window: Window) -> Sequence[ShardSlice]:
        """As ``Capture.plan``: one slice a shard group, or one where shards are not listed."""
        if window.empty:
            return ()
        groups = self.groups or (None,)
        return tuple(ShardSlice(window, self.table.name, group) for group in groups)

    def read(self, part: ShardSlice) -> Iterator[TableRows]:
        """As ``Capture.read``. The query is under way at once.

        A strong read is still bounded by the window's end: a row that changed since comes with a
        later window instead.
        """
        end = part.read_at or part.window.end
        return stream_or_strongly(lambda at: self._read_at(part, at), end, LATER)

    def read_exactly(self, part: ShardSlice) -> Iterator[TableRows]:
        """As ``read``; raises VersionExpiredError past version garbage collection."""
        return self._read_at(part, part.read_at or part.window.end)

    def _read_at(self, part: ShardSlice, read_timestamp: int | None) -> Iterator[TableRows]:
        statement = statements.select_window(self.table, part.window, part.shards, self.stamps)
        results = self.queries.stream.query(statement, read_timestamp)
        return self.decode_rows(results, part.window)

    def count(self, window: Window, group: ShardGroup | None = None) -> int:
        """How many rows a window has, in all or in a group of shards, by an index-only count."""
        if window.empty:
            return 0
        return self._start_count(statements.count_window(self.table, window, group), window)()

    def start_count(self, window: Window, limit: int | None = None) -> Wait:
        """As ``count``; at a limit it stops, so that it is cheap also far behind."""
        if window.empty:
            return lambda: 0
        if limit is None:
            return self._start_count(statements.count_window(self.table, window), window)
        statement = statements.count_window_up_to(self.table, window, limit)
        return self._start_count(statement, window)

    def _start_count(self, statement: Statement, window: Window) -> Wait:
        values = self._query_values(statement, window.end, TypeCode.INT64)
        return lambda: next(values, None) or 0

    def find_cut(self, window: Window, max_rows: int) -> int:
        """The commit timestamp of the ``max_rows``-th row of a window, or the window's end."""
        return self.start_find_cut(window, max_rows)()

    def start_find_cut(self, window: Window, max_rows: int) -> Wait:
        """As ``find_cut``."""
        if window.empty:
            return lambda: window.end
        statement = statements.find_cut(self.table, window, max_rows)
        values = self._query_values(statement, window.end, TypeCode.TIMESTAMP)
        return lambda: min(next(values, None) or window.end, window.end)

    def find_nth_of_shards(self, window: Window, shards: Sequence[int], number: int) -> list[int]:
        """The commit timestamps of the ``number``-th rows of some shards in a window, as of its
        end, sorted; of a shard with fewer there is none. Past version garbage collection as of now,
        like ``read``."""
        statement = statements.find_nth_of_shards(self.table, window, shards, number)

        def find(at: int | None) -> list[int]:
            values = self._query_values(statement, at, TypeCode.TIMESTAMP)
            return sorted(value for value in values if value is not None)

        return read_or_strongly(find, window.end)

    def measure_row(self, window: Window) -> float:
        """How many bytes a row of a window has on average: of the first few that Spanner gives; 0
        where there is none."""
        statement = statements.sample_window(self.table, window, SAMPLE_ROWS, self.stamps)
        width = len(self.selected_columns)

        def measure(at: int | None) -> float:
            return average_row(self.queries.stream.query(statement, at), width)

        return read_or_strongly(measure, window.end)

    def _query_values(
        self, statement: Statement, read_timestamp: int | None, code: TypeCode
    ) -> Iterator[int | None]:
        return decode_values(self.queries.stream.query(statement, read_timestamp), code)

    def decode_rows(
        self, results: Iterator[ResultPart], window: Window, backfill: bool = False
    ) -> Iterator[TableRows]:
        """The rows of a result that has the ``selected_columns``."""
        types, key = [type_ for _, type_ in self.selected_columns], self.table.primary_key
        for batch in decode_batches(results, self.selected_schema, types, self.nanoseconds, key):
            rows, outside = self.arrange(batch), self._find_outside(batch)
            if outside is not None:
                rows = blank_rows(rows, outside, (*key, *self.stamps))
            yield TableRows(self.table, window, rows, backfill, outside)

    def _find_outside(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Which rows the filter leaves out, where that is told."""
        row_filter = self.table.row_filter
        if row_filter is None or not self.table.tells_outside:
            return None
        return pc.invert(find_kept(row_filter, batch))

    @cached_property
    def selected_columns(self) -> tuple[tuple[str, Type], ...]:
        """The columns of a result: those of the table, and of ``stamps`` that it does not show."""
        return statements.list_selected_columns(self.table, self.stamps)

    @cached_property
    def selected_schema(self) -> pa.Schema:
        """The ``selected_columns`` in Arrow's types."""
        return build_schema(self.selected_columns, self.nanoseconds, self.table.primary_key)

    def arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a result in the order of ``schema``, with the masks of the table."""
        arrays = [
            None if index is None else convert_column(batch.column(index), field.type)
            for index, field in zip(self._indexes, self.schema, strict=True)
        ]
        masks = {mask.column: mask for mask in self.table.masks}
        for number, (field, array) in enumerate(zip(self.schema, arrays, strict=True)):
            if (mask := masks.get(field.name)) is not None:
                arrays[number] = mask_column(mask, array, field.type, batch.num_rows)
            elif array is None:
                arrays[number] = pa.nulls(batch.num_rows, field.type)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @cached_property
    def _indexes(self) -> list[int | None]:
        """The place of each column of ``schema`` in the result; two are sent once, shown twice.

        None for the commit timestamp and the shard of a table without one, and for a column that a
        mask replaces without reading it.
        """
        names, unread = self.selected_schema.names, self.table.unread
        columns = [None if name in unread else names.index(name) for name, _ in self.table.columns]
        named = statements.name_stamps(self.table, self.stamps)
        stamps = [names.index(named[name]) if name in named else None for name in self.stamps]
        return columns + stamps


def blank_rows(batch: pa.RecordBatch, blank: pa.Array, kept: Collection[str]) -> pa.RecordBatch:
    """Rows of which some have NULL in all columns but those that are ``kept``."""
    arrays = [
        column if field.name in kept else pc.if_else(blank, pa.scalar(None, field.type), column)
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def convert_column(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as ``schema`` has it; a commit timestamp that came as text, as a time."""
    if pa.types.is_timestamp(type_) and pa.types.is_string(column.type):
        return truncate_timestamps(column)
    return column.cast(type_)


def decode_values(
    results: Iterator[ResultPart], code: TypeCode = TypeCode.INT64
) -> Iterator[int | None]:
    """The rows of a result with one column: numbers, or timestamps in microseconds, rounded up: a
    window that ends there has the row that the timestamp is of."""
    exact, type_ = Nanoseconds.STRING, Type(code)
    schema = build_schema([("value", type_)], exact)
    for batch in decode_batches(results, schema, [type_], exact):
        column = batch.column(0)
        values = round_up_timestamps(column) if code is TypeCode.TIMESTAMP else column
        yield from values.to_pylist()


def average_row(results: Iterable[ResultPart], width: int) -> float:
    """The bytes a row of a result, as Spanner sends them; 0 where there is none. An index says only
    how many rows there are, and not how long they are."""
    values = size = 0
    for completed, _ in join_chunks(results):
        values += len(completed)
        size += sum(map(len, completed))
    return size * width / values if values else 0.0
