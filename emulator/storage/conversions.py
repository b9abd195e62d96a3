"""The values of a column whose type changes in place: STRING and BYTES, alone and in arrays."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import apsw

from emulator.errors import SpannerError, failed_precondition
from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column, Table


def string_array_to_bytes(*arguments: apsw.SQLiteValue) -> str | None:
    """An array of STRING as one of BYTES: each element in base64."""
    return convert_elements(arguments[0], lambda text: base64.b64encode(text.encode()).decode())


def bytes_array_to_string(*arguments: apsw.SQLiteValue) -> str | None:
    """An array of BYTES as one of STRING. Raises UnicodeDecodeError."""
    return convert_elements(arguments[0], lambda text: base64.b64decode(text).decode())


def convert_elements(value: apsw.SQLiteValue, convert: Callable[[str], str]) -> str | None:
    """An array with its elements converted; NULL stays."""
    if not isinstance(value, str):
        return None
    items = [None if item is None else convert(item) for item in json.loads(value)]
    return json.dumps(items, ensure_ascii=False, separators=(",", ":"))


CONVERSIONS: Mapping[tuple[str, str], str] = {
    ("STRING", "BYTES"): "CAST({} AS BLOB)",
    ("BYTES", "STRING"): "CAST({} AS TEXT)",
    ("ARRAY<STRING>", "ARRAY<BYTES>"): "string_array_to_bytes_({})",
    ("ARRAY<BYTES>", "ARRAY<STRING>"): "bytes_array_to_string_({})",
}
"""From one kind of values to another as SQLite text."""


def register_conversions(connection: apsw.Connection) -> None:
    """Makes the functions of ``CONVERSIONS`` known to a connection."""
    connection.create_scalar_function("string_array_to_bytes_", string_array_to_bytes, 1)
    connection.create_scalar_function("bytes_array_to_string_", bytes_array_to_string, 1)


def refuse_invalid_text(connection: apsw.Connection, table: Table, old: Column, new: Type) -> None:
    """BYTES that become a STRING must be UTF-8 in every row. Raises FAILED_PRECONDITION."""
    if code_of(old.type) is not TypeCode.BYTES or code_of(new) is not TypeCode.STRING:
        return
    keys = ", ".join(quote_name(part.column) for part in table.primary_key)
    sql = (
        f"SELECT {quote_name(old.name)}{', ' if keys else ''}{keys} FROM "
        f"{current_table(table.name)} WHERE {quote_name(old.name)} IS NOT NULL"
    )
    # An open cursor would hinder the next change of the schema.
    with closing(connection.execute(sql)) as rows:
        for value, *key in rows:
            if not all(is_text(part) for part in list_bytes(value)):
                raise invalid_text(old, key)


def code_of(type_: Type) -> TypeCode:
    """The code of a type, or of an array's elements."""
    return type_.element.code if type_.element is not None else type_.code


def list_bytes(value: apsw.SQLiteValue) -> Iterator[bytes]:
    """A value of BYTES, or those of an array."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield from (base64.b64decode(item) for item in json.loads(value) if item is not None)


def is_text(value: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def invalid_text(column: Column, key: list[apsw.SQLiteValue]) -> SpannerError:
    """The refusal that names the row."""
    written = ", ".join(repr(part) if isinstance(part, bytes) else str(part) for part in key)
    return failed_precondition(
        f"Alteration of column {column.name} is not allowed because it has an invalid UTF-8"
        f" character at key: {{{written}}}"
    )
