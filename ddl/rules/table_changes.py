"""What the steps for tables, their columns and their constraints do to a schema, and the way back
from each."""

from __future__ import annotations

from dataclasses import replace

from ddl.rules.dispatch import apply_by_type, reverse_by_type
from ddl.rules.refusals import (
    check_column,
    check_column_is_unused,
    check_interleave,
    check_table,
    is_type_change_allowed,
    name_type,
)
from spanner_schema.model import steps
from spanner_schema.model.errors import (
    ConstraintNotFoundError,
    InvalidDefinitionError,
    PlanError,
    SchemaError,
)
from spanner_schema.model.names import check_name_is_free, require_column, require_table, same_name
from spanner_schema.model.schema import Column, Schema, Table
from spanner_schema.model.steps import Step

COMMIT_OPTION = "allow_commit_timestamp"
COLUMN_OPTIONS = frozenset({COMMIT_OPTION, "locality_group", "cassandra_type"})


def replace_table(schema: Schema, table: Table) -> Schema:
    """The schema with a table in place of the one with its name."""
    tables = tuple(table if same_name(t.name, table.name) else t for t in schema.tables)
    return replace(schema, tables=tables)


def replace_column(schema: Schema, table: Table, column: Column) -> Schema:
    """The schema with a column in place of the one with its name. Raises SchemaError."""
    check_column(table, column, schema.dialect)
    columns = tuple(column if same_name(c.name, column.name) else c for c in table.columns)
    return replace_table(schema, replace(table, columns=columns))


@apply_by_type.register
def create_table(step: steps.CreateTable, schema: Schema) -> Schema:
    """CREATE TABLE."""
    if step.if_not_exists and schema.table(step.table.name):
        return schema
    check_name_is_free(schema, step.table.name)
    check_table(schema, step.table)
    return replace(schema, tables=(*schema.tables, step.table))


@reverse_by_type.register
def reverse_create_table(step: steps.CreateTable, before: Schema) -> tuple[Step, ...]:
    existed = step.if_not_exists and before.table(step.table.name) is not None
    return () if existed else (steps.DropTable(step.table.name),)


@apply_by_type.register
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
            f"Cannot drop table {table.name} with interleaved tables: {','.join(sorted(children))}."
        )
    indexes = [index.name for index in schema.indexes_of(table.name)]
    if indexes:
        raise SchemaError(f"Cannot drop table {table.name} with indices: {','.join(indexes)}.")
    return replace(schema, tables=tuple(t for t in schema.tables if t is not table))


@apply_by_type.register
def add_column(step: steps.AddColumn, schema: Schema) -> Schema:
    """ADD COLUMN: NOT NULL only with a value for the existing rows."""
    table, column = require_table(schema, step.table), step.column
    if table.column(column.name):
        if step.if_not_exists:
            return schema
        raise SchemaError(f"Duplicate column name {table.name}.{column.name}.")
    sources = (column.default, column.generated, column.identity)
    if column.not_null and all(source is None for source in sources):
        raise SchemaError(
            f"Cannot add NOT NULL column {table.name}.{column.name} to existing table {table.name}."
        )
    table = replace(table, columns=(*table.columns, column))
    check_column(table, column, schema.dialect)
    return replace_table(schema, table)


@reverse_by_type.register
def reverse_add_column(step: steps.AddColumn, before: Schema) -> tuple[Step, ...]:
    existed = require_table(before, step.table).column(step.column.name) is not None
    return () if existed else (steps.DropColumn(step.table, step.column.name),)


