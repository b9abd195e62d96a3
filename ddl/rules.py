"""Spanner's rules for tables, columns, indexes and change streams, each with Spanner's refusal."""

from __future__ import annotations

from ddl.errors import SchemaError
from ddl.names import require_column, require_table, same_name
from ddl.references import find_referenced_columns
from ddl.schema import ChangeStream, Column, Index, Schema, Table, TypeCode

INDEX_KEY_PARTS_MAX = 16
COMMIT_TIMESTAMP = "PENDING_COMMIT_TIMESTAMP()"
NO_PRIMARY_KEY_TYPES = frozenset(
    {TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON, TypeCode.TOKENLIST}
)
NO_INDEX_KEY_TYPES = frozenset({TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON, TypeCode.PROTO})


def check_table(schema: Schema, table: Table) -> None:
    """Checks a table as a whole. Raises SchemaError."""
    seen: set[str] = set()
    for column in table.columns:
        if column.name.casefold() in seen:
            raise SchemaError(f"Duplicate column name {table.name}.{column.name}.")
        seen.add(column.name.casefold())
        check_column(table, column)
    for part in table.primary_key:
        code = require_column(table, part.column).type.code
        if code in NO_PRIMARY_KEY_TYPES:
            raise SchemaError(
                f"Key column {table.name}.{part.column} has type {code.value},"
                " but is part of the primary key."
            )
    if table.interleave is not None:
        check_interleave(schema, table)


def check_interleave(schema: Schema, table: Table) -> None:
    """Checks that a child's key begins with its parent's, of the same types. Raises SchemaError."""
    assert table.interleave is not None
    parent = require_table(schema, table.interleave.parent)
    if len(table.primary_key) < len(parent.primary_key):
        raise SchemaError(f"The key of {table.name} must begin with the key of {parent.name}.")
    for part, parent_part in zip(table.primary_key, parent.primary_key, strict=False):
        if (
            not same_name(part.column, parent_part.column)
            or part.descending != parent_part.descending
        ):
            raise SchemaError(f"The key of {table.name} must begin with the key of {parent.name}.")
        column = require_column(table, part.column)
        if column.type != require_column(parent, parent_part.column).type:
            raise SchemaError(f"{table.name}.{column.name} must have the type of {parent.name}'s.")


def check_column(table: Table, column: Column) -> None:
    """Checks one column of a table. Raises SchemaError."""
    place = f"{table.name}.{column.name}"
    if column.allow_commit_timestamp and column.type.code not in {
        TypeCode.TIMESTAMP,
        TypeCode.INT64,
    }:
        raise SchemaError(
            f"Option allow_commit_timestamp is only allowed on TIMESTAMP columns, not {place}."
        )
    if column.on_update is not None:
        check_on_update(table, column)
    if column.generated is not None:
        check_generated_column(table, column)


def check_on_update(table: Table, column: Column) -> None:
    """Checks ON UPDATE: the commit timestamp only, with the same DEFAULT, outside the key."""
    place = f"{table.name}.{column.name}"
    if normalize(column.on_update) != COMMIT_TIMESTAMP:
        raise SchemaError(f"ON UPDATE of {place} must be {COMMIT_TIMESTAMP}.")
    if normalize(column.default) != COMMIT_TIMESTAMP:
        raise SchemaError(f"ON UPDATE of {place} needs DEFAULT ({COMMIT_TIMESTAMP}).")
    if not column.allow_commit_timestamp:
        raise SchemaError(f"ON UPDATE of {place} needs the option allow_commit_timestamp=true.")
    if is_in_primary_key(table, column):
        raise SchemaError(f"ON UPDATE is not allowed on the key column {place}.")


def normalize(expression: str | None) -> str:
    """An expression for comparison: in capitals, without blanks and PostgreSQL's prefix."""
    return "".join((expression or "").split()).upper().removeprefix("SPANNER.")


def check_generated_column(table: Table, column: Column) -> None:
    """Checks that a generated column depends on no commit timestamp. Raises SchemaError."""
    for name in find_referenced_columns(column.generated or "", table):
        source = table.column(name)
        if source is not None and source.allow_commit_timestamp:
            raise SchemaError(
                f"Generated column {table.name}.{column.name} may not depend on the commit"
                f" timestamp column {name}."
            )


def check_column_is_unused(schema: Schema, table: Table, column: Column) -> None:
    """Checks that nothing depends on a column that is to be dropped. Raises SchemaError."""
    place = f"{table.name}.{column.name}"
    if is_in_primary_key(table, column):
        raise SchemaError(f"Cannot drop key column {place}.")
    for index in schema.indexes_of(table.name):
        names = [part.column for part in index.parts] + list(index.storing)
        if any(same_name(name, column.name) for name in names):
            raise SchemaError(f"Cannot drop column {place} used by index {index.name}.")
    for other in table.columns:
        names = list(find_referenced_columns(other.generated or "", table))
        if any(same_name(name, column.name) for name in names):
            raise SchemaError(f"Cannot drop column {place} used by generated column {other.name}.")


def is_in_primary_key(table: Table, column: Column) -> bool:
    """True for a column of the primary key."""
    return any(same_name(part.column, column.name) for part in table.primary_key)


def check_index(table: Table, index: Index) -> None:
    """Checks that an index names columns of its table, each once, of types that can be sorted.

    Raises SchemaError.
    """
    if len(index.parts) > INDEX_KEY_PARTS_MAX:
        raise SchemaError(
            f"Index {index.name} has {len(index.parts)} key parts; {INDEX_KEY_PARTS_MAX} is the"
            " limit."
        )
    seen: set[str] = set()
    for name in [part.column for part in index.parts] + list(index.storing):
        if table.column(name) is None:
            raise SchemaError(
                f"Index {index.name} specifies key column {name}"
                f" which does not exist in the index's base table {table.name}."
            )
        if name.casefold() in seen:
            raise SchemaError(f"Index {index.name} names column {name} twice.")
        seen.add(name.casefold())
    for part in index.parts:
        code = require_column(table, part.column).type.code
        if code in NO_INDEX_KEY_TYPES:
            raise SchemaError(
                f"Cannot index column {table.name}.{part.column}: type {code.value} has no order."
            )


def check_change_stream(schema: Schema, stream: ChangeStream) -> None:
    """Checks that the tables and columns that a change stream watches exist."""
    for watched in stream.watches:
        table = require_table(schema, watched.table)
        for name in watched.columns or ():
            require_column(table, name)
