"""Spanner's limits of a schema: names, columns, key parts, indexes, depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddl import steps
from ddl.schema import KeyPart, Schema, Table
from emulator.errors import failed_precondition, invalid_argument
from emulator.limits import (
    COLUMNS_IN_TABLE_MAX,
    INDEXES_IN_TABLE_MAX,
    INTERLEAVED_TABLES_MAX,
    KEY_PARTS_MAX,
    NAME_CHARACTERS_MAX,
    TABLES_MAX,
    VIEWS_MAX,
)


def refuse_long_names_and_keys(step: steps.Step) -> None:
    """What a statement alone shows. Raises INVALID_ARGUMENT."""
    for kind, name in names_of_new_objects(step):
        if any(len(part) > NAME_CHARACTERS_MAX for part in name.split(".")):
            raise invalid_argument(
                f"{kind} name not valid: {name} has more than {NAME_CHARACTERS_MAX} characters."
            )
    for what, parts in key_definitions(step):
        if len(parts) > KEY_PARTS_MAX:
            raise invalid_argument(
                f"{what} has {len(parts)} keys which is greater than the maximum allowed"
                f" ({KEY_PARTS_MAX})."
            )


def names_of_new_objects(step: steps.Step) -> Iterator[tuple[str, str]]:
    """The kinds and names of what a statement creates."""
    if isinstance(step, steps.CreateTable):
        yield "Table", step.table.name
        yield from (("Column", column.name) for column in step.table.columns)
    elif isinstance(step, steps.AddColumn):
        yield "Column", step.column.name
    elif isinstance(step, steps.CreateIndex):
        yield "Index", step.index.name
    elif isinstance(step, steps.CreateChangeStream):
        yield "Change stream", step.change_stream.name
    elif isinstance(step, steps.CreateNamedSchema):
        yield "Schema", step.name
    elif isinstance(step, steps.CreateVerbatim) and step.item.kind in NAMED:
        yield step.item.kind.capitalize(), step.item.name


NAMED = {"VIEW", "SEQUENCE", "ROLE", "PLACEMENT"}


def key_definitions(step: steps.Step) -> Iterator[tuple[str, tuple[KeyPart, ...]]]:
    """The keys that a statement defines, and of what they are."""
    if isinstance(step, steps.CreateTable):
        yield f"Table {step.table.name}", step.table.primary_key
    elif isinstance(step, steps.CreateIndex):
        yield f"Index {step.index.name}", step.index.parts


def refuse_too_many(schema: Schema) -> None:
    """How many objects there are. Raises FAILED_PRECONDITION."""
    if len(schema.tables) > TABLES_MAX:
        raise failed_precondition(f"Cannot add Table: the limit is {TABLES_MAX} per database.")
    if sum(each.kind == "VIEW" for each in schema.verbatim) > VIEWS_MAX:
        raise failed_precondition(f"Cannot add View: the limit is {VIEWS_MAX} per database.")
    indexes = Counter(index.table.casefold() for index in schema.indexes)
    for table in schema.tables:
        refuse_large_table(table, schema, indexes[table.name.casefold()])


def refuse_large_table(table: Table, schema: Schema, indexes: int) -> None:
    """The columns and indexes of a table, and how deep it is interleaved."""
    if len(table.columns) > COLUMNS_IN_TABLE_MAX:
        raise failed_precondition(
            f"Table {table.name} has too many columns; the limit is {COLUMNS_IN_TABLE_MAX}."
        )
    if indexes > INDEXES_IN_TABLE_MAX:
        raise failed_precondition(
            f"Table {table.name} has too many indexes; the limit is {INDEXES_IN_TABLE_MAX}."
        )
    depth, above = 1, parent_table(table, schema)
    while above is not None:
        depth, above = depth + 1, parent_table(above, schema)
    if depth > INTERLEAVED_TABLES_MAX:
        raise failed_precondition(
            f"Table {table.name} is nested more than {INTERLEAVED_TABLES_MAX} deep."
        )


def parent_table(table: Table, schema: Schema) -> Table | None:
    """The table in which a table is interleaved."""
    return schema.table(table.interleave.parent) if table.interleave is not None else None
