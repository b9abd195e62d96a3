"""Triggers that hold tables together: interleaving and foreign keys.

Parents are checked at once, as Spanner does. Foreign keys are checked after each DML statement and
at the end of a commit's mutations: the triggers only note the rows whose reference must be looked
at again, in ``$references``.
"""

from __future__ import annotations

from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name, quote_text
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import ForeignKey, OnDelete, Schema, Table

CREATE_REFERENCES = (
    'CREATE TABLE IF NOT EXISTS "$references" ("table" TEXT, "constraint" INTEGER, '
    '"row" INTEGER, "removed" INTEGER)'
)


def triggers(table: Table, schema: Schema) -> dict[str, str]:
    """All triggers and supporting indexes of a table."""
    objects = parent_trigger(table, schema)
    for child in schema.tables:
        objects |= child_trigger(table, child)
        for number, key in enumerate(child.foreign_keys):
            if key.enforced and key.referenced_table.casefold() == table.name.casefold():
                objects |= referenced_objects(table, child, number, key)
    for number, key in enumerate(table.foreign_keys):
        if key.enforced:
            objects |= referencing_objects(table, number, key)
    return objects


def parent_trigger(table: Table, schema: Schema) -> dict[str, str]:
    """A row of an interleaved table needs its parent."""
    if table.interleave is None or not table.interleave.enforced:
        return {}
    parent = schema.table(table.interleave.parent)
    if parent is None:
        return {}
    name = quote_name("parent$" + table.name)
    keys = [part.column for part in parent.primary_key]
    match = " AND ".join(f"{quote_name(k)} IS NEW.{quote_name(k)}" for k in keys)
    key = key_text("NEW", [part.column for part in table.primary_key], table)
    message = f"{quote_text(f'parent!{parent.name}!{table.name}!')} || {key}"
    return {
        name: f"CREATE TRIGGER {name} BEFORE INSERT ON {current_table(table.name)} "
        f"WHEN NOT EXISTS (SELECT 1 FROM {current_table(parent.name)} WHERE {match}) "
        f"BEGIN SELECT RAISE(ABORT, {message}); END"
    }


def child_trigger(table: Table, child: Table) -> dict[str, str]:
    """A deleted parent takes its children along, or may not have any."""
    interleave = child.interleave
    if (
        interleave is None
        or not interleave.enforced
        or interleave.parent.casefold() != table.name.casefold()
    ):
        return {}
    name = quote_name(f"child${table.name}${child.name}")
    keys = [part.column for part in table.primary_key]
    match = " AND ".join(f"{quote_name(k)} IS OLD.{quote_name(k)}" for k in keys)
    head = f"CREATE TRIGGER {name} BEFORE DELETE ON {current_table(table.name)}"
    if interleave.on_delete is OnDelete.CASCADE:
        return {name: f"{head} BEGIN DELETE FROM {current_table(child.name)} WHERE {match}; END"}
    rows = f"FROM {current_table(child.name)} WHERE {match}"
    key = key_text(current_table(child.name), [part.column for part in child.primary_key], child)
    message = f"{quote_text(f'child!{table.name}!{child.name}!')} || {key}"
    return {
        name: f"{head} WHEN EXISTS (SELECT 1 {rows}) "
        f"BEGIN SELECT RAISE(ABORT, (SELECT {message} {rows} LIMIT 1)); END"
    }


def referencing_objects(table: Table, number: int, key: ForeignKey) -> dict[str, str]:
    """A new or changed reference is noted."""
    index = quote_name(f"f${table.name}${number}")
    columns = ", ".join(quote_name(c) for c in key.columns)
    on = current_table(table.name)
    insert, update = (quote_name(f"fk{kind}${table.name}${number}") for kind in ("i", "u"))
    noted = " AND ".join(f"NEW.{quote_name(c)} IS NOT NULL" for c in key.columns)
    values = f"{quote_text(table.name)}, {number}, NEW._rowid_, 0"
    note = f'INSERT INTO "$references" VALUES ({values}); END'
    return {
        index: f"CREATE INDEX {index} ON {on} ({columns})",
        insert: f"CREATE TRIGGER {insert} AFTER INSERT ON {on} WHEN {noted} BEGIN {note}",
        update: f"CREATE TRIGGER {update} AFTER UPDATE OF {columns} ON {on} "
        f"WHEN {noted} BEGIN {note}",
    }


