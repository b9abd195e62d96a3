"""The poll capture: the rows that changed in a window, through the null-filtered index.

It sees the newest version of a row in the window, and no deletes: for those use a change stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from google.cloud.spanner_v1 import Type as TypePb
from google.cloud.spanner_v1 import TypeCode as TypeCodePb

from ddl.schema import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, statements
from watcher.errors import VersionExpiredError
from watcher.spanner.conditions import Condition
from watcher.spanner.queries import Queries
from watcher.spanner.results.columns import (
    Decode,
    Nanoseconds,
    arrow_schema,
    decoder,
    record_batches,
)
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.stream import WireValue
from watcher.spanner.timestamps import rounded_up, truncated
from watcher.tables.values import WatchedTable
from watcher.window import ShardGroup, Slice, Window

LOG = logging.getLogger("watcher.poll")
INT64 = TypePb(code=TypeCodePb.INT64)

Answer = Callable[[], int]
"""Waits for the number that a query answers with; the query is under way already."""


@dataclass(frozen=True)
class PollCapture:
    """Reads changed rows of one table, a group of shards a slice. Picklable.

    ``condition`` leaves rows out of what ``read`` gives; ``look`` and ``count`` know nothing of it.
    """

    queries: Queries
    table: WatchedTable
    groups: tuple[ShardGroup, ...]
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
    condition: Condition | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of every batch: the table's, then ``_commit_timestamp``, ``_shard_id``.

        TIMESTAMPs of the primary key are exact text, whatever becomes of the others.
        """
        return self._schema(self.table.primary_key)

    @property
    def typed_schema(self) -> pa.Schema:
        """As ``schema``, with TIMESTAMPs of the primary key as all the others are."""
        return self._schema(())

    def _schema(self, exact: tuple[str, ...]) -> pa.Schema:
        shard_type = self.table.column_type(self.table.shard_column or "")
        stamps = (
            (COMMIT_TIMESTAMP_COLUMN, Type(TypeCode.TIMESTAMP)),
            (SHARD_ID_COLUMN, shard_type),
        )
        columns = arrow_schema(self.table.columns, self.nanoseconds, exact)
        return pa.schema([*columns, *arrow_schema(stamps)])

    def look(self, start: int) -> tuple[Window, bool]:
        """The window from a position up to now, and whether it holds any row: one cheap call.

        Its end is a timestamp at which a strong read was served.
        """
        shards = statements.shard_list(self.table, None)
        params = statements.window_params(Window(start, start), shards)
        types = statements.window_types(shards)
        del params["end"], types["end"]
        stream = self.queries.stream
        end, found = stream.look(
            statements.any_after(self.table, listed=shards is not None), params, types
        )
        return Window(start, max(start, end)), found

    def plan(self, window: Window) -> Sequence[Slice]:
        """One slice a shard group, one where shards are not listed; none for an empty window."""
        if window.empty:
            return ()
        if not self.groups:
            return (Slice(self.table.name, window, None),)
        return tuple(Slice(self.table.name, window, group) for group in self.groups)

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the window's end. The query is under way at once.

        Past version garbage collection the window is read strongly, still bounded by its end: a row
        that changed since comes with a later window instead. Raises VersionExpiredError when the
        versions go while the slice is being read, because rows were handed out by then.
        """
        return self._or_strongly(part, self.read_exactly(part))

    def read_exactly(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """As ``read``; raises VersionExpiredError past version garbage collection."""
        return self._read_at(part, part.read_at or part.window.end)

    def _or_strongly(
        self, part: Slice, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        begun = False
        try:
            for batch in batches:
                begun = True
                yield batch
        except VersionExpiredError as error:
            if begun:
                raise
            LOG.warning("%s; reading strongly: rows that changed since come later", error)
            yield from self._read_at(part, None)

    def count(self, window: Window, group: ShardGroup | None = None) -> int:
        """How many rows a window has, in all or in a group of shards, by an index-only count."""
        return self.counting(window, group=group)()

    def counting(
        self, window: Window, limit: int | None = None, group: ShardGroup | None = None
    ) -> Answer:
        """As ``count``; at a limit it stops, so that it is cheap also far behind."""
        if window.empty:
            return lambda: 0
        query = statements.count_window if limit is None else statements.count_some
        found = self._scalars(query, window, limit, TypeCode.INT64, group)
        return lambda: next(found, None) or 0

    def end_of(self, window: Window, max_rows: int) -> int:
        """The commit timestamp of the ``max_rows``-th row of a window, or the window's end."""
        return self.ending(window, max_rows)()

    def ending(self, window: Window, max_rows: int) -> Answer:
        """As ``end_of``."""
        if window.empty:
            return lambda: window.end
        found = self._scalars(statements.earliest_above, window, max_rows, TypeCode.TIMESTAMP)
        return lambda: min(next(found, None) or window.end, window.end)

    def nth_of_shard(self, window: Window, shard: int, number: int) -> int | None:
        """The commit timestamp of the ``number``-th row of one shard in a window, as of its end;
        None when there are fewer. Past version garbage collection as of now, like ``read``."""
        params = statements.window_params(window, None) | {
            "shard": str(shard),
            "skip": str(number - 1),
        }
        types = statements.window_types(None) | {"shard": INT64, "skip": INT64}
        query, kind = statements.nth_of_shard(self.table), TypeCode.TIMESTAMP
        try:
            return next(self._values(query, params, types, window.end, kind), None)
        except VersionExpiredError:
            return next(self._values(query, params, types, None, kind), None)

    def _read_at(self, part: Slice, read_timestamp: int | None) -> Iterator[pa.RecordBatch]:
        shards = statements.shard_list(self.table, part.shards)
        query = statements.select_window(self.table, listed=shards is not None)
        params = statements.window_params(part.window, shards)
        types = statements.window_types(shards)
        if self.condition is not None:
            query = f"SELECT * FROM ({query}) WHERE {self.condition.sql}"  # noqa: S608 (our own)
            params |= self.condition.params
            types |= self.condition.types
        results = self.queries.stream.rows(query, params, types, read_timestamp)
        return self.batches(results)

    def batches(self, results: Iterator[ResultPart]) -> Iterator[pa.RecordBatch]:
        """The rows of a result that has the columns of ``statements.selected``, as ``schema`` has
        them."""
        columns, key = statements.selected(self.table), self.table.primary_key
        places = self.places([name for name, _ in columns])
        schema, types = self.selected_schema, [type_ for _, type_ in columns]
        for batch in record_batches(results, schema, types, self.nanoseconds, key):
            yield self.arranged(batch, places)

    @cached_property
    def selected_schema(self) -> pa.Schema:
        """The columns of ``statements.selected``."""
        key = self.table.primary_key
        return arrow_schema(statements.selected(self.table), self.nanoseconds, key)

    def decoders(self) -> list[Decode]:
        """How the columns of ``statements.selected`` are decoded."""
        key = self.table.primary_key
        return [
            decoder(type_, self.nanoseconds, name in key)
            for name, type_ in statements.selected(self.table)
        ]

    def arranged(self, batch: pa.RecordBatch, places: Sequence[int | None]) -> pa.RecordBatch:
        """A result's columns in the order of ``schema``."""
        arrays = [
            pa.nulls(batch.num_rows, field.type)
            if place is None
            else as_type(batch.column(place), field.type)
            for place, field in zip(places, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def places(self, names: list[str]) -> list[int | None]:
        """Where each column of ``schema`` stands in the result; two are sent once, shown twice.

        None for the commit timestamp and the shard of a table without one.
        """
        columns = [names.index(name) for name, _ in self.table.columns]
        stamps = statements.stamp_names(self.table)
        return columns + [names.index(name) if name else None for name in stamps]

    def _scalars(
        self,
        query: Callable[[WatchedTable, bool], str],
        window: Window,
        limit: int | None,
        kind: TypeCode,
        group: ShardGroup | None = None,
    ) -> Iterator[int | None]:
        """A query over a window with one column of numbers, or timestamps in microseconds."""
        shards = statements.shard_list(self.table, group)
        params = statements.window_params(window, shards)
        types = statements.window_types(shards)
        if limit is not None:
            params["limit"] = str(limit)
            types["limit"] = INT64
        text = query(self.table, shards is not None)
        return self._values(text, params, types, window.end, kind)

    def _values(
        self,
        query: str,
        params: dict[str, WireValue],
        types: dict[str, TypePb],
        read_timestamp: int | None,
        kind: TypeCode,
    ) -> Iterator[int | None]:
        return scalars(self.queries.stream.rows(query, params, types, read_timestamp), kind)


def as_type(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as ``schema`` has it; a commit timestamp that came as text, as a time."""
    if pa.types.is_timestamp(type_) and pa.types.is_string(column.type):
        return truncated(column)
    return column.cast(type_)


def scalars(results: Iterator[ResultPart], kind: TypeCode = TypeCode.INT64) -> Iterator[int | None]:
    """The rows of a result with one column: numbers, or timestamps in microseconds, rounded up: a
    window that ends there has the row that the timestamp is of."""
    exact = Nanoseconds.STRING
    schema = arrow_schema([("value", Type(kind))], exact)
    for batch in record_batches(results, schema, [Type(kind)], exact):
        column = batch.column(0)
        found = rounded_up(column) if kind is TypeCode.TIMESTAMP else column
        yield from found.to_pylist()
