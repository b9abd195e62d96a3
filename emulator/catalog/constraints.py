"""The rows of INFORMATION_SCHEMA about keys, foreign keys and checks."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.catalog.managed_indexes import find_unique_index
from emulator.values.system_tables import Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import ForeignKey, OnDelete, Schema, Table
from spanner_schema.syntax.references import find_referenced_columns

PLACEMENT_KEY = "PLACEMENT KEY"


def foreign_key_rows(schema: Schema) -> Iterator[tuple[Table, str, ForeignKey, Table]]:
    """Table and name of every foreign key, and the table that it refers to."""
    for table in schema.tables:
        for number, key in enumerate(table.foreign_keys, 1):
            target = schema.table(key.referenced_table)
            if target is not None:
                names = (split_name(each.name)[1] for each in (table, target))
                name = split_name(key.label)[1] or f"FK_{'_'.join(names)}_{number}"
                yield table, name, key, target


def unique_constraint(target: Table, key: ForeignKey) -> tuple[str, list[str]]:
    """Name and columns of what a foreign key refers to: the primary key, or an index of Spanner's
    own that is a UNIQUE constraint."""
    index = find_unique_index(target, key)
    parts = target.primary_key if index is None else index.parts
    name = f"PK_{split_name(target.name)[1]}" if index is None else split_name(index.name)[1]
    return name, [part.column for part in parts]


def constraint_rows(schema: Schema) -> Iterator[tuple[Table, str, str, tuple[str, ...]]]:
    """Table, name, type and columns of every constraint that has columns."""
    for table in schema.tables:
        last = split_name(table.name)[1]
        keys = tuple(part.column for part in table.primary_key)
        yield table, f"PK_{last}", "PRIMARY KEY", keys
        placement = table.placement_key
        if placement is not None:
            yield table, f"PLACEMENT_KEY_{last}", PLACEMENT_KEY, (placement.name,)
    unique = {}
    for table, name, key, target in foreign_key_rows(schema):
        yield table, name, "FOREIGN KEY", key.columns
        if find_unique_index(target, key) is not None:
            index, columns = unique_constraint(target, key)
            unique[target.name, index] = target, index, "UNIQUE", tuple(columns)
    yield from unique.values()


def check_rows(schema: Schema) -> Iterator[tuple[Table, str, str]]:
    """Table, name and clause of every CHECK; NOT NULL is one, as in Spanner."""
    for table in schema.tables:
        last = split_name(table.name)[1]
        for number, check in enumerate(table.checks, 1):
            yield table, split_name(check.label)[1] or f"CK_{last}_{number}", check.expression
        for column in table.columns:
            if column.not_null:
                yield table, f"CK_IS_NOT_NULL_{last}_{column.name}", f"{column.name} IS NOT NULL"


def table_constraints(schema: Schema) -> Iterator[Row]:
    """PRIMARY KEY, FOREIGN KEY, UNIQUE, PLACEMENT KEY and CHECK."""
    constraints = [(table, name, kind) for table, name, kind, _ in constraint_rows(schema)]
    constraints += [(table, name, "CHECK") for table, name, _ in check_rows(schema)]
    for table, name, kind in constraints:
        owner = split_name(table.name)
        yield "", owner[0], name, "", *owner, kind, "NO", "NO", "YES"


def key_column_usage(schema: Schema) -> Iterator[Row]:
    """The columns of primary and foreign keys, and of what those refer to."""
    positions: dict[tuple[str, str], list[int | None]] = {}
    for table, name, key, target in foreign_key_rows(schema):
        unique = [column.casefold() for column in unique_constraint(target, key)[1]]
        positions[table.name, name] = [
            unique.index(column.casefold()) + 1 for column in key.referenced_columns
        ]
    for table, name, _, listed in constraint_rows(schema):
        owner = split_name(table.name)
        referred = positions.get((table.name, name), [None] * len(listed))
        for number, (column, position) in enumerate(zip(listed, referred, strict=True), 1):
            yield "", owner[0], name, "", *owner, column, number, position


def constraint_usages(schema: Schema) -> Iterator[tuple[Table, str, Table, tuple[str, ...]]]:
    """Table and name of every constraint, with the table and columns that it refers to."""
    for table, name, kind, listed in constraint_rows(schema):
        if kind != "FOREIGN KEY":
            yield table, name, table, listed
    for table, name, key, target in foreign_key_rows(schema):
        yield table, name, target, key.referenced_columns
    for table, name, clause in check_rows(schema):
        yield table, name, table, find_referenced_columns(clause, table, schema.dialect)


def constraint_table_usage(schema: Schema) -> Iterator[Row]:
    """The tables that constraints refer to."""
    for table, name, target, _ in constraint_usages(schema):
        yield "", *split_name(target.name), "", split_name(table.name)[0], name


def constraint_column_usage(schema: Schema) -> Iterator[Row]:
    """The columns that constraints refer to."""
    for table, name, target, listed in constraint_usages(schema):
        for column in listed:
            yield "", *split_name(target.name), column, "", split_name(table.name)[0], name


def check_constraints(schema: Schema) -> Iterator[Row]:
    """The clauses of CHECK."""
    for table, name, clause in check_rows(schema):
        yield "", split_name(table.name)[0], name, clause, "COMMITTED"


def referential_constraints(schema: Schema) -> Iterator[Row]:
    """What foreign keys refer to."""
    for table, name, key, target in foreign_key_rows(schema):
        yield (
            "",
            split_name(table.name)[0],
            name,
            "",
            split_name(target.name)[0],
            unique_constraint(target, key)[0],
            "SIMPLE",
            "NO ACTION",
            (key.on_delete or OnDelete.NO_ACTION).value,
            "COMMITTED",
        )
