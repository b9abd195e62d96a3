"""Columns as a query shows them, also those that had another type when they were written."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from watcher.spanner.results.timestamp_columns import parse_key_timestamps


def convert_column(
    column: pa.Array, table: str, field: pa.Field, of_timestamps: bool = True
) -> pa.Array:
    """A column as a query shows it. Captures give TIMESTAMPs of a key as text, unless they were
    texts when they were written.

    A column that had another type is converted as Spanner does where it can be altered: between
    STRING and BYTES. One that cannot was another column of that name: NULLs.
    """
    target = field.type
    if of_timestamps and pa.types.is_timestamp(target) and pa.types.is_string(column.type):
        return parse_key_timestamps(column, table, field.name)
    if have_one_kind(column.type, target):
        return column.cast(target)
    if not have_one_kind(*map(ignore_encoding, (column.type, target))):
        return pa.nulls(len(column), target)
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return pa.array(map(decode_or_null, column.to_pylist()), target)


def have_one_kind(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether two types are the same but for names and units."""
    if pa.types.is_list(first) and pa.types.is_list(second):
        return have_one_kind(first.value_type, second.value_type)
    return bool(first.id == second.id)


def ignore_encoding(type_: pa.DataType) -> pa.DataType:
    """STRING as BYTES."""
    if pa.types.is_list(type_):
        return pa.list_(ignore_encoding(type_.value_type))
    return pa.binary() if pa.types.is_string(type_) else type_


def decode_or_null(value: object) -> object:
    """BYTES as a STRING; NULL for what is none."""
    if isinstance(value, list):
        return [decode_or_null(each) for each in value]
    with suppress(UnicodeDecodeError):
        return value.decode() if isinstance(value, bytes) else value
    return None
