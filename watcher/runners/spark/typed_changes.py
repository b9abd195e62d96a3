"""Changes of a stream -> the columns of their table, with the types that they were written with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import StreamRows
from watcher.model.change import Shape
from watcher.runners.spark.conversions import convert_column
from watcher.runners.spark.sent_columns import SentRows
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.tables.column_choice import Columns, list_codes
from watcher.tables.values import WatchedTable


def decode_own_columns(
    rows: StreamRows, table: WatchedTable, shown: pa.Schema, nanoseconds: Nanoseconds
) -> dict[str, pa.Array]:
    """The columns of a table that are shown, from the JSON of its changes: each with the types that
    it was written with."""
    fields = [shown.field(name) for name, _ in table.columns if name in shown.names]
    if not fields:
        return {}
    columns = [use_recorded_types(table.columns, shape) for shape in rows.shapes]
    if all(each == table.columns for each in columns):
        return decode_columns(rows.batch, table, table.columns, fields, nanoseconds)
    which = rows.batch.column("shape").to_numpy()
    parts = [np.flatnonzero(which == number) for number in range(len(columns))]
    decoded = [
        decode_columns(rows.batch.take(pa.array(part)), table, each, fields, nanoseconds)
        for part, each in zip(parts, columns, strict=True)
    ]
    order = pa.array(np.argsort(np.concatenate(parts), kind="stable"))
    return {
        field.name: pa.concat_arrays([each[field.name] for each in decoded]).take(order)
        for field in fields
    }


def use_recorded_types(columns: Columns, shape: Shape) -> Columns:
    """The columns of a table, with the types of a change that was written when they had others."""
    recorded = dict(shape.columns)
    return tuple(
        (name, type_ if are_sent_alike(recorded.get(name, type_), type_) else recorded[name])
        for name, type_ in columns
    )


def are_sent_alike(recorded: Type, type_: Type) -> bool:
    """Whether values of two types have one form; numerics may be read as text."""
    if recorded == type_:
        return True
    codes, expected = list_codes(recorded), list_codes(type_)
    as_text = tuple(TypeCode.STRING if c is TypeCode.PG_NUMERIC else c for c in codes)
    return expected in (codes, as_text)


def decode_columns(
    batch: pa.RecordBatch,
    table: WatchedTable,
    columns: Columns,
    fields: Sequence[pa.Field],
    nanoseconds: Nanoseconds,
) -> dict[str, pa.Array]:
    """Columns of changes that were written with the same types."""
    key, types = table.primary_key, dict(columns)
    rows = SentRows(batch, columns, key)
    return {
        field.name: convert_column(
            rows.decode(field.name, types[field.name], nanoseconds, field.name in key),
            table.name,
            field,
            types[field.name].code is TypeCode.TIMESTAMP,
        )
        for field in fields
    }
