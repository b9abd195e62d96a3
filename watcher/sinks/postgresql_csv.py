"""Arrow columns as CSV that PostgreSQL's COPY reads, by vectors."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from watcher.spanner.json_columns.objects import replace_items

HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
"""The two digits of each byte."""
OPTIONS = csv.WriteOptions(include_header=False, quoting_style="needed")
"""Arrow quotes every text, also an empty one, and nothing else: NULL is what is empty."""


def write_csv(rows: pa.RecordBatch) -> bytes:
    """Rows as CSV without a header."""
    columns = [encode_column(column) for column in rows.columns]
    out = BytesIO()
    csv.write_csv(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), out, OPTIONS)
    return out.getvalue()


def encode_column(column: pa.Array) -> pa.Array:
    """A column as CSV writes it: numbers as they are, the rest as PostgreSQL's texts."""
    if pa.types.is_list(column.type):
        return encode_lists(column)
    if pa.types.is_binary(column.type):
        return encode_bytes(column)
    if pa.types.is_timestamp(column.type):
        return encode_timestamps(column)
    if pa.types.is_integer(column.type):
        return column
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def encode_timestamps(column: pa.Array) -> pa.Array:
    """Moments in UTC. Arrow writes those with a time zone thirty times as slowly."""
    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(texts, "Z", "")


def encode_bytes(column: pa.Array) -> pa.Array:
    r"""BYTES as ``\x`` and hexadecimal digits."""
    filled = pc.fill_null(column, b"")
    _, ends, data = filled.buffers()
    offsets = np.frombuffer(ends, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    digits = HEX[np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]]
    starts = ((offsets - offsets[0]) * 2).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(filled), pa.py_buffer(starts), pa.py_buffer(digits))
    marked = pc.binary_join_element_wise("\\x", texts, "")
    return pc.if_else(column.is_valid(), marked, pa.scalar(None, pa.string()))


def encode_lists(column: pa.Array) -> pa.Array:
    """ARRAYs as PostgreSQL's literals: every element in quotes, but for NULL."""
    elements = encode_column(column.flatten()).cast(pa.string())
    for special in ("\\", '"'):
        elements = pc.replace_substring(elements, special, f"\\{special}")
    quoted = pc.fill_null(pc.binary_join_element_wise('"', elements, '"', ""), "NULL")
    joined = pc.binary_join(replace_items(column, quoted), ",")
    return pc.binary_join_element_wise("{", joined, "}", "")
