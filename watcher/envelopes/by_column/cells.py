"""Cells -> JSON texts in the form that an envelope writes: of a table's columns as Arrow keeps
them, and of a change stream as Spanner has sent them.

Spanner sends INT64 and NUMERIC as strings and BYTES as base64, in the one way in which they are
written here, too: a text that passes a check of the whole column is passed on. A column with
another text, or with a word in place of a number, is decoded and written value by value.
"""

from __future__ import annotations

import json
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.message import json_text
from watcher.envelopes.values import (
    CellStyle,
    Timestamps,
    count_since_1970,
    parse_finite,
    parse_json_cell,
)
from watcher.model.value_types import Form, describe_values
from watcher.spanner.json_columns.objects import COMPACT, NULL, join_lists
from watcher.spanner.json_columns.scalars import (
    format_numerics,
    format_timestamps,
    quote_strings,
    render_floats,
    render_scalars,
    wrap,
)
from watcher.spanner.json_values import decode_value
from watcher.spanner.results.columns import trim_scale

NUMERIC_TEXT = r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$"
BASE64_TEXT = (
    r"^([A-Za-z0-9+/]{4})*"
    r"([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
)
"""Base64 as it is written: with padding, and without bits that are in no byte."""


def render_cells(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """The JSON texts of a column as Arrow keeps it; of NULL, ``null``."""
    return pc.fill_null(render_values(column, type_, style), NULL)


def render_values(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """As ``render_cells``, where NULL stays NULL."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items = render_values(column.flatten(), type_.element, style)
        return join_lists(column, items, style.punctuation.comma)
    if type_.code.is_json and style.json_nested:
        return render_nested(column, style)
    if style.numeric_as_number and pa.types.is_decimal(column.type):
        return format_numerics(column)
    if style.bytes_as == "hex" and pa.types.is_binary(column.type):
        texts = [None if each is None else f'"{each.hex()}"' for each in column.to_pylist()]
        return pa.array(texts, pa.string())
    if style.timestamps != "iso" and type_.code is TypeCode.TIMESTAMP:
        return count_timestamps(column, style.timestamps)
    return quote_integers(render_scalars(column), type_, style)


def count_timestamps(column: pa.Array, timestamps: Timestamps) -> pa.Array:
    """TIMESTAMPs, Arrow's or texts, as numbers since 1970."""
    values = column if pa.types.is_string(column.type) else format_timestamps(column)
    distinct = pc.dictionary_encode(values)
    counted = [str(count_since_1970(text, timestamps)) for text in distinct.dictionary.to_pylist()]
    return pa.array(counted, pa.string()).take(distinct.indices)


def quote_integers(texts: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """The texts of INT64 in quotes, where an envelope wants them so."""
    as_text = type_.code is TypeCode.INT64 and style.int64_as_text
    return wrap(texts, '"', '"') if as_text else texts


def render_nested(column: pa.Array, style: CellStyle) -> pa.Array:
    """JSON columns as JSON. Spanner writes them compactly: then all of them are as they should be,
    which one pass over the whole column shows. Raises EnvelopeError for what is not JSON."""
    known = column.drop_null()
    joined = f"[{','.join(known.to_pylist())}]"
    try:
        parsed = json.loads(joined, parse_float=parse_finite, parse_constant=parse_finite)
    except ValueError:
        parsed = None
    is_compact = style.punctuation == COMPACT and parsed is not None
    if is_compact and len(parsed) == len(known) and json_text(parsed) == joined:
        return column
    texts = (None if t is None else style.dump(parse_json_cell(t)) for t in column.to_pylist())
    return pa.array(texts, pa.string())


def render_member(
    objects: SentObjects, name: str, type_: Type, style: CellStyle
) -> pa.Array | None:
    """The cells of a column as JSON texts; NULL where an object does not have the column. None if
    none has."""
    there = objects.find_having(name)
    if not pc.any(there).as_py():
        return None
    texts = pc.fill_null(render_sent(objects.get_sent(name), type_, style), NULL)
    return texts if pc.all(there).as_py() else pc.if_else(there, texts, None)


def render_sent(sent: pa.Array | list[object], type_: Type, style: CellStyle) -> pa.Array:
    """Values as they were sent as JSON texts; NULL stays NULL."""
    texts = pass_on(sent, type_, style) if isinstance(sent, pa.Array) else None
    if texts is not None:
        return texts
    write = style.choose_writer(type_)
    values = sent.to_pylist() if isinstance(sent, pa.Array) else sent
    each = (None if value is None else write(decode_value(value, type_)) for value in values)
    return pa.array(each, pa.string())


def pass_on(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array | None:
    """The JSON texts of a column as it was sent; None if a value is written in another way."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items = pass_on(column.flatten(), type_.element, style)
        return None if items is None else join_lists(column, items, style.punctuation.comma)
    form = describe_values(type_).form
    match form:
        case Form.BOOL:
            return column.cast(pa.string())
        case Form.FLOAT32 | Form.FLOAT64:
            return render_floats(column)
        case Form.INTEGER:
            same = is_written_so(column, pa.int64())
            return quote_integers(column, type_, style) if same else None
        case Form.DATE:
            return quote_plain(column, pa.date32())
        case Form.NUMERIC if style.numeric_as_number:
            return column if is_written_so(column, NUMERIC_TEXT) else None
        case Form.NUMERIC:
            return quote_plain(column, NUMERIC_TEXT)
        case Form.BYTES:
            return quote_plain(column, BASE64_TEXT) if style.bytes_as == "base64" else None
        case Form.JSON:
            return render_nested(column, style) if style.json_nested else quote_strings(column)
        case Form.WIDE_NUMERIC:
            return None if style.numeric_as_number else wrap(trim_scale(column), '"', '"')
        case Form.TIMESTAMP:
            return quote_strings(column) if style.timestamps == "iso" else None
        case Form.TEXT:
            return quote_strings(column)
    assert_never(form)


def quote_plain(column: pa.Array, check: pa.DataType | str) -> pa.Array | None:
    """Texts that nothing has to be escaped in; None if one is written in another way."""
    return wrap(column, '"', '"') if is_written_so(column, check) else None


def is_written_so(column: pa.Array, check: pa.DataType | str) -> bool:
    """Whether every text of a column is what its value is written as again: ``check`` is a type
    that Arrow reads and writes, or the pattern of the one form."""
    if isinstance(check, str):
        same = pc.match_substring_regex(column, check)
    else:
        try:
            same = pc.equal(column.cast(check).cast(pa.string()), column)
        except pa.ArrowInvalid:
            return False
    return pc.all(same).as_py() is not False
