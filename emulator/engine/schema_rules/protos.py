"""Columns of messages and enums: their types are in the proto bundle, and stay there."""

from __future__ import annotations

from dataclasses import replace

from ddl.rules.refusals import name_type
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.sql.compile import compile_expression
from emulator.values.protos import ProtoTypes, types_of
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import require_column, require_table
from spanner_schema.model.schema import Column, Index, Schema, Table

NAMED = {TypeCode.PROTO, TypeCode.ENUM}
UNRELATED = ({TypeCode.INT64, TypeCode.PROTO}, {TypeCode.ENUM, TypeCode.PROTO})
"""Types that do not become each other."""


def resolve_types(schema: Schema, *, altered: bool, checked: bool) -> Schema:
    """The schema with PROTO or ENUM in each column, as the bundle says: DDL names both alike.

    ``altered`` says that the bundle changed, not the tables. Raises for a type that is not in the
    bundle, if ``checked``.
    """
    if not any(uses_names(column.type) for table in schema.tables for column in table.columns):
        return schema
    types = types_of(schema)
    tables = tuple(
        resolve_table(table, types, altered=altered, checked=checked) for table in schema.tables
    )
    return replace(schema, tables=tables)


def resolve_table(table: Table, types: ProtoTypes, *, altered: bool, checked: bool) -> Table:
    """A table with the types of its columns; itself where nothing changes."""
    columns = tuple(
        resolve_column(table, column, types, altered=altered, checked=checked)
        for column in table.columns
    )
    same = all(new is old for new, old in zip(columns, table.columns, strict=True))
    return table if same else replace(table, columns=columns)


def resolve_column(
    table: Table, column: Column, types: ProtoTypes, *, altered: bool, checked: bool
) -> Column:
    """A column with its type; itself where that is known already."""
    if not uses_names(column.type):
        return column
    resolved = resolve_type(column.type, types)
    if resolved is None or (altered and resolved != column.type):
        if not checked:
            return column
        raise unknown_type(table, column, altered=altered)
    return column if resolved == column.type else replace(column, type=resolved)


def unknown_type(table: Table, column: Column, *, altered: bool) -> SpannerError:
    """The refusal of a type that is not in the bundle, or no longer."""
    name = named_type(column.type).proto_name
    if altered:
        return failed_precondition(
            f"Removed type {name} is still being used by column {table.name}.{column.name}"
        )
    return invalid_argument(
        f"Column {table.name}.{column.name} has an unrecognized column type {name}."
    )


def uses_names(type_: Type) -> bool:
    """Whether a type is a message or an enum, or an array of them."""
    return named_type(type_).code in NAMED


def named_type(type_: Type) -> Type:
    """A type, or that of an array's elements."""
    return type_.element if type_.element is not None else type_


def resolve_type(type_: Type, types: ProtoTypes) -> Type | None:
    """The type as the bundle knows it; None if it does not."""
    if type_.element is not None:
        element = types.type(type_.element.proto_name or "")
        return replace(type_, element=element) if element is not None else None
    return types.type(type_.proto_name or "")


def check_protos(change: SchemaChange) -> None:
    """Checks the keys of the tables, how types change, and what stands over changed messages."""
    for _, table in change.tables():
        refuse_message_in_key(table)
    for index in change.indexes():
        refuse_message_in_index(require_table(change.after, index.table), index)
    for _, old, table, column in change.altered_columns():
        if {named_type(old.type).code, named_type(column.type).code} in UNRELATED:
            raise invalid_argument(
                f"Cannot change type of column `{column.name}` from `{name_type(old.type)}` to"
                f" `{name_type(column.type)}`"
            )
        if any(part.column == column.name for part in table.primary_key):
            refuse_message_in_key(table)
    if change.before.proto_descriptors != change.after.proto_descriptors:
        check_expressions_over_messages(change)


def refuse_message_in_key(table: Table) -> None:
    """A message cannot be compared: it is no key."""
    for part in table.primary_key:
        type_ = require_column(table, part.column).type
        if type_.code is TypeCode.PROTO:
            raise invalid_argument(
                f"Column {table.name}.{part.column} has type {name_type(type_)}, but is part of the"
                " primary key."
            )


def refuse_message_in_index(table: Table, index: Index) -> None:
    """The same for the key of an index."""
    for part in index.parts:
        type_ = require_column(table, part.column).type
        if type_.code is TypeCode.PROTO:
            raise failed_precondition(
                f"Cannot reference {name_type(type_)} {part.column} in the creation of index"
                f" {index.name}."
            )


def check_expressions_over_messages(change: SchemaChange) -> None:
    """What is generated from a message, or checked, must be valid with the new messages, and of the
    same type."""
    for table in change.after.tables:
        if not any(uses_names(column.type) for column in table.columns):
            continue
        for column in table.columns:
            for text in filter(None, (column.generated, column.default)):
                recompile(change, table, text, column)
        for check in table.checks:
            recompile(change, table, check.expression, None)


def recompile(change: SchemaChange, table: Table, text: str, column: Column | None) -> None:
    """Compiles an expression again. Raises FAILED_PRECONDITION if that fails now."""
    target = column.type if column is not None else None
    try:
        compile_expression(text, table, change.after, target)
    except SpannerError as error:
        where = f"column `{table.name}.{column.name}`" if column is not None else "a check"
        raise failed_precondition(
            f"Cannot alter the proto bundle: the expression of {where} would become invalid:"
            f" {error.message}"
        ) from error
