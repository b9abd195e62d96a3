"""The changes of a batch by column: in parts of one shape and kind each, with their cells as JSON
texts, and what was made of the parts as one batch again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spanner_schema.model.column_types import Type
from watcher.captures import (
    COMMIT_TIMESTAMP_COLUMN,
    SHARD_ID_COLUMN,
    Changed,
    StreamRows,
    TableRows,
)
from watcher.captures.changes import choose_operation, compute_change_ids
from watcher.envelopes.by_column.cells import render_cells, render_member
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.kinds import Kind, Layer
from watcher.envelopes.values import CellStyle
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.value_types import is_float
from watcher.model.window import Window
from watcher.spanner.results.sent_values import UnexpectedValueError

CellColumns = dict[str, pa.Array]
"""JSON texts of cells, by the names of their columns; no text where a change lacks the cell."""
OBJECTS = {Layer.KEY: "key", Layer.NEW: "new_values", Layer.OLD: "old_values"}
"""The columns of a change stream's batch that are JSON."""
KINDS = ("shape", "operation", "captured", "new_values", "old_values")
"""Those that tell kinds apart, the last two by whether they are NULL."""


@dataclass(frozen=True)
class ChangeColumns:
    """Changes of one shape and kind. ``batch`` has them as they were captured; ``indexes`` says
    where they were in the one that they are a part of, None if they are all of it. ``commits`` are
    in microseconds since 1970. What costs much is made when it is asked for: ids, and the cells of
    the layers KEY, in the order of the primary key, NEW, and OLD, in that of the capture."""

    kind: Kind
    shape: Shape
    window: Window
    batch: pa.RecordBatch
    indexes: NDArray[np.int64] | None
    commits: pa.Array
    shards: pa.Array
    make_ids: Callable[[], pa.Array]
    render: Callable[[Layer], CellColumns]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.commits)

    @cached_property
    def ids(self) -> pa.Array:
        """Their ids."""
        return self.make_ids()

    @cached_property
    def _cells(self) -> dict[Layer, CellColumns]:
        return {}

    def get_cells(self, layer: Layer) -> CellColumns:
        """The cells of a layer."""
        if layer not in self._cells:
            make = self._select_changed if layer is Layer.CHANGED else self.render
            self._cells[layer] = make(layer)
        return self._cells[layer]

    def _select_changed(self, _: Layer) -> CellColumns:
        new, old = self.get_cells(Layer.NEW), self.get_cells(Layer.OLD)
        return {
            name: pc.if_else(old[name].is_valid(), cells, None)
            for name, cells in new.items()
            if name in old
        }


def merge_zeros(shape: Shape, cells: CellColumns) -> CellColumns:
    """The cells of a key: -0.0 is written as 0.0, because both are the same key to Spanner."""
    floats = {name for name, type_ in shape.columns if is_float(type_)}
    for name in floats & cells.keys():
        negative = pc.equal(cells[name], "-0.0")
        cells[name] = pc.if_else(negative, "0.0", cells[name])
    return cells


def merge_cells(shape: Shape, *layers: Mapping[str, pa.Array]) -> CellColumns:
    """Rows in the order of the table's columns; a layer's cells come before those of later ones."""
    merged: CellColumns = {}
    for name, _ in shape.columns:
        cells = [layer[name] for layer in layers if name in layer]
        if cells:
            merged[name] = cells[0] if len(cells) == 1 else pc.coalesce(*cells)
    return merged


def render_parts(
    rows: Changed,
    style: CellStyle,
    schema: pa.Schema,
    make_columns: Callable[[ChangeColumns], Sequence[pa.Array]],
) -> pa.RecordBatch:
    """What is made of each part of a batch, as columns of a schema, in the order of the batch."""
    parts = list(split_by_kind(rows, style))
    batches = [pa.RecordBatch.from_arrays(make_columns(part), schema=schema) for part in parts]
    if not parts:
        return pa.RecordBatch.from_pylist([], schema)
    if len(parts) == 1 or not len(schema):
        return batches[0]
    indexes = np.concatenate([part.indexes for part in parts if part.indexes is not None])
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch.take(pa.array(np.argsort(indexes, kind="stable")))


def split_by_kind(rows: Changed, style: CellStyle) -> Iterator[ChangeColumns]:
    """The changes of a batch in parts; none of an empty one."""
    if not rows.batch.num_rows:
        return
    groups = group_rows(list_distinctions(rows))
    for group in groups:
        indexes = group if len(groups) > 1 else None
        batch = rows.batch if indexes is None else rows.batch.take(pa.array(indexes))
        if isinstance(rows, TableRows):
            yield take_polled(replace(rows, batch=batch), style, indexes)
        else:
            yield take_sent(replace(rows, batch=batch), style, indexes)