@apply_by_type.register
def drop_column(step: steps.DropColumn, schema: Schema) -> Schema:
    """DROP COLUMN: not while something depends on it."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    check_column_is_unused(schema, table, column)
    columns = tuple(c for c in table.columns if c is not column)
    return replace_table(schema, replace(table, columns=columns))


@reverse_by_type.register
def reverse_drop_column(step: steps.DropColumn, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    if old.generated is None:
        raise PlanError(
            f"dropping {step.table}.{old.name} cannot be undone: its values would be lost"
        )
    return (steps.AddColumn(step.table, old),)


@apply_by_type.register
def alter_column(step: steps.AlterColumn, schema: Schema) -> Schema:
    """ALTER COLUMN with a whole definition: only the options stay if they are not given."""
    table = require_table(schema, step.table)
    old, new = require_column(table, step.column.name), step.column
    if not is_type_change_allowed(old.type, new.type):
        raise InvalidDefinitionError(
            f"Cannot change type of column `{old.name}` from `{name_type(old.type)}` to"
            f" `{name_type(new.type)}`"
        )
    given = {name for name, _ in new.options}
    column = replace(
        new,
        name=old.name,
        allow_commit_timestamp=new.allow_commit_timestamp
        or (old.allow_commit_timestamp and COMMIT_OPTION not in given),
        options=(*(o for o in old.options if o[0] not in given), *new.options),
    )
    return replace_column(schema, table, column)


@reverse_by_type.register
def reverse_alter_column(step: steps.AlterColumn, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column.name)
    return (steps.AlterColumn(step.table, old),)


@apply_by_type.register
def set_not_null(step: steps.SetNotNull, schema: Schema) -> Schema:
    """SET NOT NULL | DROP NOT NULL."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    return replace_column(schema, table, replace(column, not_null=step.not_null))


@reverse_by_type.register
def reverse_set_not_null(step: steps.SetNotNull, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetNotNull(step.table, step.column, old.not_null),)


@apply_by_type.register
def set_type(step: steps.SetType, schema: Schema) -> Schema:
    """ALTER COLUMN TYPE."""
    column = require_column(require_table(schema, step.table), step.column)
    not_null = column.not_null if step.not_null is None else step.not_null
    new = replace(column, type=step.type, not_null=not_null)
    return alter_column(steps.AlterColumn(step.table, new), schema)


