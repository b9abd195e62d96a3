"""Spanner's rules for tables, columns, indexes and change streams, each with Spanner's refusal."""

from __future__ import annotations

from ddl.rules.limits import check_index_key
from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode
from spanner_schema.model.errors import InvalidDefinitionError, SchemaError
from spanner_schema.model.names import require_column, require_table, same_name
from spanner_schema.model.schema import ChangeStream, Column, Dialect, Index, Schema, Table
from spanner_schema.syntax.references import find_referenced_columns
from spanner_schema.syntax.spelling import normalize

COMMIT_TIMESTAMP = "PENDING_COMMIT_TIMESTAMP()"


def check_table(schema: Schema, table: Table) -> None:
    """Checks a table as a whole. Raises SchemaError."""
    seen: set[str] = set()
    for column in table.columns:
        if column.name.casefold() in seen:
            raise SchemaError(f"Duplicate column name {table.name}.{column.name}.")
        seen.add(column.name.casefold())
        check_column(table, column, schema.dialect)
    check_primary_key(table)
    if table.interleave is not None:
        check_interleave(schema, table)


def check_primary_key(table: Table) -> None:
    """Checks that a key names existing columns, each once, of types that can be sorted."""
    seen: set[str] = set()
    for part in table.primary_key:
        column = table.column(part.column)
        if column is None:
            raise SchemaError(
                f"Table {table.name} references nonexistent key column {part.column}."
            )
        if column.name.casefold() in seen:
            raise InvalidDefinitionError(
                f"Table {table.name} references key column {column.name} more than once."
            )
        seen.add(column.name.casefold())
        if not COLUMN_TYPES[column.type.code].key:
            raise InvalidDefinitionError(
                f"Column {table.name}.{column.name} has type {name_type(column.type)}, but is part"
                " of the primary key."
            )


def check_interleave(schema: Schema, table: Table) -> None:
    """Checks that a child's key begins with its parent's. Raises SchemaError."""
    assert table.interleave is not None
    parent = require_table(schema, table.interleave.parent)
    positions = {part.column.casefold(): n for n, part in enumerate(table.primary_key)}
    for number, parent_part in enumerate(parent.primary_key):
        position = positions.get(parent_part.column.casefold())
        if position is None:
            raise SchemaError(
                f"Table {table.name} does not reference parent key column {parent_part.column}."
            )
        if position != number:
            raise SchemaError(
                f"Table {table.name} references parent key column {parent_part.column} at incorrect"
                f" position {position}."
            )
        part = table.primary_key[number]
        if part.descending != parent_part.descending:
            raise SchemaError(
                f"Table {table.name} references parent key column {parent_part.column} with"
                f" incorrect order {'ASC' if part.descending else 'DESC'}."
            )
        check_shared_key_column(table, parent, parent_part.column)


def check_shared_key_column(table: Table, parent: Table, name: str) -> None:
    """Checks that a key column is defined alike in a child and its parent. Raises SchemaError."""
    mine, theirs = require_column(table, name), require_column(parent, name)
    where = f"Table {table.name} references parent key column {theirs.name}"
    if name_type(mine.type) != name_type(theirs.type):
        raise SchemaError(
            f"{where} with incorrect type {name_type(mine.type)} (should be"
            f" {name_type(theirs.type)})."
        )
    if mine.type.length != theirs.type.length:
        raise SchemaError(
            f"{where} with incorrect length {mine.type.length or 'MAX'} (should be"
            f" {theirs.type.length or 'MAX'})."
        )


def name_type(type_: Type) -> str:
    """A type as messages write it: without lengths."""
    if type_.element is not None:
        return f"ARRAY<{name_type(type_.element)}>"
    if type_.code is TypeCode.STRUCT:
        fields = (f"{field.name} {name_type(field.type)}" for field in type_.fields)
        return f"STRUCT<{', '.join(fields)}>"
    return type_.proto_name or str(type_.code.value).replace("PG_", "PG.")


def is_type_change_allowed(old: Type, new: Type) -> bool:
    """Whether the values of a column can be converted in place; lengths are another matter."""
    if old.element is not None and new.element is not None:
        return is_type_change_allowed(old.element, new.element)
    codes = (old.code, new.code)
    return old.code is new.code or codes in CONVERSIONS or codes[::-1] in CONVERSIONS


CONVERSIONS = frozenset(
    {
        (TypeCode.STRING, TypeCode.BYTES),
        (TypeCode.BYTES, TypeCode.PROTO),
        (TypeCode.INT64, TypeCode.ENUM),
        (TypeCode.INT64, TypeCode.PROTO),
        (TypeCode.ENUM, TypeCode.PROTO),
    }
)
"""Types that convert into each other. DDL names an ENUM as it names a PROTO: only the bundle tells
them apart, so that such a column may be either."""


def check_column(table: Table, column: Column, dialect: Dialect) -> None:
    """Checks one column of a table. Raises SchemaError."""
    path = f"{table.name}.{column.name}"
    if column.allow_commit_timestamp and column.type.code is not TypeCode.TIMESTAMP:
        raise SchemaError(
            f"Column {path} has invalid allow_commit_timestamp option. Option only allowed on"
            " TIMESTAMP columns."
        )
    if column.on_update is not None:
        check_on_update(table, column)
    if column.generated is not None:
        check_generated_column(table, column, dialect)


