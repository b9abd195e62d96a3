"""The JSON objects of a change stream, column by column -> JSON texts.

Spanner sends INT64 and NUMERIC as strings and BYTES as base64, in the one way in which they are
written here, too: a text that passes a check of the whole column is passed on. A column with
another text, or with a word in place of a number, is decoded and written value by value.
"""

from __future__ import annotations

from itertools import chain
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from ddl.model.schema import Type, TypeCode
from watcher.captures.change_stream.rows import decode_cell
from watcher.envelopes.by_column.cells import quote_integers, render_nested
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.values import CellStyle
from watcher.json_columns.objects import NULL, join_lists
from watcher.json_columns.scalars import render_floats
from watcher.json_columns.strings import quote_strings, wrap
from watcher.model.value_types import FLOATS, Form, describe_values
from watcher.spanner.results.columns import trim_scale

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
    write = style.choose_writer(type_)
    each = (None if value is None else write(decode_cell(value, type_)) for value in values)
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
    form = describe_values(type_).form
    if form is Form.BOOL:
        return pa.bool_()
    return pa.float64() if form in FLOATS else pa.string()


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
        case Form.NUMERIC:
            return quote_plain(column, NUMERIC_TEXT)
        case Form.BYTES:
            return quote_plain(column, BASE64_TEXT)
        case Form.JSON:
            return render_nested(column) if style.format.json_nested else quote_strings(column)
        case Form.WIDE_NUMERIC:
            return wrap(trim_scale(column), '"', '"')
        case Form.TEXT | Form.TIMESTAMP:
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
