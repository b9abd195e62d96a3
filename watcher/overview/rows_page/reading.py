"""What the page shows of a server, read by the client as any program reads it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.cloud.spanner_v1 import JsonObject
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.types import Type, TypeCode

from spanner_schema.model.schema import Dialect, Table
from spanner_schema.syntax.render import quote_column, quote_name
from watcher.model.errors import TableNotFoundError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import open_database
from watcher.tables.discovery import read_schema

ROWS_AT_ONCE = 100
TEXT_CHARACTERS_MAX = 300
NULL = "NULL"


@dataclass(frozen=True, slots=True)
class TableNames:
    """A database, its tables in the order of their names, and its DDL."""

    database: str
    tables: tuple[str, ...]
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsPart:
    """Some rows of a table in the order of its key, as text; None is NULL. ``columns`` are names
    with their types; ``more`` says whether rows follow."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool


class DatabasesReader:
    """Reads the databases of a server by the client."""

    def __init__(self, list_databases: Callable[[], Sequence[str]]) -> None:
        self._list_databases = list_databases

    def read_databases(self) -> tuple[TableNames, ...]:
        """Every database, in the order of their names."""
        return tuple(map(read_names, sorted(self._list_databases())))

    def read_rows(self, database: str, table: str, first: int) -> RowsPart:
        """The rows of a table from the ``first`` on. Raises TableNotFoundError."""
        if database not in self._list_databases():
            raise TableNotFoundError(f"there is no database {database}")
        opened = open_by_name(database)
        schema = read_schema(opened)
        found = schema.table(table)
        if found is None:
            raise TableNotFoundError(f"{database} has no table '{table}'")
        with opened.snapshot() as snapshot:
            results = snapshot.execute_sql(render_query(found, schema.dialect, first))
            rows = list(results)
        fields = results.fields
        shown = tuple(
            tuple(show(value, field.type_) for value, field in zip(row, fields, strict=True))
            for row in rows[:ROWS_AT_ONCE]
        )
        columns = tuple((field.name, name_type(field.type_)) for field in fields)
        return RowsPart(columns, shown, len(rows) > ROWS_AT_ONCE)


@cache
def open_by_name(name: str) -> Database:
    """A database by its resource name."""
    return open_database(DatabaseAddress.parse(name))


def read_names(name: str) -> TableNames:
    """What a database has."""
    database = open_by_name(name)
    schema = read_schema(database)
    tables = sorted(table.name for table in schema.tables)
    database.reload()
    return TableNames(name, tuple(tables), tuple(database.ddl_statements))


def render_query(table: Table, dialect: Dialect, first: int) -> str:
    """The rows from the ``first`` on, in the order of the key, and one more than are shown."""
    order = [
        quote_column(part.column, dialect) + (" DESC" if part.descending else "")
        for part in table.primary_key
    ]
    parts = ["SELECT * FROM", quote_name(table.name, dialect)]
    if order:
        parts += ["ORDER BY", ", ".join(order)]
    return " ".join([*parts, "LIMIT", str(ROWS_AT_ONCE + 1), "OFFSET", str(first)])


def name_type(type_: Type) -> str:
    """A type of the API as it is written."""
    if type_.code == TypeCode.ARRAY:
        return f"ARRAY<{name_type(type_.array_element_type)}>"
    return str(type_.proto_type_fqn or TypeCode(type_.code).name)


def show(value: Any, type_: Type) -> str | None:
    """A value as text, None for NULL; a long one ends early."""
    if value is None:
        return None
    text = write(value, type_)
    if len(text) <= TEXT_CHARACTERS_MAX:
        return text
    return f"{text[:TEXT_CHARACTERS_MAX]}… ({len(text):,} characters)"


def write(value: Any, type_: Type) -> str:
    """A value as SQL writes it, roughly, without quotes."""
    if type_.code == TypeCode.ARRAY:
        inner = type_.array_element_type
        parts = (NULL if each is None else write(each, inner) for each in value)
        return f"[{', '.join(parts)}]"
    if isinstance(value, JsonObject):
        return str(value.serialize())
    if isinstance(value, bool):
        return json.dumps(value)
    if type_.code in {TypeCode.BYTES, TypeCode.PROTO}:
        data = b64decode(value) if type_.code == TypeCode.BYTES else value
        return f"0x{data.hex()}"
    return value.rfc3339() if hasattr(value, "rfc3339") else str(value)
