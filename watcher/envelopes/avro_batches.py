"""Batches of polled rows -> the messages of ``plain-avro``, by column.

Cells of types that Arrow has as Avro are written by vectors, others one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import TableRows
from watcher.captures.changes import convert_cell as read_cell
from watcher.envelopes.avro import convert_cell, load_fastavro, write_datum
from watcher.envelopes.by_column.avro_cells import (
    NULL,
    PRESENT,
    encode_booleans,
    encode_floats,
    encode_longs,
    encode_texts,
    encode_union,
    join,
)
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.message import Json
from watcher.envelopes.plain_avro import PlainAvro
from watcher.spanner.results.columns import TIMESTAMP

VECTORS: Mapping[tuple[pa.DataType, str], Callable[[pa.Array], pa.Array]] = {
    (pa.bool_(), "boolean"): encode_booleans,
    (pa.int64(), "long"): encode_longs,
    (pa.float32(), "float"): encode_floats,
    (pa.float64(), "double"): encode_floats,
    (pa.string(), "string"): encode_texts,
    (pa.binary(), "bytes"): encode_texts,
    (pa.date32(), "date"): lambda column: encode_longs(column.cast(pa.int32())),
    (TIMESTAMP, "timestamp-micros"): encode_longs,
}
"""By the type in Arrow and the logical type in Avro, or the primitive one where there is none, or
none that writes other bytes."""
SAME_BYTES = frozenset({"json", "uuid"})
"""Logical types that are texts as they are."""


def encode_rows(
    rows: TableRows, database: str, chosen: PlainAvro, changes: ChangeColumns
) -> tuple[pa.Array, pa.Array]:
    """The keys and the values of the changes of a batch that are alike: rows that were polled, none
    of which has old values. Raises EnvelopeError."""
    indexes, shape = changes.indexes, changes.shape
    batch = rows.batch if indexes is None else rows.batch.take(pa.array(indexes))
    chosen.describe_schemas(database, shape)  # refuses names
    absent = pa.nulls(batch.num_rows, pa.bool_())
    cells = {
        name: encode_cells(
            batch.column(name) if name in batch.schema.names else absent,
            type_,
            chosen,
            name in shape.primary_key,
        )
        for name, type_ in shape.columns
    }
    key = join(b"", *(cells[name] for name in shape.primary_key), pa.repeat(b"", batch.num_rows))
    value = join(
        encode_texts(changes.ids),
        encode_constants("string", shape.table, str(changes.kind.operation)),
        encode_longs(changes.commits),
        encode_union(changes.shards, encode_longs(changes.shards)),
        key,
        PRESENT,
        *cells.values(),
        NULL + NULL,  # no old row, no transaction
        encode_constants("long", changes.window.start, changes.window.end),
    )
    return key, value


def encode_constants(avro: str, *values: str | int) -> bytes:
    """Values that all changes have alike."""
    return b"".join(write_datum(avro, value) for value in values)


def encode_cells(column: pa.Array, type_: Type, chosen: PlainAvro, in_key: bool) -> pa.Array:
    """The cells of a column, which may be NULL. Raises EnvelopeError."""
    avro = chosen.choose_type(type_)
    encode = VECTORS.get((column.type, name_encoding(avro)))
    is_time = type_.code is TypeCode.TIMESTAMP and pa.types.is_string(column.type)
    if encode is None or (is_time and chosen.timestamps == "micros"):
        return encode_one_by_one(column, type_, avro, chosen.timestamps == "iso")
    if in_key and pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is the same key as 0.0
    return encode_union(column, encode(column))


def name_encoding(avro: Json) -> str:
    """What decides which bytes are written."""
    if isinstance(avro, dict):
        logical = avro.get("logicalType")
        return str(avro["type"] if logical is None or logical in SAME_BYTES else logical)
    return str(avro)


def encode_one_by_one(column: pa.Array, type_: Type, avro: Json, texts: bool) -> pa.Array:
    """As ``encode_cells``, of every type."""
    schema = load_fastavro().parse_schema(["null", avro])
    cells = (convert_cell(read_cell(cell), type_, texts) for cell in column.to_pylist())
    return pa.array([write_datum(schema, cell) for cell in cells], pa.binary())