def list_distinctions(rows: Changed) -> Sequence[pa.Array]:
    """The columns that tell the parts apart."""
    if isinstance(rows, TableRows):
        return [find_deleted(rows)]
    columns = [rows.batch.column(name) for name in KINDS]
    return [*columns[:-2], *(each.is_valid() for each in columns[-2:])]


def group_rows(columns: Sequence[pa.Array]) -> list[NDArray[np.int64]]:
    """The indexes of the rows that are the same in all columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(counts)[:-1])


def take_polled(
    rows: TableRows, style: CellStyle, indexes: NDArray[np.int64] | None
) -> ChangeColumns:
    """Rows that are all deleted, or all not: ``captures.changes.iterate_row_changes`` by column."""
    table, batch = rows.table, rows.batch
    operation = choose_operation(rows, find_deleted(rows)[0].as_py())
    commits = batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
    shards = batch.column(SHARD_ID_COLUMN)
    shape = Shape(table.name, table.columns, table.primary_key)
    return ChangeColumns(
        kind=Kind(operation, ValueCapture.NEW_ROW, has_new=True, has_old=False, streamed=False),
        shape=shape,
        window=rows.window,
        batch=batch,
        indexes=indexes,
        commits=pc.fill_null(commits, rows.window.end),
        shards=shards if pa.types.is_integer(shards.type) else pa.nulls(len(shards), pa.int64()),
        make_ids=partial(compute_change_ids, rows),
        render=partial(render_polled, batch, shape, style),
    )


def render_polled(
    batch: pa.RecordBatch, shape: Shape, style: CellStyle, layer: Layer
) -> CellColumns:
    """The cells of the key, or those of all other columns. Polling knows no old values."""
    names = list(shape.primary_key) if layer is Layer.KEY else []
    if layer is Layer.NEW:
        others = {COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, *shape.primary_key}
        names = [name for name in batch.schema.names if name not in others]
    types = dict(shape.columns)
    cells = {name: render_cells(batch.column(name), types[name], style) for name in names}
    return merge_zeros(shape, cells) if layer is Layer.KEY else cells


def find_deleted(rows: TableRows) -> pa.Array:
    """Which rows the soft-delete column, BOOL or TIMESTAMP, marks; none where there is no such
    column."""
    if rows.table.deleted is None:
        return pa.repeat(False, rows.batch.num_rows)
    column = rows.batch.column(rows.table.deleted)
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False)
    if pa.types.is_timestamp(column.type):
        return column.is_valid()
    if pa.types.is_string(column.type):
        return pc.fill_null(pc.not_equal(column, ""), False)
    raise TypeError(f"a soft-delete column cannot be a {column.type}")


def take_sent(
    rows: StreamRows, style: CellStyle, indexes: NDArray[np.int64] | None
) -> ChangeColumns:
    """Changes of one shape and kind: ``iterate_stream_changes`` by column."""
    (first,) = rows.batch.slice(0, 1).select(KINDS).to_pylist()
    number, operation, captured, new, old = (first[name] for name in KINDS)
    shape = rows.shapes[number]
    return ChangeColumns(
        kind=Kind(
            Operation(operation),
            ValueCapture(captured),
            has_new=new is not None,
            has_old=old is not None,
            streamed=True,
        ),
        shape=shape,
        window=rows.window,
        batch=rows.batch,
        indexes=indexes,
        commits=rows.batch.column("commit_timestamp").cast(pa.int64()),
        shards=pa.nulls(rows.batch.num_rows, pa.int64()),
        make_ids=partial(rows.batch.column, "id"),
        render=partial(render_sent_layer, rows.batch, shape, style),
    )


def render_sent_layer(
    batch: pa.RecordBatch, shape: Shape, style: CellStyle, layer: Layer
) -> CellColumns:
    """The cells of a layer. Raises UnexpectedValueError."""
    texts, key = batch.column(OBJECTS[layer]), shape.primary_key
    if layer is not Layer.KEY:
        others = sorted(each for each in shape.columns if each[0] not in key)
        return render_objects(texts, others, style)
    cells = render_objects(texts, [each for each in shape.columns if each[0] in key], style)
    if len(cells) < len(key) or any(each.null_count for each in cells.values()):
        raise UnexpectedValueError("Spanner sent a change with a part of its key")
    return merge_zeros(shape, {name: cells[name] for name in key})


def render_objects(
    texts: pa.Array, columns: Sequence[tuple[str, Type]], style: CellStyle
) -> CellColumns:
    """The cells of objects in the order of columns; of those that some object has."""
    objects = SentObjects(texts, columns)
    if not objects.names <= dict(columns).keys():
        raise UnexpectedValueError("Spanner sent a change with columns without a type")
    cells = {name: render_member(objects, name, type_, style) for name, type_ in columns}
    return {name: each for name, each in cells.items() if each is not None}
