"""Columns of Spanner's scalar types, as Arrow keeps them -> JSON texts.

The text of each value is that of ``captures.changes.to_json`` and ``json``: BYTES as base64, DATE
as ISO 8601, NUMERIC as a string without trailing zeros, NaN and the infinities as words; texts are
escaped as with ``ensure_ascii=False``.
"""

from __future__ import annotations

import json
import math
from binascii import b2a_base64
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.spanner.results.base64_column import LETTERS, OCTETS, PAD

try:
    from pybase64 import b64encode as encode_octets
except ModuleNotFoundError:  # Python's own gives the same, up to three times as slowly
    encode_octets = partial(b2a_base64, newline=False)

DATE_LENGTH = len("YYYY-MM-DD")
BACKSLASH, QUOTE, FIRST_PRINTABLE = ord("\\"), ord('"'), ord(" ")
PLAIN_MIN, PLAIN_MAX = 1e-4, 1e10
"""Between them Arrow and Python write the same digits of a double, without an exponent."""
FILLING = pa.Array.from_buffers(
    pa.binary(), 3, [None, pa.py_buffer(np.array([0, 0, 2, 3], np.int32)), pa.py_buffer(b"\0\0\0")]
)
"""What makes whole groups of a value, by the bytes of its last group: none, two, one. Of Python
objects, pyarrow would import pandas in every worker to make it."""


def render_scalars(column: pa.Array) -> pa.Array:
    """The JSON texts of a column's values; NULL stays NULL. Raises TypeError for another type."""
    type_, types = column.type, pa.types
    if types.is_string(type_):
        return quote_strings(column)
    if types.is_integer(type_) or types.is_boolean(type_):
        return column.cast(pa.string())
    if types.is_floating(type_):
        return render_floats(column.cast(pa.float64()))
    if types.is_decimal(type_):
        return wrap(format_numerics(column), '"', '"')
    if types.is_binary(type_):
        return wrap(encode_base64(column), '"', '"')
    if types.is_date(type_):
        return wrap(column.cast(pa.string()), '"', '"')
    if types.is_timestamp(type_):
        return wrap(format_timestamps(column), '"', '"')
    raise TypeError(f"a cell cannot be a {type_}")


def quote_strings(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings; NULL stays NULL."""
    for character in find_escaped(texts):
        escaped = json.dumps(character)[1:-1]
        texts = pc.replace_substring(texts, character, escaped)
    return wrap(texts, '"', '"')


def find_escaped(texts: pa.Array) -> list[str]:
    """The characters of a column that JSON escapes, the backslash first: escapes contain it."""
    content = texts.buffers()[2]
    if content is None:
        return []
    data = np.frombuffer(content, np.uint8)
    found = [chr(code) for code in (BACKSLASH, QUOTE) if (data == code).any()]
    if data.size and data.min() < FIRST_PRINTABLE:
        found += map(chr, np.unique(data[data < FIRST_PRINTABLE]).tolist())
    return found


def wrap(texts: pa.Array, before: str, after: str) -> pa.Array:
    """Texts between two others; NULL stays NULL."""
    return pc.binary_join_element_wise(before, texts, after, "")


def render_floats(column: pa.Array) -> pa.Array:
    """Doubles as Python writes them: 1.0, 1e-05; NaN and the infinities as words in quotes."""
    values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    sizes = np.abs(values)
    plain = ((sizes >= PLAIN_MIN) & (sizes < PLAIN_MAX)) | (sizes == 0)
    texts = column.cast(pa.string())
    whole = plain & (values == np.where(plain, np.trunc(values), 0))
    if whole.any():
        texts = pc.if_else(pa.array(whole), wrap(texts, "", ".0"), texts)
    if plain.all():
        return texts
    others = pa.array([render_float(value) for value in values[~plain].tolist()], pa.string())
    return pc.replace_with_mask(texts, pa.array(~plain), others)


def render_float(value: float) -> str:
    """One double as JSON."""
    return repr(value) if math.isfinite(value) else f'"{json.dumps(value)}"'


def format_numerics(column: pa.Array) -> pa.Array:
    """NUMERIC with all its digits, without trailing zeros. Spanner: at most nine of a fraction."""
    texts = column.cast(pa.string())
    tiny = pc.fill_null(pc.match_substring(texts, "E"), False)
    if column.type.scale > 0:
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    if not pc.any(tiny).as_py():
        return texts
    # Below a millionth, and of zero, Arrow writes an exponent.
    distinct = column.filter(tiny).dictionary_encode()
    formatted = [format_numeric(value) for value in distinct.dictionary.to_pylist()]
    return pc.replace_with_mask(
        texts, tiny, pa.array(formatted, pa.string()).take(distinct.indices)
    )


def format_numeric(value: Decimal) -> str:
    """A NUMERIC as Spanner writes it: all its digits, without trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_timestamps(column: pa.Array) -> pa.Array:
    """Timestamps in RFC 3339, as ``watcher.spanner.timestamps.format_timestamp`` writes them."""
    # Without the time zone first: with one, Arrow looks it up for each value.
    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    return wrap(pc.binary_replace_slice(texts, DATE_LENGTH, DATE_LENGTH + 1, "T"), "", "Z")


def encode_base64(column: pa.Array) -> pa.Array:
    """The base64 texts of binary values; NULL stays NULL."""
    if not len(column):
        return column.cast(pa.string())
    rest = pc.fill_null(pc.binary_length(column), 0).to_numpy() % OCTETS
    filling = FILLING.take(pa.array(rest))
    # Values of whole groups are one value: each gets letters of its own, and NULL none.
    filled = pc.binary_join_element_wise(
        column, filling, b"", null_handling="replace", null_replacement=""
    )
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[: len(column) + 1]
    ends = offsets // OCTETS * LETTERS
    letters = np.frombuffer(encode_octets(filled.buffers()[2] or b""), np.uint8).copy()
    letters[ends[1:][rest > 0] - 1] = PAD
    letters[ends[1:][rest == 1] - 2] = PAD
    texts = pa.StringArray.from_buffers(len(column), pa.py_buffer(ends), pa.py_buffer(letters))
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts
