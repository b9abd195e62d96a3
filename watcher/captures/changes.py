"""Rows of a capture -> changes: for callbacks that take one change, and for envelopes."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import TypeCode
from watcher.captures import (
    COMMIT_TIMESTAMP_COLUMN,
    SHARD_ID_COLUMN,
    Changed,
    StreamRows,
    TableRows,
)
from watcher.captures.change_stream import iterate_stream_changes
from watcher.captures.digests import hash_texts
from watcher.model.change import Change, Operation, Shape, Value, ValueCapture
from watcher.spanner.json_columns.objects import NULL
from watcher.spanner.json_columns.scalars import (
    format_numeric,
    format_timestamps,
    render_scalars,
    wrap,
)
from watcher.spanner.key_values import identify_column, merge_zeros
from watcher.spanner.results.timestamp_columns import normalize_timestamps
from watcher.spanner.timestamps import format_timestamp, to_micros

SIMPLE_TYPES = frozenset({bool, int, str, type(None)})
"""Most cells are of these types, which are the same in Arrow, in a change and in JSON."""


def iterate_changes(rows: Changed, database: str) -> Iterator[Change]:
    """The changes of a batch, as values."""
    if isinstance(rows, StreamRows):
        return iterate_stream_changes(rows, database)
    return iterate_row_changes(rows, database)


def iterate_row_changes(rows: TableRows, database: str) -> Iterator[Change]:
    """The rows of a batch as changes: UPSERT, READ from a backfill, or DELETE where the soft-delete
    column is set. A row that was never stamped counts as of its snapshot's timestamp."""
    table = rows.table
    shape = Shape(table.name, table.columns, table.primary_key)
    cells = rows.batch.drop_columns([COMMIT_TIMESTAMP_COLUMN])
    other = [field.name for field in cells.schema if not is_plain(field.type)]
    for change_id, commit, row in zip(
        compute_change_ids(rows).to_pylist(), list_commits(rows), cells.to_pylist(), strict=True
    ):
        shard = row.pop(SHARD_ID_COLUMN)
        deleted = table.deleted is not None and bool(row[table.deleted])
        for name in other:
            row[name] = convert_cell(row[name])
        key = {name: merge_zeros(row.pop(name)) for name in table.primary_key}
        yield Change(
            id=change_id,
            database=database,
            shape=shape,
            operation=choose_operation(rows, deleted),
            commit_timestamp=commit,
            key=key,
            new_values=row,
            old_values=None,
            captured=ValueCapture.NEW_ROW,
            window=rows.window,
            shard_id=shard if isinstance(shard, int) else None,
        )


def stamp_rows(rows: TableRows) -> TableRows:
    """The same rows; one that was never stamped has its snapshot's timestamp."""
    commits = rows.batch.column(COMMIT_TIMESTAMP_COLUMN)
    if not commits.null_count:
        return rows
    unstamped = pa.scalar(rows.window.end, pa.int64()).cast(commits.type)
    index = rows.batch.schema.get_field_index(COMMIT_TIMESTAMP_COLUMN)
    stamped = pc.fill_null(commits, unstamped)
    return replace(rows, batch=rows.batch.set_column(index, COMMIT_TIMESTAMP_COLUMN, stamped))


def list_commits(rows: TableRows) -> list[int]:
    """The commit timestamps of rows, in microseconds; of one that was never stamped, its
    snapshot's."""
    commits = stamp_rows(rows).batch.column(COMMIT_TIMESTAMP_COLUMN)
    stamped: list[int] = commits.cast(pa.int64()).to_pylist()
    return stamped


def is_plain(type_: pa.DataType) -> bool:
    """Whether Arrow's values of a type are cells of changes as they are."""
    types = pa.types
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_string)
    return any(is_kind(type_) for is_kind in kinds)


def choose_operation(rows: TableRows, deleted: bool) -> Operation:
    """What happened to a row; one that is softly deleted is deleted in a backfill, too."""
    if deleted:
        return Operation.DELETE
    return Operation.READ if rows.backfill else Operation.UPSERT


def convert_cell(value: object) -> Value:
    """A value of Arrow as a cell of a change."""
    if type(value) in SIMPLE_TYPES:
        return cast("Value", value)
    if isinstance(value, datetime):
        return format_timestamp(to_micros(value))
    if isinstance(value, list):
        return [convert_cell(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str | bytes | Decimal | date):
        return value
    raise TypeError(f"a cell cannot be a {type(value).__name__}")


def compute_change_ids(rows: TableRows) -> pa.Array:
    """Digests of table, key and commit timestamp of each row: the same on every delivery of a
    version, however nanoseconds are converted elsewhere."""
    texts = format_timestamps(stamp_rows(rows).batch.column(COMMIT_TIMESTAMP_COLUMN))
    keys = [render_keys(rows, name) for name in rows.table.primary_key]
    key = pc.binary_join_element_wise(*keys, ", ") if keys else pa.repeat("", len(texts))
    table = json.dumps(rows.table.name, ensure_ascii=False)
    return hash_texts(pc.binary_join_element_wise(f"[{table}, [", key, '], "', texts, '"]', ""))


def render_keys(rows: TableRows, name: str) -> pa.Array:
    """The cells of a key column as JSON texts: equal keys have equal ones, others do not."""
    column = identify_column(rows.batch.column(name))
    if rows.table.column_type(name).code is TypeCode.TIMESTAMP:
        texts = normalize_timestamps(column)
        return pc.fill_null(wrap(texts, '"', '"'), NULL)
    return pc.fill_null(render_scalars(column), NULL)


def dump_cells(cells: Mapping[str, Value]) -> str:
    """Cells as a JSON object."""
    values = {name: to_json(value) for name, value in cells.items()}
    return json.dumps(values, ensure_ascii=False)


def to_json(value: Value) -> object:
    """A cell as JSON: BYTES as base64, DATE as ISO 8601, NUMERIC as a string, NaN as 'NaN'."""
    if type(value) in SIMPLE_TYPES:
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        return format_numeric(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value
