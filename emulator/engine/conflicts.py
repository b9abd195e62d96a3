"""INSERT ... ON CONFLICT: the row that is there already, and what is done with it."""

from __future__ import annotations

import apsw

from emulator.engine.write_plans import Row, WritePlan
from emulator.errors import unimplemented
from emulator.sql.statements import Bindings, Insert, OnConflict, Update
from emulator.storage.sqlite import current_table
from emulator.values.requests import Stored
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Table


def find_conflict(
    connection: apsw.Connection, plan: WritePlan, conflict: OnConflict, row: Row
) -> dict[str, Stored] | None:
    """The key, as ``:key_<place>``, of the row that has the same values; None where none has."""
    given = {c.name.casefold(): value for c, value in zip(plan.columns, row, strict=True)}
    key = ", ".join(quote_name(part.column) for part in plan.table.primary_key)
    for columns in conflict.keys:
        match = " AND ".join(f"{quote_name(name)} IS ?" for name in columns)
        values = [value_of(plan, given, name) for name in columns]
        sql = f"SELECT {key} FROM {current_table(plan.table.name)} WHERE {match} LIMIT 1"
        found = connection.execute(sql, values).fetchone()
        if found is not None:
            return {f"key_{place}": value for place, value in enumerate(found)}
    return None


def value_of(plan: WritePlan, given: dict[str, Stored], name: str) -> Stored:
    """A value of the new row; NULL for a column that it leaves out."""
    if name.casefold() in given:
        return given[name.casefold()]
    column = plan.table.column(name)
    if column is not None and (column.default or column.generated or column.identity):
        raise unimplemented(f"ON CONFLICT with the computed column {name}")
    return None


def excluded_values(plan: WritePlan, row: Row) -> dict[str, Stored]:
    """The new row as ``:excluded_<place>``, the places being those of the table's columns."""
    given = {c.name.casefold(): value for c, value in zip(plan.columns, row, strict=True)}
    return {
        f"excluded_{place}": given.get(column.name.casefold())
        for place, column in enumerate(plan.table.columns)
    }


def update_of_conflict(statement: Insert, table: Table) -> Update:
    """DO UPDATE of the row with the key ``:key_<place>``."""
    conflict = statement.on_conflict
    assert conflict is not None
    assert conflict.assignments is not None
    alias = quote_name(table.name)
    match = " AND ".join(
        f"{alias}.{quote_name(part.column)} IS :key_{place}"
        for place, part in enumerate(table.primary_key)
    )
    return Update(
        table.name,
        table.name,
        conflict.assignments,
        f"{match} AND ({conflict.where_sql})",
        Bindings(),
        returning=statement.returning,
    )
