"""The poll capture: the rows that changed in a window, through the null-filtered index.

It sees the newest version of a row in the window, and no deletes: for those use a change stream.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
from google.cloud.spanner_v1 import Type as TypePb
from google.cloud.spanner_v1 import TypeCode as TypeCodePb

from ddl.schema import Type, TypeCode
from watcher import sql
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN
from watcher.columns import arrow_schema, record_batches
from watcher.database import DatabaseAddress, connect
from watcher.errors import VersionExpiredError
from watcher.stream import QueryStream
from watcher.table import WatchedTable
from watcher.window import ShardGroup, Slice, Window

LOG = logging.getLogger("watcher.poll")
INT64 = TypePb(code=TypeCodePb.INT64)


@lru_cache(maxsize=16)
def query_stream(address: DatabaseAddress) -> QueryStream:
    """One client a process and database: tasks of a Spark executor share its channel."""
    return QueryStream(connect(address))


@dataclass(frozen=True)
class PollCapture:
    """Reads changed rows of one table, a group of shards a slice. Picklable."""

    address: DatabaseAddress
    table: WatchedTable
    groups: tuple[ShardGroup, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of every batch: the table's, then ``_commit_timestamp``, ``_shard_id``."""
        return arrow_schema(
            [
                *self.table.columns,
                (COMMIT_TIMESTAMP_COLUMN, Type(TypeCode.TIMESTAMP)),
                (SHARD_ID_COLUMN, Type(TypeCode.INT64)),
            ]
        )

    def look(self, start: int) -> tuple[Window, bool]:
        """The window from a position up to now, and whether it holds any row: one cheap call.

        Its end is a timestamp at which a strong read was served.
        """
        params = sql.window_params(Window(start, start), self.table.shard_values)
        del params["end"]
        types = {name: sql.WINDOW_TYPES[name] for name in params}
        stream = query_stream(self.address)
        end, found = stream.look(sql.any_after(self.table), params, types)
        return Window(start, max(start, end)), found

    def plan(self, window: Window) -> Sequence[Slice]:
        """One slice a shard group; none for an empty window. Reads nothing."""
        if window.empty:
            return ()
        return tuple(Slice(self.table.name, window, group) for group in self.groups)

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the window's end.

        Past version garbage collection the window is read strongly, still bounded by its end: a row
        that changed since comes with a later window instead. Raises VersionExpiredError when the
        versions go while the slice is being read, because rows were handed out by then.
        """
        begun = False
        try:
            for batch in self._read_at(part, part.window.end):
                begun = True
                yield batch
        except VersionExpiredError as error:
            if begun:
                raise
            LOG.warning("%s; reading strongly: rows that changed since come later", error)
            yield from self._read_at(part, None)

    def count(self, window: Window) -> int:
        """How many rows a window has, by an index-only count."""
        if window.empty:
            return 0
        return int(self._scalar(sql.count_window(self.table), window) or 0)

    def cut(self, window: Window, max_rows: int) -> Window:
        """The window, or its beginning with about ``max_rows`` rows: rows of one commit timestamp
        are never parted, so that every cut is exact."""
        if self.count(window) <= max_rows:
            return window
        text = self._scalar(sql.earliest_above(self.table), window, limit=max_rows)
        end = int(text) if text is not None else window.end
        return Window(window.start, min(end, window.end))

    def _read_at(self, part: Slice, read_timestamp: int | None) -> Iterator[pa.RecordBatch]:
        shards = part.shards.values if part.shards else self.table.shard_values
        results = query_stream(self.address).rows(
            sql.select_window(self.table),
            sql.window_params(part.window, shards),
            sql.WINDOW_TYPES,
            read_timestamp,
        )
        columns = sql.selected(self.table)
        places = self._places([name for name, _ in columns])
        types = [type_ for _, type_ in columns]
        for batch in record_batches(results, arrow_schema(columns), types):
            arrays = [batch.column(place) for place in places]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _places(self, names: list[str]) -> list[int]:
        """Where each column of ``schema`` stands in the result; two are sent once, shown twice."""
        wanted = [name for name, _ in self.table.columns]
        wanted += [self.table.timestamp_column, self.table.shard_column]
        return [names.index(name) for name in wanted]

    def _scalar(self, query: str, window: Window, limit: int | None = None) -> int | None:
        """A query with one number or timestamp (in microseconds) as its result."""
        params = sql.window_params(window, self.table.shard_values)
        types = dict(sql.WINDOW_TYPES)
        if limit is not None:
            params["limit"] = str(limit)
            types["limit"] = INT64
        kind = Type(TypeCode.TIMESTAMP if limit is not None else TypeCode.INT64)
        results = query_stream(self.address).rows(query, params, types, window.end)
        schema = arrow_schema([("value", kind)])
        for batch in record_batches(results, schema, [kind]):
            value = batch.column(0).cast(pa.int64())[0].as_py()
            return None if value is None else int(value)
        return None