def check_on_update(table: Table, column: Column) -> None:
    """Checks ON UPDATE: the commit timestamp only, with the same DEFAULT, outside the key."""
    if is_in_primary_key(table, column):
        raise InvalidDefinitionError(
            f"Column {table.name}.{column.name} with ON UPDATE cannot be a part of or the whole"
            " primary key."
        )
    if column.default is None:
        raise InvalidDefinitionError(
            f"Column `{column.name}` with an ON UPDATE expression must have an identical DEFAULT"
            " value expression."
        )
    if remove_prefix(column.default) != remove_prefix(column.on_update):
        raise InvalidDefinitionError(
            f"The ON UPDATE expression of column `{column.name}` does not match the DEFAULT value"
            " expression."
        )
    if normalize(column.on_update) != COMMIT_TIMESTAMP:
        raise InvalidDefinitionError(
            f"{COMMIT_TIMESTAMP} is the only supported ON UPDATE expression."
        )
    if not column.allow_commit_timestamp:
        raise SchemaError(
            f"Cannot use default value expression {COMMIT_TIMESTAMP} on column `{column.name}`"
            " without the allow_commit_timestamp column option."
        )


def remove_prefix(expression: str | None) -> str:
    """An expression without blanks; what PostgreSQL writes is folded."""
    text = "".join((expression or "").split())
    return normalize(text) if text.upper().startswith("SPANNER.") else text


def check_generated_column(table: Table, column: Column, dialect: Dialect) -> None:
    """Checks that a generated column depends on no commit timestamp. Raises SchemaError."""
    for name in find_referenced_columns(column.generated or "", table, dialect):
        source = table.column(name)
        if source is not None and source.allow_commit_timestamp:
            raise SchemaError(
                f"Cannot use commit timestamp column `{name}` as a dependency of a materialized"
                " generated column."
            )


def check_column_is_unused(schema: Schema, table: Table, column: Column) -> None:
    """Checks that nothing depends on a column that is to be dropped. Raises SchemaError."""
    if is_in_primary_key(table, column):
        raise InvalidDefinitionError(
            f"Cannot drop key column {column.name} from table {table.name}."
        )
    for index in schema.indexes_of(table.name):
        names = [part.column for part in index.parts] + list(index.storing)
        if any(same_name(name, column.name) for name in names):
            raise SchemaError(
                f"Cannot drop column {column.name} from table {table.name} because it is used by"
                f" index {index.name}."
            )
    for other in table.columns:
        names = list(find_referenced_columns(other.generated or "", table, schema.dialect))
        if other is not column and any(same_name(name, column.name) for name in names):
            raise SchemaError(
                f"Cannot drop column `{column.name}` from table `{table.name}` because it is"
                f" referenced by generated column `{other.name}`."
            )


def is_in_primary_key(table: Table, column: Column) -> bool:
    """True for a column of the primary key."""
    return any(same_name(part.column, column.name) for part in table.primary_key)


def check_index(table: Table, index: Index) -> None:
    """Checks that an index names columns of its table, each once, of types that can be sorted.

    Raises SchemaError.
    """
    if not index.parts:
        raise InvalidDefinitionError(f"Index {index.name} does not specify any key columns.")
    check_index_key(table, index)
    for name in [part.column for part in index.parts] + list(index.storing):
        if table.column(name) is None:
            raise InvalidDefinitionError(
                f"Index {index.name} specifies key column {name}"
                f" which does not exist in the index's base table {table.name}."
            )
    for part in index.parts:
        type_ = require_column(table, part.column).type
        if not COLUMN_TYPES[type_.code].key:
            raise SchemaError(
                f"Index {index.name} is defined on a column of unsupported type {name_type(type_)}."
            )
    check_index_names_columns_once(index)


def check_index_names_columns_once(index: Index) -> None:
    """Checks that no column is named twice, nor stored though it is in the key anyway."""
    keys = [part.column.casefold() for part in index.parts]
    stored = [name.casefold() for name in index.storing]
    for number, part in enumerate(index.parts):
        if part.column.casefold() in keys[:number]:
            raise InvalidDefinitionError(
                f"Index {index.name} specifies key column {part.column} twice."
            )
    for number, name in enumerate(index.storing):
        if name.casefold() in keys:
            raise InvalidDefinitionError(
                f"Index {index.name} specifies stored column {name} already specified as primary"
                " key."
            )
        if name.casefold() in stored[:number]:
            raise InvalidDefinitionError(f"Index {index.name} specifies key column {name} twice.")


def check_change_stream(schema: Schema, stream: ChangeStream) -> None:
    """Checks that the tables and columns that a change stream watches exist."""
    for watched in stream.watches:
        table = schema.table(watched.table)
        if table is None:
            raise SchemaError(
                f"Change Stream {stream.name} cannot track {watched.table} because either Change"
                " Streams do not track database objects of this type, or this Table does not exist."
            )
        for name in watched.columns or ():
            if table.column(name) is None:
                raise SchemaError(
                    f"Change Stream {stream.name} cannot track column {name} because it does not"
                    f" exist in Table {table.name}."
                )
