"""Changes of any table in one form for all, by column: key and values are JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.envelopes.batches import CHANGE_ID_COLUMN
from watcher.envelopes.by_column.parts import Part, merge_parts, split_by_kind
from watcher.envelopes.leaves import Cells
from watcher.envelopes.plain import describe_key, describe_old_values, describe_values
from watcher.envelopes.templates import Template
from watcher.envelopes.values import PLAIN_CELLS
from watcher.model.change import Shape
from watcher.runners.spark.change_columns import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPES,
    COMMIT_VERSION_COLUMN,
    number_commits,
)

ORIGIN_COLUMNS = {
    "_transaction_id": "transaction_id",
    "_record_sequence": "record_sequence",
    "_transaction_tag": "transaction_tag",
}
"""Columns of a query, and those of ``watcher.captures.change_stream.rows.CHANGES``."""


def render_uniform(rows: Changed, shown: pa.Schema) -> pa.RecordBatch:
    """The changes of a batch as rows of ``shapes.STREAM_ENVELOPE``, of its columns that are
    shown."""
    parts = []
    for part in split_by_kind(rows, PLAIN_CELLS):
        arrays = [render_column(part, field) for field in shown]
        parts.append((part, pa.RecordBatch.from_arrays(arrays, schema=shown)))
    return merge_parts(parts) if parts else pa.RecordBatch.from_pylist([], schema=shown)


def render_column(part: Part, field: pa.Field) -> pa.Array:
    """One of the columns."""
    attribute, rows = ORIGIN_COLUMNS.get(field.name), part.changes.rows
    if attribute is None:
        column = COLUMNS[field.name](part)
    else:
        column = part.changes.get_origin(attribute) if part.kind.streamed else None
    return (
        column.cast(field.type)
        if isinstance(column, pa.Array)
        else pa.repeat(pa.scalar(column, field.type), rows)
    )


def render(describe: Callable[[Shape], Cells], part: Part) -> pa.Array:
    """The cells of each change as an object."""
    return Template((describe(part.changes.shape),)).render(part.changes)


def render_old_values(part: Part) -> pa.Array | None:
    """The values before as an object; NULL where nothing is known of them."""
    return render(describe_old_values, part) if part.kind.has_old else None


COLUMNS: Mapping[str, Callable[[Part], pa.Array | str | None]] = {
    "table": lambda part: part.changes.shape.table,
    "operation": lambda part: str(part.kind.operation),
    COMMIT_TIMESTAMP_COLUMN: lambda part: part.changes.commits,
    "key": lambda part: render(describe_key, part),
    "values": lambda part: render(describe_values, part),
    CHANGE_ID_COLUMN: lambda part: part.changes.ids,
    "old_values": render_old_values,
    CHANGE_TYPE_COLUMN: lambda part: CHANGE_TYPES[part.kind.operation],
    COMMIT_VERSION_COLUMN: lambda part: number_commits(part.changes.commits),
}
"""How each column is made: one value where all changes of a part have the same; those of
``ORIGIN_COLUMNS`` are a change stream's own."""
