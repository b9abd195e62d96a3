"""The records of a change stream as columns of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from watcher.envelopes.by_column.changes import CellColumns, merge_zeros
from watcher.envelopes.by_column.sent_cells import render_sent_cells
from watcher.envelopes.by_column.sent_members import render_members
from watcher.envelopes.by_column.sent_objects import SentObjects, read_objects
from watcher.envelopes.values import CellStyle
from watcher.model.change import Shape
from watcher.model.window import Window
from watcher.spanner.results.sent_values import UnexpectedValueError


@dataclass(frozen=True)
class SentChanges:
    """Changes of one shape in a change stream: ``iterate_stream_changes`` by column."""

    batch: pa.RecordBatch
    shape: Shape
    window: Window
    style: CellStyle

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.batch.num_rows)

    @property
    def ids(self) -> pa.Array:
        """Their ids."""
        return self.batch.column("id")

    @property
    def commits(self) -> pa.Array:
        """Microseconds since 1970."""
        return self.batch.column("commit_timestamp").cast(pa.int64())

    @property
    def shards(self) -> pa.Array:
        """Change streams know no shards."""
        return pa.nulls(self.rows, pa.int64())

    @cached_property
    def key(self) -> CellColumns:
        """The cells of the primary key."""
        texts, key = self.batch.column("key"), self.shape.primary_key
        columns = [each for each in self.shape.columns if each[0] in key]
        cells = render_members(texts, columns, self.style)
        if cells is None:
            cells = self._render(read_objects(texts), key)
        if len(cells) < len(key) or any(each.null_count for each in cells.values()):
            raise UnexpectedValueError("Spanner sent a change with a part of its key")
        return merge_zeros(self.shape, {name: cells[name] for name in key})

    @cached_property
    def new(self) -> CellColumns:
        """The cells afterwards, without the key; in the order of their names."""
        return self._render_row(self.batch.column("new_values"))

    @cached_property
    def old(self) -> CellColumns:
        """The cells before, without the key; in the order of their names."""
        return self._render_row(self.batch.column("old_values"))

    def get_origin(self, attribute: str) -> pa.Array:
        """A column of what only a change stream fills."""
        return self.batch.column(attribute)

    def _render_row(self, texts: pa.Array) -> CellColumns:
        """The cells of objects without the key, in the order of their names."""
        columns = sorted(
            pair for pair in self.shape.columns if pair[0] not in self.shape.primary_key
        )
        cells = render_members(texts, columns, self.style)
        if cells is not None:
            return cells
        objects = read_objects(texts)
        return self._render(objects, sorted(objects.names))

    def _render(self, objects: SentObjects, names: Sequence[str]) -> CellColumns:
        types = dict(self.shape.columns)
        if not set(names) <= types.keys():
            raise UnexpectedValueError("Spanner sent a change with columns without a type")
        return {name: render_sent_cells(objects, name, types[name], self.style) for name in names}
