"""What the steps for tables, their columns and their constraints do to a schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ddl import steps
from ddl.errors import SchemaError
from ddl.names import check_name_is_free, require_column, require_table, same_name
from ddl.rules import (
    check_column,
    check_column_is_unused,
    check_interleave,
    check_table,
)
from ddl.schema import Column, Schema, Table, TypeCode


def replace_table(schema: Schema, table: Table) -> Schema:
    """The schema with a table in place of the one with its name."""
    tables = tuple(table if same_name(t.name, table.name) else t for t in schema.tables)
    return replace(schema, tables=tables)


def replace_column(schema: Schema, table: Table, column: Column) -> Schema:
    """The schema with a column in place of the one with its name. Raises SchemaError."""
    check_column(table, column)
    columns = tuple(column if same_name(c.name, column.name) else c for c in table.columns)
    return replace_table(schema, replace(table, columns=columns))


def create_table(step: steps.CreateTable, schema: Schema) -> Schema:
    """CREATE TABLE."""
    if step.if_not_exists and schema.table(step.table.name):
        return schema
    check_name_is_free(schema, step.table.name)
    check_table(schema, step.table)
    return replace(schema, tables=(*schema.tables, step.table))


def drop_table(step: steps.DropTable, schema: Schema) -> Schema:
    """DROP TABLE: not while it has children or indexes."""
    if step.if_exists and schema.table(step.name) is None:
        return schema
    table = require_table(schema, step.name)
    children = [
        t.name for t in schema.tables if t.interleave and same_name(t.interleave.parent, table.name)
    ]
    if children:
        raise SchemaError(
            f"Cannot drop table {table.name} with interleaved tables: {', '.join(children)}."
        )
    indexes = [index.name for index in schema.indexes_of(table.name)]
    if indexes:
        raise SchemaError(f"Cannot drop table {table.name} with indices: {', '.join(indexes)}.")
    return replace(schema, tables=tuple(t for t in schema.tables if t is not table))


def add_column(step: steps.AddColumn, schema: Schema) -> Schema:
    """ADD COLUMN: NOT NULL only with a value for the existing rows."""
    table, column = require_table(schema, step.table), step.column
    if table.column(column.name):
        if step.if_not_exists:
            return schema
        raise SchemaError(f"Duplicate column name {table.name}.{column.name}.")
    if column.not_null and column.default is None and column.generated is None:
        raise SchemaError(
            f"Cannot add NOT NULL column {table.name}.{column.name} to existing table {table.name}."
        )
    table = replace(table, columns=(*table.columns, column))
    check_column(table, column)
    return replace_table(schema, table)


def drop_column(step: steps.DropColumn, schema: Schema) -> Schema:
    """DROP COLUMN: not while something depends on it."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    check_column_is_unused(schema, table, column)
    columns = tuple(c for c in table.columns if c is not column)
    return replace_table(schema, replace(table, columns=columns))


def alter_column(step: steps.AlterColumn, schema: Schema) -> Schema:
    """ALTER COLUMN with a whole definition. DEFAULT, ON UPDATE and options stay if not given."""
    table = require_table(schema, step.table)
    old, new = require_column(table, step.column.name), step.column
    if old.type.code is not new.type.code and {old.type.code, new.type.code} != {
        TypeCode.STRING,
        TypeCode.BYTES,
    }:
        raise SchemaError(
            f"Cannot change type of column `{table.name}.{old.name}` from"
            f" `{old.type.code.value}` to `{new.type.code.value}`."
        )
    column = replace(
        new,
        name=old.name,
        default=new.default if new.default is not None else old.default,
        on_update=new.on_update if new.on_update is not None else old.on_update,
        allow_commit_timestamp=old.allow_commit_timestamp,
    )
    return replace_column(schema, table, column)