@reverse_by_type.register
def reverse_set_type(step: steps.SetType, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    not_null = None if step.not_null is None else old.not_null
    return (steps.SetType(step.table, step.column, old.type, not_null),)


@apply_by_type.register
def set_default(step: steps.SetDefault, schema: Schema) -> Schema:
    """SET DEFAULT | DROP DEFAULT: ON UPDATE needs the default."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    if step.expression is not None and column.generated is not None:
        raise SchemaError(
            f"Column {table.name}.{column.name} with a DEFAULT value cannot be a generated column"
            " and vice versa."
        )
    return replace_column(schema, table, replace(column, default=step.expression))


@reverse_by_type.register
def reverse_set_default(step: steps.SetDefault, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetDefault(step.table, step.column, old.default),)


@apply_by_type.register
def set_on_update(step: steps.SetOnUpdate, schema: Schema) -> Schema:
    """SET ON UPDATE | DROP ON UPDATE."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    return replace_column(schema, table, replace(column, on_update=step.expression))


@reverse_by_type.register
def reverse_set_on_update(step: steps.SetOnUpdate, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetOnUpdate(step.table, step.column, old.on_update),)


@apply_by_type.register
def set_column_options(step: steps.SetColumnOptions, schema: Schema) -> Schema:
    """SET OPTIONS of a column."""
    table = require_table(schema, step.table)
    column = require_column(table, step.column)
    for name, value in step.options:
        if name not in COLUMN_OPTIONS:
            raise InvalidDefinitionError(f"Option: {name} is unknown.")
        is_commit = name == COMMIT_OPTION
        commits = is_commit and value is not None and value.lower() == "true"
        options = change_options(column.options, ((name, None if commits else value),))
        column = replace(column, options=options)
        if is_commit:
            column = replace(column, allow_commit_timestamp=commits)
    return replace_column(schema, table, column)


@reverse_by_type.register
def reverse_set_column_options(step: steps.SetColumnOptions, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    before_step = dict(old.options)
    if old.allow_commit_timestamp:
        before_step[COMMIT_OPTION] = "true"
    options = tuple((name, before_step.get(name)) for name, _ in step.options)
    return (steps.SetColumnOptions(step.table, step.column, options),)


def change_options(
    options: tuple[tuple[str, str], ...], changes: tuple[tuple[str, str | None], ...]
) -> tuple[tuple[str, str], ...]:
    """Options after others were set; None removes one."""
    after = dict(options) | dict(changes)
    return tuple((name, value) for name, value in after.items() if value is not None)


@apply_by_type.register
def set_table_options(step: steps.SetTableOptions, schema: Schema) -> Schema:
    """SET OPTIONS of a table."""
    table = require_table(schema, step.table)
    options = change_options(table.options, step.options)
    return replace_table(schema, replace(table, options=options))


@reverse_by_type.register
def reverse_set_table_options(step: steps.SetTableOptions, before: Schema) -> tuple[Step, ...]:
    old = dict(require_table(before, step.table).options)
    options = tuple((name, old.get(name)) for name, _ in step.options)
    return (steps.SetTableOptions(step.table, options),)


@apply_by_type.register
def add_foreign_key(step: steps.AddForeignKey, schema: Schema) -> Schema:
    """ADD FOREIGN KEY: both tables must exist."""
    table, key = require_table(schema, step.table), step.foreign_key
    require_table(schema, key.referenced_table)
    return replace_table(schema, replace(table, foreign_keys=(*table.foreign_keys, key)))


@reverse_by_type.register
def reverse_add_foreign_key(step: steps.AddForeignKey, before: Schema) -> tuple[Step, ...]:
    if step.foreign_key.name is None:
        raise PlanError(
            "a FOREIGN KEY without a name cannot be undone: give it a name with CONSTRAINT"
        )
    return (steps.DropConstraint(step.table, step.foreign_key.name),)


@apply_by_type.register
def add_check(step: steps.AddCheck, schema: Schema) -> Schema:
    """ADD CHECK."""
    table = require_table(schema, step.table)
    return replace_table(schema, replace(table, checks=(*table.checks, step.check)))


@reverse_by_type.register
def reverse_add_check(step: steps.AddCheck, before: Schema) -> tuple[Step, ...]:
    if step.check.name is None:
        raise PlanError("a CHECK without a name cannot be undone: give it a name with CONSTRAINT")
    return (steps.DropConstraint(step.table, step.check.name),)


@apply_by_type.register
def drop_constraint(step: steps.DropConstraint, schema: Schema) -> Schema:
    """DROP CONSTRAINT: a foreign key or a check."""
    table = require_table(schema, step.table)
    keys = tuple(k for k in table.foreign_keys if not same_name(k.label, step.name))
    checks = tuple(c for c in table.checks if not same_name(c.label, step.name))
    if keys == table.foreign_keys and checks == table.checks:
        raise ConstraintNotFoundError(step.name, table.name)
    return replace_table(schema, replace(table, foreign_keys=keys, checks=checks))


@apply_by_type.register
def set_row_deletion_policy(step: steps.SetRowDeletionPolicy, schema: Schema) -> Schema:
    """ADD | REPLACE | DROP ROW DELETION POLICY."""
    table = require_table(schema, step.table)
    if table.row_deletion_policy is None and (step.policy is None or step.replaces):
        raise InvalidDefinitionError(f"ROW DELETION POLICY does not exist on table {table.name}.")
    return replace_table(schema, replace(table, row_deletion_policy=step.policy))


@reverse_by_type.register
def reverse_set_row_deletion_policy(
    step: steps.SetRowDeletionPolicy, before: Schema
) -> tuple[Step, ...]:
    old = require_table(before, step.table).row_deletion_policy
    replaces = step.policy is not None and old is not None
    return (steps.SetRowDeletionPolicy(step.table, old, replaces),)


@apply_by_type.register
def set_on_delete(step: steps.SetOnDelete, schema: Schema) -> Schema:
    """SET ON DELETE of an interleaved table."""
    table = require_table(schema, step.table)
    if table.interleave is None:
        raise InvalidDefinitionError(
            f"Cannot SET ON DELETE on table {table.name} that does not have an INTERLEAVE clause."
        )
    interleave = replace(table.interleave, on_delete=step.on_delete)
    return replace_table(schema, replace(table, interleave=interleave))


@apply_by_type.register
def set_interleave(step: steps.SetInterleave, schema: Schema) -> Schema:
    """SET INTERLEAVE IN."""
    table = replace(require_table(schema, step.table), interleave=step.interleave)
    check_interleave(schema, table)
    return replace_table(schema, table)
