"""The rows of a table that was polled as columns of changes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.changes import choose_operation, compute_change_ids
from watcher.envelopes.by_column.cells import render_cells
from watcher.envelopes.by_column.changes import CellColumns, ChangeColumns, merge_zeros
from watcher.envelopes.kinds import Kind, Layer
from watcher.envelopes.values import CellStyle
from watcher.model.change import Shape, ValueCapture


def list_polled(
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
        commits=pc.fill_null(commits, rows.window.end),
        shards=shards if pa.types.is_integer(shards.type) else pa.nulls(len(shards), pa.int64()),
        origin=None,
        indexes=indexes,
        make_ids=partial(compute_change_ids, rows),
        render=partial(render_layer, batch, shape, style),
    )


def render_layer(
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
