"""What change streams watch, and the SQLite tables and triggers that note its changes."""

from __future__ import annotations

import apsw

from emulator.storage.sqlite import PENDING, current_table
from emulator.values.sqlite_text import quote_name, quote_text
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import ChangeStream, Column, Schema, Table
from spanner_schema.syntax.placements import is_per_placement

CREATE_TABLES = (
    'CREATE TABLE IF NOT EXISTS "$mods" (number INTEGER PRIMARY KEY, "table" TEXT NOT NULL, '
    "kind TEXT NOT NULL, written TEXT, old TEXT, new TEXT)",
    'CREATE TABLE IF NOT EXISTS "$partitions" (number INTEGER PRIMARY KEY AUTOINCREMENT, '
    "stream TEXT NOT NULL, token TEXT NOT NULL UNIQUE, low INTEGER NOT NULL, "
    "high INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER, parents TEXT NOT NULL, "
    "placement TEXT NOT NULL DEFAULT '')",
    'CREATE TABLE IF NOT EXISTS "$records" (partition INTEGER NOT NULL, micros INTEGER NOT NULL, '
    "sequence INTEGER NOT NULL, data TEXT NOT NULL, "
    "PRIMARY KEY (partition, micros, sequence)) WITHOUT ROWID",
)
"""``$mods`` holds the changes of the transaction under way only; it is empty after every commit."""


def add_placements(connection: apsw.Connection) -> None:
    """Brings a file of an earlier version up to date, in which partitions have no placement."""
    columns = {row[1] for row in connection.execute('PRAGMA table_info("$partitions")')}
    if "placement" not in columns:
        connection.execute(
            "ALTER TABLE \"$partitions\" ADD COLUMN placement TEXT NOT NULL DEFAULT ''"
        )


def key_columns(table: Table) -> list[Column]:
    """The columns of the primary key, in key order."""
    columns = (table.column(part.column) for part in table.primary_key)
    return [column for column in columns if column is not None]


def columns_tracked_by(stream: ChangeStream, table: Table) -> tuple[Column, ...] | None:
    """The columns beside the key that a stream watches; None when it does not watch the table.

    Generated columns are not watched.
    """
    keys = {column.name for column in key_columns(table)}
    plain = tuple(
        c
        for c in table.columns
        if c.name not in keys
        and (c.generated is None or is_wrong(Wrong.STREAM_GENERATED_COLUMNS))
        and not (c.hidden and is_wrong(Wrong.STREAM_HIDDEN_COLUMNS))
    )
    if stream.for_all:
        return plain
    for watched in stream.watches:
        if watched.table.casefold() == table.name.casefold():
            if watched.columns is None:
                return plain
            names = {name.casefold() for name in watched.columns}
            return tuple(c for c in plain if c.name.casefold() in names)
    return None


def triggers(table: Table, schema: Schema) -> dict[str, str]:
    """The triggers that note a table's changes; none when nobody watches it.

    Replacing PENDING by the commit timestamp does not count as a change. A stream with functions of
    placements has to know where the rows of its tables are.
    """
    tells_places = table.placement_key is not None and any(
        map(is_per_placement, schema.change_streams)
    )
    watched = any(columns_tracked_by(each, table) is not None for each in schema.change_streams)
    if not watched and not tells_places:
        return {}
    texts: dict[str, str] = {}
    on = f"ON {current_table(table.name)}"
    stamp = f'NOT (OLD."$ts" = {PENDING} AND NEW."$ts" <> {PENDING})'
    into = (
        f'INSERT INTO "$mods" ("table", kind, written, old, new) VALUES ({quote_text(table.name)}'
    )
    old, new = image("OLD", table), image("NEW", table)
    bodies = {
        "INSERT": ("", f"{into}, 'INSERT', NULL, NULL, {new})"),
        "UPDATE": (
            f"WHEN {stamp}",
            f"{into}, 'UPDATE', taken_(NEW._rowid_), {old}, {new})",
        ),
        "DELETE": ("", f"{into}, 'DELETE', NULL, {old}, NULL)"),
    }
    for kind, (when, body) in bodies.items():
        name = quote_name(f"c${kind}${table.name}")
        texts[name] = f"CREATE TRIGGER {name} AFTER {kind} {on} {when} BEGIN {body}; END"
    for place, column in enumerate(table.columns):
        if column.generated is None:
            name = quote_name(f"w${place}${table.name}")
            texts[name] = (
                f"CREATE TRIGGER {name} BEFORE UPDATE OF {quote_name(column.name)} {on} "
                f"WHEN {stamp} BEGIN SELECT written_(OLD._rowid_, {place}); END"
            )
    return texts


def image(row: str, table: Table) -> str:
    """A row as a JSON array, in the order of its columns; BYTES and PROTO in hexadecimal."""
    values = ", ".join(value(f"{row}.{quote_name(c.name)}", c) for c in table.columns)
    return f"json_array({values})"


def value(text: str, column: Column) -> str:
    """One value of an image. SQLite writes no sign of a zero."""
    if column.type.code in {TypeCode.BYTES, TypeCode.PROTO}:
        return f"iif({text} IS NULL, NULL, hex({text}))"
    if column.type.code in {TypeCode.FLOAT32, TypeCode.FLOAT64}:
        return f"iif({text} = 0, json(zero_({text})), {text})"
    return text