def set_not_null(step: steps.SetNotNull, schema: Schema) -> Schema:
    """SET NOT NULL | DROP NOT NULL."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    return replace_column(schema, table, replace(column, not_null=step.not_null))


def set_type(step: steps.SetType, schema: Schema) -> Schema:
    """ALTER COLUMN TYPE."""
    column = require_column(require_table(schema, step.table), step.column)
    return alter_column(steps.AlterColumn(step.table, replace(column, type=step.type)), schema)


def set_default(step: steps.SetDefault, schema: Schema) -> Schema:
    """SET DEFAULT | DROP DEFAULT: ON UPDATE needs the default."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    if step.expression is None and column.on_update is not None:
        raise SchemaError(
            f"Cannot drop the default of {table.name}.{column.name} while it has ON UPDATE."
        )
    return replace_column(schema, table, replace(column, default=step.expression))


def set_on_update(step: steps.SetOnUpdate, schema: Schema) -> Schema:
    """SET ON UPDATE | DROP ON UPDATE."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    return replace_column(schema, table, replace(column, on_update=step.expression))


def set_column_options(step: steps.SetColumnOptions, schema: Schema) -> Schema:
    """SET OPTIONS of a column: Spanner has allow_commit_timestamp alone."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    for name, value in step.options:
        if name != "allow_commit_timestamp":
            raise SchemaError(f"Option: {name} is unknown.")
        column = replace(column, allow_commit_timestamp=(value or "").lower() == "true")
    return replace_column(schema, table, column)


def add_foreign_key(step: steps.AddForeignKey, schema: Schema) -> Schema:
    """ADD FOREIGN KEY: both sides must exist."""
    table, key = require_table(schema, step.table), step.foreign_key
    referenced_table = require_table(schema, key.referenced_table)
    for name in key.columns:
        require_column(table, name)
    for name in key.referenced_columns:
        require_column(referenced_table, name)
    return replace_table(schema, replace(table, foreign_keys=(*table.foreign_keys, key)))


def add_check(step: steps.AddCheck, schema: Schema) -> Schema:
    """ADD CHECK."""
    table = require_table(schema, step.table)
    return replace_table(schema, replace(table, checks=(*table.checks, step.check)))


def drop_constraint(step: steps.DropConstraint, schema: Schema) -> Schema:
    """DROP CONSTRAINT: a foreign key or a check."""
    table = require_table(schema, step.table)
    keys = tuple(k for k in table.foreign_keys if not same_name(k.name or "", step.name))
    checks = tuple(c for c in table.checks if not same_name(c.name or "", step.name))
    if keys == table.foreign_keys and checks == table.checks:
        raise SchemaError(f"{step.name} is not a constraint in {table.name}.")
    return replace_table(schema, replace(table, foreign_keys=keys, checks=checks))


def set_row_deletion_policy(step: steps.SetRowDeletionPolicy, schema: Schema) -> Schema:
    """ADD | REPLACE | DROP ROW DELETION POLICY."""
    table = require_table(schema, step.table)
    if step.policy is not None:
        require_column(table, step.policy.column)
    elif table.row_deletion_policy is None:
        raise SchemaError(f"Table {table.name} has no row deletion policy.")
    return replace_table(schema, replace(table, row_deletion_policy=step.policy))


def set_on_delete(step: steps.SetOnDelete, schema: Schema) -> Schema:
    """SET ON DELETE of an interleaved table."""
    table = require_table(schema, step.table)
    if table.interleave is None:
        raise SchemaError(f"Table {table.name} is not interleaved in another.")
    interleave = replace(table.interleave, on_delete=step.on_delete)
    return replace_table(schema, replace(table, interleave=interleave))


def set_interleave(step: steps.SetInterleave, schema: Schema) -> Schema:
    """SET INTERLEAVE IN."""
    table = replace(require_table(schema, step.table), interleave=step.interleave)
    check_interleave(schema, table)
    return replace_table(schema, table)


HANDLERS: tuple[Callable[..., Schema], ...] = (
    create_table,
    drop_table,
    add_column,
    drop_column,
    alter_column,
    set_not_null,
    set_type,
    set_default,
    set_on_update,
    set_column_options,
    add_foreign_key,
    add_check,
    drop_constraint,
    set_row_deletion_policy,
    set_on_delete,
    set_interleave,
)
"""Each takes its step as the first parameter, by whose type it is chosen."""
