"""Changes of any table in one form for all, by column: key and values are JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.envelopes.by_column.cells import SPACED_CELLS
from watcher.envelopes.by_column.changes import ChangeColumns, merge_cells
from watcher.envelopes.by_column.messages import CHANGE_ID_COLUMN
from watcher.envelopes.by_column.parts import merge_parts, split_by_shape
from watcher.json_columns.objects import SPACED, join_object
from watcher.runners.spark.change_columns import (
    CHANGE_TYPE_COLUMN,
    COMMIT_VERSION_COLUMN,
    name_change_types,
    number_commits,
)

ORIGIN_COLUMNS = {
    "_transaction_id": "transaction_id",
    "_record_sequence": "record_sequence",
    "_transaction_tag": "transaction_tag",
}
"""Columns of a query, and those of ``watcher.captures.change_stream.rows.CHANGES``."""


def render_uniform(rows: Changed, shown: pa.Schema) -> pa.RecordBatch:
    """The changes of a batch as rows of ``shapes.STREAM_ENVELOPE``, of its columns that are shown.

    Raises NotByColumnError for what columns cannot do.
    """
    parts = []
    for part in split_by_shape(rows, SPACED_CELLS):
        arrays = [render_column(part.changes, field) for field in shown]
        parts.append((pa.RecordBatch.from_arrays(arrays, schema=shown), part.places))
    return merge_parts(parts) if parts else pa.RecordBatch.from_pylist([], schema=shown)


def render_column(changes: ChangeColumns, field: pa.Field) -> pa.Array:
    """One of the columns."""
    if field.name in ORIGIN_COLUMNS:
        if changes.origin is None:
            return pa.nulls(changes.rows, field.type)
        return changes.origin.column(ORIGIN_COLUMNS[field.name]).cast(field.type)
    return COLUMNS[field.name](changes).cast(field.type)


def render_key(changes: ChangeColumns) -> pa.Array:
    """The key as an object."""
    return join_object(changes.key, changes.rows, SPACED)


def render_row(changes: ChangeColumns) -> pa.Array:
    """Key and values as an object, in the order of the table's columns."""
    cells = merge_cells(changes.shape, changes.new, changes.key)
    return join_object(cells, changes.rows, SPACED)


def render_old_values(changes: ChangeColumns) -> pa.Array:
    """The values before as an object; NULL where nothing is known of them."""
    if not pc.any(changes.knows_old).as_py():
        return pa.nulls(changes.rows, pa.string())
    objects = join_object(changes.old, changes.rows, SPACED)
    return pc.if_else(changes.knows_old, objects, None)


COLUMNS: Mapping[str, Callable[[ChangeColumns], pa.Array]] = {
    "table": lambda changes: pa.repeat(changes.shape.table, changes.rows),
    "operation": lambda changes: changes.operations,
    COMMIT_TIMESTAMP_COLUMN: lambda changes: changes.commits,
    "key": render_key,
    "values": render_row,
    CHANGE_ID_COLUMN: lambda changes: changes.ids,
    "old_values": render_old_values,
    CHANGE_TYPE_COLUMN: lambda changes: name_change_types(changes.operations),
    COMMIT_VERSION_COLUMN: lambda changes: number_commits(changes.commits),
}
"""How each column is made; those of ``ORIGIN_COLUMNS`` are a change stream's own."""
