"""What a query shows of a change: the table's own columns, one form for all, or another format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from watcher.captures import (
    COMMIT_TIMESTAMP_COLUMN,
    SHARD_ID_COLUMN,
    Changed,
    StreamRows,
    TableRows,
)
from watcher.captures.changes import compute_change_ids, dump_cells, iterate_changes
from watcher.envelopes import AnyEnvelope, make_envelope
from watcher.envelopes.by_column.batches import encode_batch
from watcher.envelopes.by_column.cells import NotByColumnError
from watcher.envelopes.by_column.messages import CHANGE_ID_COLUMN
from watcher.model.change import Change
from watcher.model.change import Value as Cell
from watcher.model.errors import ConfigurationError
from watcher.runners.spark.change_columns import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPES,
    COMMIT_VERSION_COLUMN,
    describe_rows,
    name_change_types,
    number_commits,
    number_commits_of_rows,
)
from watcher.runners.spark.conversions import convert_column
from watcher.runners.spark.typed_changes import decode_own_columns
from watcher.runners.spark.uniform import ORIGIN_COLUMNS, render_uniform
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


def resolve_format(options: SourceOptions) -> AnyEnvelope:
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


def shape_envelope(rows: Changed, database: str, shown: pa.Schema) -> pa.RecordBatch:
    """Changes of any table as rows of one form."""
    try:
        return render_uniform(rows, shown)
    except NotByColumnError:
        return shape_changes(iterate_changes(rows, database), shown)


def shape_changes(changes: Iterable[Change], shown: pa.Schema) -> pa.RecordBatch:
    """As ``shape_envelope``, change by change."""
    return build_batch([make_envelope_row(change) for change in changes], shown)


def make_envelope_row(change: Change) -> dict[str, object]:
    """A change as a row of ``STREAM_ENVELOPE`` and ``change_columns.CHANGE_FIELDS``."""
    origin, old = change.origin, change.old_values
    return {
        "table": change.table,
        "operation": str(change.operation),
        COMMIT_TIMESTAMP_COLUMN: change.commit_timestamp,
        "key": dump_cells(change.key),
        "values": dump_cells(merge_row(change)),
        CHANGE_ID_COLUMN: change.id,
        "old_values": dump_cells(old) if old is not None else None,
        "_transaction_id": origin.transaction_id if origin else None,
        "_record_sequence": origin.record_sequence if origin else None,
        "_transaction_tag": origin.transaction_tag if origin else None,
        CHANGE_TYPE_COLUMN: CHANGE_TYPES[change.operation],
        COMMIT_VERSION_COLUMN: change.commit_timestamp,
    }


def shape_messages(
    rows: Changed, database: str, chosen: AnyEnvelope, shown: pa.Schema
) -> pa.RecordBatch:
    """Changes of any table in a format of others."""
    try:
        return encode_batch(rows, database, chosen).select(shown.names)
    except NotByColumnError:
        return shape_encoded(iterate_changes(rows, database), chosen, shown)


def shape_encoded(
    changes: Iterable[Change], chosen: AnyEnvelope, shown: pa.Schema
) -> pa.RecordBatch:
    """As ``shape_messages``, change by change."""
    return build_batch(list(encode_messages(changes, chosen)), shown)


def encode_messages(changes: Iterable[Change], chosen: AnyEnvelope) -> Iterator[dict[str, object]]:
    """The messages of changes as rows of ``MESSAGE``."""
    for change in changes:
        for message in chosen.encode(change):
            yield {
                "table": change.table,
                COMMIT_TIMESTAMP_COLUMN: change.commit_timestamp,
                "key": message.key,
                "value": message.value,
                CHANGE_ID_COLUMN: change.id,
            }


def build_batch(rows: Sequence[Mapping[str, object]], shown: pa.Schema) -> pa.RecordBatch:
    """Rows as columns."""
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in shown]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


def merge_row(change: Change) -> dict[str, Cell]:
    """Key and values in the order of the table's columns."""
    cells = {**change.key, **(change.new_values or {})}
    return {name: cells[name] for name, _ in change.shape.columns if name in cells}
