"""Columns of a copy as Iceberg has them, and as Arrow does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from watcher.model.errors import ReplicaError
from watcher.replica.copies import DROPPED, NewColumns
from watcher.replica.cuts.modes import OWN_COLUMNS
from watcher.replica.row_versions import strip_schema

SIMPLE: dict[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.timestamp("us", "UTC"): TimestamptzType(),
}
DOC = b"doc"
"""Where Arrow keeps what Iceberg says of a column."""
FIELD_ID = b"PARQUET:field_id"
"""Where Arrow keeps the ID of a column in Parquet."""


def build_schema(schema: pa.Schema, after: int = 0) -> Schema:
    """Columns in Iceberg, with IDs above one that was given out. Raises ReplicaError for a type
    that copies do not have."""
    ids = count(after + 1)
    fields = [
        NestedField(next(ids), field.name, build_type(field.type, ids), required=False)
        for field in schema
    ]
    return Schema(*fields)


def build_type(type_: pa.DataType, ids: Iterator[int]) -> IcebergType:
    """A type in Iceberg; the elements of lists have IDs of their own."""
    if pa.types.is_list(type_):
        element = next(ids)
        return ListType(element, build_type(type_.value_type, ids), element_required=False)
    if pa.types.is_decimal(type_):
        return DecimalType(type_.precision, type_.scale)
    if type_ not in SIMPLE:
        raise ReplicaError(f"Iceberg has no type for columns of type {type_}")
    return SIMPLE[type_]


def evolve_schema(table: Table, columns: NewColumns) -> Schema:
    """The columns that a table gets: those that are there keep their IDs, so that files are read by
    them, and new ones have IDs that no column had. Those that its source has lost are marked, or
    gone; its own of its mode stay."""
    known = {field.name: field for field in table.schema().fields}
    fresh = build_schema(columns.schema, table.metadata.last_column_id)
    fields = [known.get(field.name, field) for field in fresh.fields]
    names = {*columns.schema.names} | OWN_COLUMNS
    lost = [field for name, field in known.items() if name not in names]
    marked = [field for field in lost if columns.keep_dropped or field.doc == DROPPED]
    kept = (field.model_copy(update={"doc": DROPPED}) for field in marked)
    number = 1 + max(each.schema_id for each in table.metadata.schemas)
    own = (field for name, field in known.items() if name in OWN_COLUMNS)
    return Schema(*fields, *kept, *own, schema_id=number)


def list_columns(schema: Schema) -> pa.Schema:
    """The columns of a copy in Arrow, without those of its mode."""
    return strip_schema(pa.schema(map(plain_field, schema.as_arrow())))


def convert_schema(schema: Schema) -> pa.Schema:
    """Columns in Arrow, as the rest of a replica knows them, with their IDs."""
    return pa.schema([convert_field(field) for field in schema.as_arrow()])


def convert_field(field: pa.Field) -> pa.Field:
    """A column, or the element of one."""
    plain = plain_field(field)
    kept = {FIELD_ID: (field.metadata or {})[FIELD_ID], **(plain.metadata or {})}
    return plain.with_metadata(kept)


def plain_field(field: pa.Field) -> pa.Field:
    """A column as the rest of a replica knows it, also that its table has lost it."""
    dropped = (field.metadata or {}).get(DOC) == DROPPED.encode()
    return pa.field(field.name, plain_type(field.type), metadata={DROPPED: ""} if dropped else None)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """A type as the rest of a replica knows it: those of pyiceberg are the large ones."""
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_large_list(type_) or pa.types.is_list(type_):
        element = type_.value_field
        if FIELD_ID in (element.metadata or {}):
            return pa.list_(convert_field(element))
        return pa.list_(plain_type(element.type))
    return type_
