"""JSON texts -> Spark's VARIANT, which Arrow knows as a struct of two binaries."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from pyspark.sql.types import VariantVal

from watcher.spanner.json_columns.objects import replace_items

VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
"""As Spark writes it: the metadata of the second field is how Spark distinguishes it from a
struct."""


def variant_type(type_: pa.DataType) -> pa.DataType:
    """A type of JSON texts, or of arrays of them, as VARIANT."""
    return pa.list_(VARIANT) if pa.types.is_list(type_) else VARIANT


def use_variants(shown: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema with VARIANT in place of the JSON texts of some columns."""
    return pa.schema([f.with_type(variant_type(f.type)) if f.name in names else f for f in shown])


def text_type(type_: pa.DataType) -> pa.DataType:
    """The type of the texts that a VARIANT, or an array of them, is made of; others as they are."""
    if pa.types.is_list(type_) and type_.value_type == VARIANT:
        return pa.list_(pa.string())
    return pa.string() if type_ == VARIANT else type_


def use_texts(shown: pa.Schema) -> pa.Schema:
    """A schema with JSON texts in place of VARIANT; the same one where there is none."""
    texts = pa.schema([field.with_type(text_type(field.type)) for field in shown])
    return shown if texts == shown else texts


def convert_to_variants(batch: pa.RecordBatch, shown: pa.Schema) -> pa.RecordBatch:
    """A batch with JSON texts as VARIANT where ``shown`` says so."""
    columns = [
        column if column.type == field.type else parse_variants(column)
        for column, field in zip(batch.columns, shown, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=shown)


def parse_variants(texts: pa.Array) -> pa.Array:
    """JSON texts, or arrays of them, as VARIANT. A JSON null is not NULL."""
    if pa.types.is_list(texts.type):
        return replace_items(texts, parse_variants(texts.flatten()))
    parsed = [VariantVal.parseJson(t) if t is not None else None for t in texts.to_pylist()]
    values = pa.array([b"" if v is None else v.value for v in parsed], pa.binary())
    metadata = pa.array([b"" if v is None else v.metadata for v in parsed], pa.binary())
    return pa.StructArray.from_arrays(
        [values, metadata], fields=list(VARIANT), mask=texts.is_null()
    )
