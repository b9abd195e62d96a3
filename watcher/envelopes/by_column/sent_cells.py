"""The JSON objects of a change stream, column by column -> JSON texts.

Spanner sends INT64 and NUMERIC as strings and BYTES as base64, in the one way in which they are
written here, too: a text that passes a check of the whole column is passed on. A column with
another text, or with a word in place of a number, is decoded and written value by value.
"""

from __future__ import annotations

import json
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from ddl.schema import Type, TypeCode
from watcher.captures.change_stream.rows import decode_cell
from watcher.envelopes.by_column.cells import CellStyle, quote_integers, render_nested
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.json_columns.objects import NULL, join_lists
from watcher.json_columns.scalars import render_floats
from watcher.json_columns.strings import quote_strings, wrap
from watcher.spanner.results.columns import trim_scale

NUMBERS = frozenset({TypeCode.FLOAT32, TypeCode.FLOAT64})
NUMERIC_TEXT = r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$"
BASE64_TEXT = (
    r"^([A-Za-z0-9+/]{4})*"
    r"([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
)
"""Base64 as it is written: with padding, and without bits that are in no byte."""


def render_sent_cells(objects: SentObjects, name: str, type_: Type, style: CellStyle) -> pa.Array:
    """The cells of a column as JSON texts; NULL where an object does not have the column."""
    members = objects.find_members(name)
    texts = pc.fill_null(render_sent_values(members.values, type_, style), NULL)
    return texts if members.places is None else texts.take(members.places)


def render_sent_values(values: list[object], type_: Type, style: CellStyle) -> pa.Array:
    """Values of JSON as JSON texts; NULL stays NULL."""
    column = convert_sent_values(values, type_)
    texts = None if column is None else pass_on(column, type_, style)
    if texts is not None:
        return texts
    encoder = json.JSONEncoder(
        ensure_ascii=False, separators=(style.punctuation.comma, style.punctuation.colon)
    )
    each = (
        None
        if v is None
        else encoder.encode(style.format.format_cell(decode_cell(v, type_), type_))
        for v in values
    )
    return pa.array(each, pa.string())


def convert_sent_values(values: list[object], type_: Type) -> pa.Array | None:
    """Values as they were sent, as an Arrow column; None if not all are of their usual kind."""
    target = choose_sent_type(type_)
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_list(target):
        if not kinds <= {list}:
            return None
        kinds = set(map(type, chain.from_iterable(v for v in values if v))) - {type(None)}  # type: ignore[arg-type]
    if not kinds <= SENT_KINDS[leaf_type(target)]:
        return None
    try:
        return pa.array(values, target)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None


SENT_KINDS: dict[pa.DataType, set[type]] = {
    pa.bool_(): {bool},
    pa.float64(): {int, float},
    pa.string(): {str},
}


def leaf_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values in lists, or the type itself."""
    return leaf_type(type_.value_type) if pa.types.is_list(type_) else type_


def choose_sent_type(type_: Type) -> pa.DataType:
    """The Arrow type of the values of JSON that a column's values are sent as."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(choose_sent_type(type_.element))
    if type_.code is TypeCode.BOOL:
        return pa.bool_()
    return pa.float64() if type_.code in NUMBERS else pa.string()


def pass_on(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array | None:
    """The JSON texts of a column as it was sent; None if a value is written in another way."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items = pass_on(column.flatten(), type_.element, style)
        return None if items is None else join_lists(column, items, style.punctuation.comma)
    if type_.code is TypeCode.BOOL:
        return column.cast(pa.string())
    if type_.code in NUMBERS:
        return render_floats(column)
    if type_.code in CHECKS:
        if not is_written_so(column, type_.code):
            return None
        integer = type_.code in (TypeCode.INT64, TypeCode.ENUM)
        return quote_integers(column, type_, style) if integer else wrap(column, '"', '"')
    if type_.code.is_json and style.format.json_nested:
        return render_nested(column)
    if type_.code is TypeCode.PG_NUMERIC:
        return wrap(trim_scale(column), '"', '"')
    return quote_strings(column)


def is_written_so(column: pa.Array, code: TypeCode) -> bool:
    """Whether every text of a column is what its value is written as again."""
    check = CHECKS[code]
    if isinstance(check, str):
        same = pc.match_substring_regex(column, check)
    else:
        try:
            same = pc.equal(column.cast(check).cast(pa.string()), column)
        except pa.ArrowInvalid:
            return False
    return pc.all(same).as_py() is not False


CHECKS: dict[TypeCode, pa.DataType | str] = {
    TypeCode.INT64: pa.int64(),
    TypeCode.ENUM: pa.int64(),
    TypeCode.DATE: pa.date32(),
    TypeCode.NUMERIC: NUMERIC_TEXT,
    TypeCode.BYTES: BASE64_TEXT,
    TypeCode.PROTO: BASE64_TEXT,
}
"""Types whose texts have one form: it is one that Arrow reads and writes again, or a pattern."""
