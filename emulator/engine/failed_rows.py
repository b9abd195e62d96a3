"""The row at which a statement failed, for errors that name it: SQLite names the constraint alone.

Such errors are rare, and a statement that runs pays nothing for them. One that fails is run once
more, with triggers that note the rows that it comes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import apsw

from emulator.engine.refusals import (
    check_name,
    constraint_failed,
    format_values,
    names_index,
    null_written,
    place_of_conflict,
    row_exists,
    unique_index_failed,
)
from emulator.engine.write_plans import Row, WritePlan, unique_indexes
from emulator.errors import SpannerError
from emulator.storage.sqlite import current_table
from emulator.values.requests import Stored
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Column, Index, Table

Values: TypeAlias = "Row | Mapping[str, Stored]"
UNIQUE, CHECK, NOT_NULL = (
    f"{kind} constraint failed: " for kind in ("UNIQUE", "CHECK", "NOT NULL")
)


def write_row(connection: apsw.Connection, plan: WritePlan, sql: str, values: Row) -> Row | None:
    """Runs a statement that writes a row; what it returns. Refusals name the row."""
    try:
        row: Row | None = connection.execute(sql, values).fetchone()
    except apsw.ConstraintError as error:
        refuse_row(connection, plan, error, sql, values)
        raise
    return row


def refuse_row(
    connection: apsw.Connection, plan: WritePlan, error: apsw.Error, sql: str, values: Row
) -> None:
    """Raises the refusal of a row of a plan, where it names more than SQLite's error does."""
    refuse_null(plan.table, error, plan.columns)
    unique = unique_indexes(plan.schema, plan.table)
    refuse_statement(connection, plan.table, unique, error, sql, values)


def refuse_null(table: Table, error: apsw.Error, written: Sequence[Column] | None = None) -> None:
    """Raises the refusal of a NULL that a statement writes into one of these columns, or into any;
    a column that an INSERT leaves out is refused in other words."""
    if not str(error).startswith(NOT_NULL):
        return
    name = str(error).rpartition(".")[2].casefold()
    for column in table.columns if written is None else written:
        if column.name.casefold() == name:
            raise null_written(table.name, column.name) from error


def refuse_statement(
    connection: apsw.Connection,
    table: Table,
    unique: Sequence[Index],
    error: apsw.Error,
    sql: str,
    values: Values,
) -> None:
    """Raises the refusal that names the row at which a statement failed, and the row that it
    conflicts with. Returns where the row makes no difference, or fits when it is tried again.

    ``unique`` are the unique indexes of the table.
    """
    kind = next((each for each in (UNIQUE, CHECK) if str(error).startswith(each)), None)
    if kind is None:
        return
    connection.execute("SAVEPOINT again")
    try:
        rows = list_rows(connection, table, sql, values)
        refusal = explain(connection, table, unique, rows, str(error)) if rows else None
    finally:
        connection.execute("ROLLBACK TO again")
        connection.execute("RELEASE again")
    if refusal is not None:
        raise refusal from error


def list_rows(
    connection: apsw.Connection, table: Table, sql: str, values: Values
) -> list[dict[str, Stored]]:
    """The rows that a statement comes to, the last of which it fails at; none where it runs."""
    rows: list[dict[str, Stored]] = []
    names = [column.name.casefold() for column in table.columns]

    def note(*row: Stored) -> None:
        rows.append(dict(zip(names, row, strict=True)))

    new = ", ".join(f"NEW.{quote_name(column.name)}" for column in table.columns)
    connection.create_scalar_function("note_", note)
    for event in ("INSERT", "UPDATE"):
        connection.execute(
            f'CREATE TEMP TRIGGER "note{event}" BEFORE {event} ON main.{current_table(table.name)} '
            f"BEGIN SELECT note_({new}); END"
        )
    try:
        connection.execute(sql, values).fetchall()
    except apsw.ConstraintError:
        return rows
    return []


def explain(
    connection: apsw.Connection,
    table: Table,
    unique: Sequence[Index],
    rows: Sequence[Mapping[str, Stored]],
    message: str,
) -> SpannerError | None:
    """The refusal of the last of these rows; None where SQLite's message says as much."""
    key = key_of_row(table, rows[-1])
    if message.startswith(CHECK):
        return explain_check(table, message.removeprefix(CHECK), key)
    rest = message.removeprefix(UNIQUE)
    if names_index(rest, Index(table.name, table.name, table.primary_key)):
        return row_exists(table, key)
    index = next((each for each in unique if names_index(rest, each)), None)
    other = None if index is None else find_conflict(connection, table, index, rows)
    if index is None or other is None:
        return None
    return unique_index_failed(index.name, place_of_conflict(table, index, rows[-1], other))


def explain_check(table: Table, constraint: str, key: Row) -> SpannerError | None:
    """The refusal by a CHECK constraint, None where a limit of ours is a constraint of SQLite."""
    kind, _, name = constraint.partition("$")
    if kind != "check":
        return None
    values = format_values(table, [part.column for part in table.primary_key], key)
    return constraint_failed(check_name(table, name.rpartition("$")[2]), f" for key ({values})")


def find_conflict(
    connection: apsw.Connection,
    table: Table,
    index: Index,
    rows: Sequence[Mapping[str, Stored]],
) -> Row | None:
    """The key of the row that has the same values in an index: one that the statement came to
    before, or one that was there."""
    *before, last = rows
    parts = [part.column.casefold() for part in index.parts]
    values = [last[name] for name in parts]
    key = key_of_row(table, last)
    for row in reversed(before):
        if [row[name] for name in parts] == values and key_of_row(table, row) != key:
            return key_of_row(table, row)
    columns = [part.column for part in table.primary_key]
    same = " AND ".join(f"{quote_name(name)} IS ?" for name in parts)
    itself = " AND ".join(f"{quote_name(name)} IS ?" for name in columns)
    found: Row | None = connection.execute(
        f"SELECT {', '.join(map(quote_name, columns))} FROM {current_table(table.name)} "
        f"WHERE {same} AND NOT ({itself}) LIMIT 1",
        (*values, *key),
    ).fetchone()
    return found


def key_of_row(table: Table, row: Mapping[str, Stored]) -> Row:
    """The primary key of a row."""
    return tuple(row[part.column.casefold()] for part in table.primary_key)
