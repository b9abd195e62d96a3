"""Changes of any table in one form for all, by column: key and values are JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.captures.change_types import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPES,
    COMMIT_VERSION_COLUMN,
    number_commits,
)
from watcher.envelopes.batches import CHANGE_ID_COLUMN
from watcher.envelopes.by_column.changes import ChangeColumns, render_parts
from watcher.envelopes.leaves import Cells, describe_key
from watcher.envelopes.plain import describe_old_values, describe_values
from watcher.envelopes.templates import Template
from watcher.envelopes.values import PLAIN_CELLS

ORIGIN_COLUMNS = {
    "_transaction_id": "transaction_id",
    "_record_sequence": "record_sequence",
    "_transaction_tag": "transaction_tag",
}
"""Columns of a query, and those of ``watcher.captures.change_stream.rows.CHANGES``."""


def render_uniform(rows: Changed, shown: pa.Schema) -> pa.RecordBatch:
    """The changes of a batch as rows of ``shapes.STREAM_ENVELOPE``, of its columns that are
    shown."""
    return render_parts(
        rows, PLAIN_CELLS, shown, lambda part: [render_column(part, field) for field in shown]
    )


def render_column(changes: ChangeColumns, field: pa.Field) -> pa.Array:
    """One of the columns."""
    attribute = ORIGIN_COLUMNS.get(field.name)
    if attribute is None:
        column = COLUMNS[field.name](changes)
    else:
        column = changes.batch.column(attribute) if changes.kind.streamed else None
    if isinstance(column, pa.Array):
        return column.cast(field.type)
    return pa.repeat(pa.scalar(column, field.type), changes.rows)


def render(cells: Cells, changes: ChangeColumns) -> pa.Array:
    """The cells of each change as an object."""
    return Template((cells,)).render(changes)


def render_old_values(changes: ChangeColumns) -> pa.Array | None:
    """The values before as an object; NULL where nothing is known of them."""
    return render(describe_old_values(changes.shape), changes) if changes.kind.has_old else None


COLUMNS: Mapping[str, Callable[[ChangeColumns], pa.Array | str | None]] = {
    "table": lambda changes: changes.shape.table,
    "operation": lambda changes: str(changes.kind.operation),
    COMMIT_TIMESTAMP_COLUMN: lambda changes: changes.commits,
    "key": lambda changes: render(describe_key(changes.shape, PLAIN_CELLS), changes),
    "values": lambda changes: render(describe_values(changes.shape), changes),
    CHANGE_ID_COLUMN: lambda changes: changes.ids,
    "old_values": render_old_values,
    CHANGE_TYPE_COLUMN: lambda changes: CHANGE_TYPES[changes.kind.operation],
    COMMIT_VERSION_COLUMN: lambda changes: number_commits(changes.commits),
}
"""How each column is made: one value where all changes of a part have the same; those of
``ORIGIN_COLUMNS`` are a change stream's own."""
