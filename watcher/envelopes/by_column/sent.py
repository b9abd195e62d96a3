"""The records of a change stream as columns of changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from watcher.change import Shape
from watcher.envelopes.by_column.cells import CellStyle, NotByColumnError
from watcher.envelopes.by_column.changes import CellColumns
from watcher.envelopes.by_column.sent_cells import (
    SentObject,
    find_order,
    list_names,
    parse_objects,
    render_sent_cells,
)
from watcher.window import Window


@dataclass(frozen=True)
class SentChanges:
    """Changes of one shape in a change stream: ``iterate_stream_changes`` by column."""

    origin: pa.RecordBatch
    shape: Shape
    window: Window
    style: CellStyle

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.origin.num_rows)

    @property
    def ids(self) -> pa.Array:
        """Their ids."""
        return self.origin.column("id")

    @property
    def operations(self) -> pa.Array:
        """What happened to each row."""
        return self.origin.column("operation")

    @property
    def commits(self) -> pa.Array:
        """Microseconds since 1970."""
        return self.origin.column("commit_timestamp").cast(pa.int64())

    @property
    def captured(self) -> pa.Array:
        """Which values each change carries."""
        return self.origin.column("captured")

    @cached_property
    def key(self) -> CellColumns:
        """The cells of the primary key."""
        objects = parse_objects(self.origin.column("key"))
        cells = self._render(objects, self.shape.primary_key)
        if any(texts.null_count for texts in cells.values()):
            raise NotByColumnError("a change has only a part of its key")
        return cells

    @cached_property
    def new(self) -> CellColumns:
        """The cells afterwards, without the key."""
        objects = parse_objects(self.origin.column("new_values"))
        return self._render(objects, sorted(list_names(objects)))

    @cached_property
    def old(self) -> CellColumns:
        """The cells before, without the key."""
        objects = parse_objects(self.origin.column("old_values"))
        return self._render(objects, find_order(objects))

    @cached_property
    def knows_old(self) -> pa.Array:
        """Which changes have old values, be they empty."""
        return self.origin.column("old_values").is_valid()

    def _render(self, objects: list[SentObject], names: tuple[str, ...] | list[str]) -> CellColumns:
        types = dict(self.shape.columns)
        if not set(names) <= types.keys():
            raise NotByColumnError("a change has columns that its record does not describe")
        return {name: render_sent_cells(objects, name, types[name], self.style) for name in names}
