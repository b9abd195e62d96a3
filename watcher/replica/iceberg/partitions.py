"""Partitions and sort orders of Iceberg tables, and the values of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, NullOrder, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)

from watcher.model.errors import ReplicaError
from watcher.replica.iceberg.schemas import plain_type
from watcher.replica.layout import BUCKET, IDENTITY, SORTED, TIMES, TRUNCATE, Layout
from watcher.replica.layout import PartitionField as Field
from watcher.replica.writing.arranged_rows import Arrangement

FIRST_ID = 1000
"""The ID of the first field of partitions, by the format's convention."""
FILE_SIZE = "write.target-file-size-bytes"
MAKE: Mapping[str, Callable[[int], Transform[Any, Any]]] = {
    IDENTITY: lambda _: IdentityTransform(),
    "year": lambda _: YearTransform(),
    "month": lambda _: MonthTransform(),
    "day": lambda _: DayTransform(),
    "hour": lambda _: HourTransform(),
    BUCKET: BucketTransform,
    TRUNCATE: TruncateTransform,
}
SUFFIXES = {IDENTITY: "", TRUNCATE: "_trunc"}
"""How the names of fields end; others by their transform, as Spark calls them."""


def build_spec(layout: Layout, schema: Schema) -> PartitionSpec:
    """The partitions of a new table."""
    fields = [
        PartitionField(
            source_id=schema.find_field(each.column).field_id,
            field_id=FIRST_ID + number,
            transform=MAKE[each.transform](each.number or 0),
            name=name_field(each, schema),
        )
        for number, each in enumerate(layout.fields)
    ]
    return PartitionSpec(*fields) if fields else UNPARTITIONED_PARTITION_SPEC


def name_field(field: Field, schema: Schema) -> str:
    """A name of a field of partitions that no column has, unless it is the column itself."""
    if field.transform == IDENTITY:
        return field.column
    name = field.column + SUFFIXES.get(field.transform, f"_{field.transform}")
    taken = {column.casefold() for column in schema.column_names}
    while name.casefold() in taken:
        name += "_"
    return name


def build_order(layout: Layout, schema: Schema) -> SortOrder:
    """The order of the rows of a file."""
    fields = [
        SortField(
            source_id=schema.find_field(name).field_id,
            transform=IdentityTransform(),
            null_order=NullOrder.NULLS_LAST,
        )
        for name in layout.sort_by
    ]
    return SortOrder(*fields) if fields else UNSORTED_SORT_ORDER


def list_partitions(table: Table) -> list[str]:
    """The partitions of a table, as settings spell them."""
    schema = table.schema()
    return [spell_field(each, schema) for each in table.spec().fields]


def spell_field(field: PartitionField, schema: Schema) -> str:
    """A field of partitions as settings spell it; one that these do not have as Iceberg does."""
    column, transform = schema.find_column_name(field.source_id) or "?", field.transform
    if isinstance(transform, BucketTransform):
        return str(Field(column, BUCKET, transform.num_buckets))
    if isinstance(transform, TruncateTransform):
        return str(Field(column, TRUNCATE, transform.width))
    return str(Field(column, str(transform)))


def check_specs(table: Table) -> None:
    """Raises ReplicaError for partitions that this product does not write."""
    specs = table.specs().values()
    unknown = any(not is_known(each.transform) for each in table.spec().fields)
    if unknown or (len(specs) > 1 and any(each.fields for each in specs)):
        raise ReplicaError(
            f"{table.location()} has partitions that somebody else has made or changed: use engine"
            " = 'spark', or another folder"
        )


def read_layout(table: Table) -> Layout:
    """How a table wants its files, but for its partitions. An order that settings do not have is
    none."""
    schema, order = table.schema(), table.sort_order().fields
    names = tuple(schema.find_column_name(each.source_id) or "" for each in order)
    types = {field.name: str(plain_type(field.type)) for field in schema.as_arrow()}
    stated = Layout(sort_by=names if all(types.get(name) in SORTED for name in names) else ())
    size = int(table.properties.get(FILE_SIZE, stated.file_bytes)) >> 20
    same = build_order(stated, schema).fields == order
    return Layout(sort_by=stated.sort_by if same else (), file_megabytes=max(size, 1))


def make_arrangement(table: Table, stated: Layout | None) -> Arrangement:
    """How rows become files of a table: by its own partitions; by its own order, too, and size of
    files, where no layout is stated."""
    layout = stated or read_layout(table)
    spelled, fields = list_partitions(table), list(table.spec().fields)
    schema = table.schema()
    takes = [make_taker(each, schema) for each in fields]
    real = Layout(tuple(spelled), layout.sort_by, layout.file_megabytes)
    return Arrangement(real, lambda rows: [take(rows) for take in takes])


def is_known(transform: Transform[Any, Any]) -> bool:
    """Whether settings have a transform."""
    return isinstance(transform, BucketTransform | TruncateTransform) or str(transform) in MAKE


def make_taker(field: PartitionField, schema: Schema) -> Callable[[pa.Table], pa.Array]:
    """What makes of rows the values of a field."""
    source = schema.find_field(field.source_id)
    function = field.transform.transform(source.field_type)
    unit = str(field.transform)

    def take(rows: pa.Table) -> pa.Array:
        column = rows.column(source.name).combine_chunks()
        if unit in TIMES:
            # Few values remain to be transformed.
            column = pc.floor_temporal(column, unit=unit).cast(column.type)
        encoded = to_stored(column).dictionary_encode(null_encoding="encode")
        values = [wrap_long(function(value)) for value in encoded.dictionary.to_pylist()]
        type_ = pa.int64() if all(isinstance(v, int | None) for v in values) else None
        if isinstance(field.transform, IdentityTransform):
            type_ = encoded.dictionary.type
        return pa.array(values, type_).take(encoded.indices)

    return take


def wrap_long(value: Any) -> Any:
    """A value of a field as Iceberg's own Java has it: below the least number are the greatest, to
    which ``truncate`` can come."""
    return (value + 2**63) % 2**64 - 2**63 if type(value) is int else value


def to_stored(column: pa.Array) -> pa.Array:
    """Values as Iceberg keeps them: times are numbers."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def keep_sources(table: Table, fresh: Schema) -> Schema:
    """New columns of a table, of which those that its partitions and its order name keep their IDs.
    Raises ReplicaError where one is gone, or has another type."""
    before, fields = table.schema(), {each.name: each for each in fresh.fields}
    for kept in map(before.find_field, list_sources(table)):
        if kept.name not in fields or fields[kept.name].field_type != kept.field_type:
            raise ReplicaError(
                f"{table.location()} is partitioned or sorted by {kept.name}, which its table has"
                " no more, or with another type: use another folder, with another layout"
            )
        fields[kept.name] = kept
    return Schema(*fields.values())


def list_sources(table: Table) -> set[str]:
    """The columns that the partitions and the order of a table name."""
    sources = {each.source_id for each in table.spec().fields}
    sources |= {each.source_id for each in table.sort_order().fields}
    return {table.schema().find_field(source).name for source in sources}


def hide_partitions(metadata: TableMetadata) -> TableMetadata:
    """A table without partitions: pyiceberg would infer their values from statistics, which works
    for few transforms."""
    fresh = {"partition_specs": [UNPARTITIONED_PARTITION_SPEC], "default_spec_id": 0}
    return metadata.model_copy(update=fresh)
