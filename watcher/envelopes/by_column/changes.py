"""What envelopes need of the changes of one table, by column: polled, or of a change stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import (
    COMMIT_TIMESTAMP_COLUMN,
    SHARD_ID_COLUMN,
    Changed,
    StreamRows,
    TableRows,
)
from watcher.captures.changes import choose_operation, compute_change_ids
from watcher.change import Operation, Shape, ValueCapture
from watcher.envelopes.by_column.cells import CellStyle, NotByColumnError, render_cells
from watcher.envelopes.by_column.sent_cells import (
    SentObject,
    find_order,
    list_names,
    parse_objects,
    render_sent_cells,
)
from watcher.window import Window

CellColumns = dict[str, pa.Array]
"""JSON texts of cells, by the names of their columns; no text where a change lacks the cell."""


class ChangeColumns(Protocol):
    """The columns of ``watcher.change.Change``; cells are JSON texts.

    ``key`` is in the order of the primary key, ``old`` in that of the capture. ``knows_old`` says
    which changes have old values, be they empty. ``origin`` has the columns that only a change
    stream fills.
    """

    @property
    def rows(self) -> int: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def window(self) -> Window: ...
    @property
    def ids(self) -> pa.Array: ...
    @property
    def operations(self) -> pa.Array: ...
    @property
    def commits(self) -> pa.Array: ...
    @property
    def captured(self) -> pa.Array: ...
    @property
    def key(self) -> CellColumns: ...
    @property
    def new(self) -> CellColumns: ...
    @property
    def old(self) -> CellColumns: ...
    @property
    def knows_old(self) -> pa.Array: ...
    @property
    def origin(self) -> pa.RecordBatch | None: ...


@dataclass(frozen=True)
class PolledChanges:
    """The rows of one table as changes: ``captures.changes.iterate_row_changes`` by column."""

    table_rows: TableRows
    style: CellStyle
    origin: pa.RecordBatch | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.table_rows.batch.num_rows

    @property
    def window(self) -> Window:
        """The window that they were read in."""
        return self.table_rows.window

    @cached_property
    def shape(self) -> Shape:
        """The columns of the table."""
        table = self.table_rows.table
        return Shape(table.name, table.columns, table.primary_key)

    @cached_property
    def ids(self) -> pa.Array:
        """Their ids."""
        return pa.array(compute_change_ids(self.table_rows), pa.string())

    @cached_property
    def operations(self) -> pa.Array:
        """What happened to each row."""
        rows = self.table_rows
        other = pa.repeat(str(choose_operation(rows, False)), self.rows)
        if rows.table.deleted is None:
            return other
        deleted = find_deleted(rows.batch.column(rows.table.deleted))
        return pc.if_else(deleted, str(Operation.DELETE), other)

    @cached_property
    def commits(self) -> pa.Array:
        """Microseconds since 1970; of a row that was never stamped, its snapshot's."""
        commits = self.table_rows.batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
        return pc.fill_null(commits, self.window.end)

    @property
    def captured(self) -> pa.Array:
        """Polling has whole rows."""
        return pa.repeat(str(ValueCapture.NEW_ROW), self.rows)

    @cached_property
    def key(self) -> CellColumns:
        """The cells of the primary key."""
        return self._render(self.shape.primary_key)

    @cached_property
    def new(self) -> CellColumns:
        """The cells of all other columns. Raises NotByColumnError for one that the table lacks."""
        names = [name for name, _ in self.shape.columns]
        stamps = {COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN}
        others = [name for name in self.table_rows.batch.schema.names if name not in stamps]
        if len(others) != len(set(others)) or not set(others) <= set(names):
            raise NotByColumnError("a batch has columns that its table does not have")
        return self._render([name for name in others if name not in self.shape.primary_key])

    @property
    def old(self) -> CellColumns:
        """Polling knows no old values."""
        return {}

    @property
    def knows_old(self) -> pa.Array:
        """Polling knows no old values."""
        return pa.repeat(False, self.rows)

    def _render(self, names: tuple[str, ...] | list[str]) -> CellColumns:
        types, batch = dict(self.shape.columns), self.table_rows.batch
        if not set(names) <= types.keys():
            raise NotByColumnError("a column of the key is not read")
        return {name: render_cells(batch.column(name), types[name], self.style) for name in names}


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
        return self.origin.num_rows

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


def find_deleted(column: pa.Array) -> pa.Array:
    """Which rows a soft-delete column, BOOL or TIMESTAMP, marks."""
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False)
    if pa.types.is_timestamp(column.type):
        return column.is_valid()
    if pa.types.is_string(column.type):
        return pc.fill_null(pc.not_equal(column, ""), False)
    raise NotByColumnError(f"a soft-delete column of type {column.type}")


@dataclass(frozen=True, slots=True)
class Part:
    """The changes of one shape in a batch: by column, as they were captured, and where they are in
    the batch; None where they are all."""

    changes: ChangeColumns
    rows: Changed
    places: pa.Array | None = None


def split_by_shape(rows: Changed, style: CellStyle) -> Iterator[Part]:
    """The changes of a batch by their columns; nothing of an empty one."""
    if not rows.batch.num_rows:
        return
    if isinstance(rows, TableRows):
        yield Part(PolledChanges(rows, style), rows)
    elif len(rows.shapes) == 1:
        yield Part(SentChanges(rows.batch, rows.shapes[0], rows.window, style), rows)
    else:
        yield from split_stream(rows, style)


def split_stream(rows: StreamRows, style: CellStyle) -> Iterator[Part]:
    """The changes of each shape in a batch of a change stream."""
    numbers = rows.batch.column("shape").to_numpy()
    for number, shape in enumerate(rows.shapes):
        places = pa.array(np.flatnonzero(numbers == number))
        if len(places):
            some = StreamRows(rows.window, rows.batch.take(places), rows.shapes)
            yield Part(SentChanges(some.batch, shape, rows.window, style), some, places)


def merge_parts(parts: list[tuple[pa.RecordBatch, pa.Array | None]]) -> pa.RecordBatch:
    """What was made of each part, in the order of the batch."""
    if len(parts) == 1:
        return parts[0][0]
    places = np.concatenate([places.to_numpy() for _, places in parts if places is not None])
    together = pa.Table.from_batches([batch for batch, _ in parts]).combine_chunks()
    (batch,) = together.to_batches()
    return batch.take(pa.array(np.argsort(places, kind="stable")))


def merge_cells(shape: Shape, *layers: Mapping[str, pa.Array]) -> CellColumns:
    """Rows in the order of the table's columns; a layer's cells come before those of later ones."""
    merged: CellColumns = {}
    for name, _ in shape.columns:
        cells = [layer[name] for layer in layers if name in layer]
        if cells:
            merged[name] = cells[0] if len(cells) == 1 else pc.coalesce(*cells)
    return merged


def keep_cells(cells: Mapping[str, pa.Array], kept: pa.Array) -> CellColumns:
    """The cells of some changes only."""
    return {name: pc.if_else(kept, texts, None) for name, texts in cells.items()}
