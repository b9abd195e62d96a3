"""The records of a change stream as columns of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ddl.model.schema import Type
from watcher.envelopes.by_column.changes import CellColumns, merge_zeros
from watcher.envelopes.by_column.sent_cells import render_member
from watcher.envelopes.by_column.sent_objects import SentObjects
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
        key = self.shape.primary_key
        cells = self._render("key", [each for each in self.shape.columns if each[0] in key])
        if len(cells) < len(key) or any(each.null_count for each in cells.values()):
            raise UnexpectedValueError("Spanner sent a change with a part of its key")
        return merge_zeros(self.shape, {name: cells[name] for name in key})

    @cached_property
    def new(self) -> CellColumns:
        """The cells afterwards, without the key; in the order of their names."""
        return self._render("new_values", self._other_columns)

    @cached_property
    def old(self) -> CellColumns:
        """The cells before, without the key; in the order of their names."""
        return self._render("old_values", self._other_columns)

    def get_origin(self, attribute: str) -> pa.Array:
        """A column of what only a change stream fills."""
        return self.batch.column(attribute)

    @property
    def _other_columns(self) -> Sequence[tuple[str, Type]]:
        return sorted(each for each in self.shape.columns if each[0] not in self.shape.primary_key)

    def _render(self, name: str, columns: Sequence[tuple[str, Type]]) -> CellColumns:
        """The cells of objects in the order of columns; of those that some object has."""
        objects = SentObjects(self.batch.column(name), columns)
        if not objects.names <= dict(columns).keys():
            raise UnexpectedValueError("Spanner sent a change with columns without a type")
        cells = {n: render_member(objects, n, type_, self.style) for n, type_ in columns}
        return {n: texts for n, texts in cells.items() if texts is not None}