def referenced_objects(
    table: Table, referencing: Table, number: int, key: ForeignKey
) -> dict[str, str]:
    """A deleted or changed referenced row: those that point to it are noted, or go along."""
    suffix = f"${referencing.name}${number}"
    index, delete, update = (quote_name(kind + suffix) for kind in ("g", "fkd", "fkr"))
    columns = ", ".join(quote_name(c) for c in key.referenced_columns)
    pairs = list(zip(key.columns, key.referenced_columns, strict=True))
    match = " AND ".join(f"{quote_name(c)} = OLD.{quote_name(r)}" for c, r in pairs)
    changed = " OR ".join(f"OLD.{quote_name(r)} IS NOT NEW.{quote_name(r)}" for _, r in pairs)
    on, of = current_table(table.name), current_table(referencing.name)
    note = (
        f'INSERT INTO "$references" SELECT {quote_text(referencing.name)}, {number}, _rowid_, 1 '
        f"FROM {of} WHERE {match}; END"
    )
    cascade = f"DELETE FROM {of} WHERE {match}; END"
    on_delete = cascade if key.on_delete is OnDelete.CASCADE else note
    return {
        index: f"CREATE UNIQUE INDEX {index} ON {on} ({columns})",
        delete: f"CREATE TRIGGER {delete} AFTER DELETE ON {on} BEGIN {on_delete}",
        update: f"CREATE TRIGGER {update} AFTER UPDATE OF {columns} ON {on} WHEN {changed} "
        f"BEGIN {note}",
    }


def broken_reference(table: Table, number: int) -> str:
    """A query over the noted rows of a foreign key: those whose reference leads nowhere."""
    key = table.foreign_keys[number]
    pairs = zip(key.columns, key.referenced_columns, strict=True)
    match = " AND ".join(f"r.{quote_name(b)} = t.{quote_name(a)}" for a, b in pairs)
    present = " AND ".join(f"t.{quote_name(c)} IS NOT NULL" for c in key.columns)
    return (
        f'SELECT n."removed" FROM "$references" AS n '
        f'JOIN {current_table(table.name)} AS t ON t._rowid_ = n."row" '
        f'WHERE n."table" = ? AND n."constraint" = ? AND {present} AND NOT EXISTS '
        f"(SELECT 1 FROM {current_table(key.referenced_table)} AS r WHERE {match}) LIMIT 1"
    )


def missing_references(table: Table, key: ForeignKey) -> str:
    """A query over the whole table, for a foreign key that is added to it."""
    pairs = zip(key.columns, key.referenced_columns, strict=True)
    match = " AND ".join(f"r.{quote_name(b)} = t.{quote_name(a)}" for a, b in pairs)
    present = " AND ".join(f"t.{quote_name(c)} IS NOT NULL" for c in key.columns)
    return (
        f"SELECT {key_text('t', list(key.columns), table)} FROM {current_table(table.name)} AS t "
        f"WHERE {present} AND NOT EXISTS "
        f"(SELECT 1 FROM {current_table(key.referenced_table)} AS r WHERE {match}) LIMIT 1"
    )


def missing_parents(table: Table, parent: Table) -> str:
    """A query over the whole table, for an interleaving that begins to be enforced."""
    keys = [part.column for part in parent.primary_key]
    match = " AND ".join(f"r.{quote_name(k)} IS t.{quote_name(k)}" for k in keys)
    return (
        f"SELECT {key_text('t', keys, table)} FROM {current_table(table.name)} AS t "
        f"WHERE NOT EXISTS (SELECT 1 FROM {current_table(parent.name)} AS r WHERE {match}) LIMIT 1"
    )


def key_text(alias: str, columns: list[str], table: Table) -> str:
    """A SQLite expression that formats a key for an error message."""
    values = []
    for name in columns:
        column = table.column(name)
        value = f"{alias}.{quote_name(name)}"
        bytes_column = column is not None and column.type.code is TypeCode.BYTES
        values.append(f"quote({value})" if bytes_column else value)
    return f"json_array({', '.join(values)})"
