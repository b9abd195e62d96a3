"""Existing values of columns that become messages or enums, or whose types change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import apsw

from emulator.errors import SpannerError, failed_precondition
from emulator.storage.sqlite import current_table
from emulator.values.forms import bytes_of
from emulator.values.protos import ProtoTypes, types_of
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column, Schema, Table

Refuse = Callable[[object], str | None]
"""What is wrong with a value; None if nothing is."""


def refuse_invalid_values(connection: apsw.Connection, before: Schema, after: Schema) -> None:
    """Raises FAILED_PRECONDITION for a row whose value does not fit the new type of its column."""
    altered = before.proto_descriptors != after.proto_descriptors
    for table in after.tables:
        columns = [column for column in table.columns if named(column).proto_name is not None]
        old_table = before.table(table.name) if columns else None
        for column in columns if old_table is not None else ():
            old = old_table.column(column.name) if old_table is not None else None
            if old is None:
                continue
            enum_changed = altered and named(column).code is TypeCode.ENUM
            if old.type != column.type or enum_changed:
                refuse_rows(connection, table, old, refusal_of(column, types_of(after)))


def named(column: Column) -> Type:
    """The type of a column, or of the elements of its array."""
    return column.type.element or column.type


def refusal_of(column: Column, types: ProtoTypes) -> Refuse:
    """How the values of a column are judged."""
    name = named(column).proto_name or ""

    def refuse_number(value: object) -> str | None:
        if types.holds(name, int(str(value))):
            return None
        return f"type {name} cannot be set to {value}"

    def refuse_bytes(value: object) -> str | None:
        try:
            types.parse(name, bytes_of(value))
        except ValueError as error:
            return str(error)
        return None

    return refuse_number if named(column).code is TypeCode.ENUM else refuse_bytes


def refuse_rows(connection: apsw.Connection, table: Table, column: Column, refuse: Refuse) -> None:
    """Judges every value of a column."""
    names = [quote_name(each) for each in (column.name, *(p.column for p in table.primary_key))]
    sql = f"SELECT {', '.join(names)} FROM {current_table(table.name)}"
    with closing(connection.execute(sql)) as rows:
        for value, *key in rows:
            for item in list_values(value, is_array=column.type.element is not None):
                problem = refuse(item)
                if problem is not None:
                    raise invalid_value(column, key, problem)


def list_values(value: apsw.SQLiteValue, *, is_array: bool) -> Iterator[object]:
    """A value, or those of an array, without NULL."""
    items = json.loads(str(value)) if is_array and value is not None else [value]
    yield from (item for item in items if item is not None)


def invalid_value(column: Column, key: list[apsw.SQLiteValue], problem: str) -> SpannerError:
    """The refusal that names the row."""
    written = ", ".join(repr(part) if isinstance(part, bytes) else str(part) for part in key)
    return failed_precondition(
        f"Validation on column {column.name} failed at key {{{written}}} because {problem}"
    )
