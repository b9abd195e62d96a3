"""What a query shows of a change: the table's own columns, one form for all, or another format."""

from __future__ import annotations

import pyarrow as pa

from watcher.captures import (
    COMMIT_TIMESTAMP_COLUMN,
    SHARD_ID_COLUMN,
    Changed,
    StreamRows,
    TableRows,
)
from watcher.captures.change_types import (
    CHANGE_TYPE_COLUMN,
    COMMIT_VERSION_COLUMN,
    describe_rows,
    name_change_types,
    number_commits,
    number_commits_of_rows,
)
from watcher.captures.changes import compute_change_ids
from watcher.envelopes import EnvelopeOptions, make_envelope
from watcher.envelopes.batches import CHANGE_ID_COLUMN, encode_batch
from watcher.model.errors import ConfigurationError
from watcher.runners.spark.conversions import convert_column
from watcher.runners.spark.typed_changes import decode_own_columns
from watcher.runners.spark.uniform import ORIGIN_COLUMNS
from watcher.settings.spark import SourceOptions
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.tables.values import WatchedTable

OPERATION_COLUMN = "_operation"
ID_FIELD = pa.field(CHANGE_ID_COLUMN, pa.string())
STREAM_FIELDS = (
    pa.field(OPERATION_COLUMN, pa.string()),
    *(pa.field(name, pa.string()) for name in ORIGIN_COLUMNS),
)
"""Columns that only a change stream has."""

ENVELOPE = pa.schema(
    [
        ("table", pa.string()),
        ("operation", pa.string()),
        (COMMIT_TIMESTAMP_COLUMN, TIMESTAMP),
        ("key", pa.string()),
        ("values", pa.string()),
        ID_FIELD,
    ]
)
"""``key`` and ``values`` are JSON objects; ``values`` has every column, those of the key too."""

STREAM_ENVELOPE = pa.schema([*ENVELOPE, pa.field("old_values", pa.string()), *STREAM_FIELDS[1:]])
"""As ``ENVELOPE``; ``values`` and ``old_values`` have what the stream captured."""

JSON_FIELDS = frozenset({"key", "values", "old_values"})
"""Those of an envelope that are JSON."""

OF_STREAM = {
    COMMIT_TIMESTAMP_COLUMN: "commit_timestamp",
    CHANGE_ID_COLUMN: "id",
    OPERATION_COLUMN: "operation",
    **ORIGIN_COLUMNS,
}
"""Columns of a query, and those of ``watcher.captures.change_stream.CHANGES``."""


def resolve_format(options: SourceOptions) -> EnvelopeOptions:
    """The envelope that the options name. Raises ConfigurationError."""
    chosen = make_envelope(options.envelope or "plain", options.envelope_options, options.stream)
    if chosen.needs_order:
        raise ConfigurationError(
            f"the barriers of '{options.envelope}' need an order, which rows in Spark do not have:"
            " leave barriers out, because each micro-batch is complete up to its end"
        )
    return chosen


def shape_stored(rows: TableRows, shown: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns of their table."""
    arrays = [shape_column(rows, field) for field in shown]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


def shape_column(rows: TableRows, field: pa.Field) -> pa.Array:
    """A column of a batch; NULLs for one that its table does not have any more."""
    if field.name == CHANGE_ID_COLUMN:
        return compute_change_ids(rows)
    if field.name == OPERATION_COLUMN:
        return pa.repeat("READ", rows.batch.num_rows)
    if field.name == CHANGE_TYPE_COLUMN:
        return describe_rows(rows)
    if field.name == COMMIT_VERSION_COLUMN:
        return number_commits_of_rows(rows)
    if field.name not in rows.batch.schema.names:
        return pa.nulls(rows.batch.num_rows, field.type)
    return convert_column(rows.batch.column(field.name), rows.table.name, field)


def shape_typed(
    rows: StreamRows, table: WatchedTable, shown: pa.Schema, nanoseconds: Nanoseconds
) -> pa.RecordBatch:
    """Changes of one table in its own columns; of a delete the key, and NULLs."""
    own = decode_own_columns(rows, table, shown, nanoseconds)
    arrays = []
    for field in shown:
        if field.name in own:
            arrays.append(own[field.name])
        elif field.name == SHARD_ID_COLUMN:
            arrays.append(pa.nulls(rows.batch.num_rows, field.type))
        elif field.name == CHANGE_TYPE_COLUMN:
            arrays.append(name_change_types(rows.batch.column("operation")))
        elif field.name == COMMIT_VERSION_COLUMN:
            arrays.append(number_commits(rows.batch.column("commit_timestamp")))
        else:
            arrays.append(rows.batch.column(OF_STREAM[field.name]).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


def shape_messages(
    rows: Changed, database: str, chosen: EnvelopeOptions, shown: pa.Schema
) -> pa.RecordBatch:
    """Changes of any table in a format of others."""
    return encode_batch(rows, database, chosen).select(shown.names)
