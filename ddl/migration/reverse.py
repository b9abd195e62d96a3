"""The way back from a step: the steps that restore the schema as it was before."""

from __future__ import annotations

from functools import singledispatch

from ddl.model import steps
from ddl.model.errors import PlanError
from ddl.model.names import require_column, require_table
from ddl.model.schema import Schema
from ddl.model.steps import Step


def reverse_step(step: Step, before: Schema) -> tuple[Step, ...]:
    """The steps that undo a step, which was applied to the schema ``before``.

    Raises PlanError for a step that loses what no statement can restore.
    """
    undo: tuple[Step, ...] = _reverse(step, before)
    return undo


@singledispatch
def _reverse(step: object, before: Schema) -> tuple[Step, ...]:
    raise PlanError(f"{type(step).__name__} cannot be undone by a statement")


@_reverse.register
def reverse_create_table(step: steps.CreateTable, before: Schema) -> tuple[Step, ...]:
    existed = step.if_not_exists and before.table(step.table.name) is not None
    return () if existed else (steps.DropTable(step.table.name),)


@_reverse.register
def reverse_rename_tables(step: steps.RenameTables, before: Schema) -> tuple[Step, ...]:
    return (steps.RenameTables(tuple((new, old) for old, new in reversed(step.renames))),)


@_reverse.register
def reverse_add_column(step: steps.AddColumn, before: Schema) -> tuple[Step, ...]:
    existed = require_table(before, step.table).column(step.column.name) is not None
    return () if existed else (steps.DropColumn(step.table, step.column.name),)


@_reverse.register
def reverse_drop_column(step: steps.DropColumn, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    if old.generated is None:
        raise PlanError(
            f"dropping {step.table}.{old.name} cannot be undone: its values would be lost"
        )
    return (steps.AddColumn(step.table, old),)


@_reverse.register
def reverse_alter_column(step: steps.AlterColumn, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column.name)
    return (steps.AlterColumn(step.table, old),)


@_reverse.register
def reverse_set_not_null(step: steps.SetNotNull, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetNotNull(step.table, step.column, old.not_null),)


@_reverse.register
def reverse_set_type(step: steps.SetType, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    not_null = None if step.not_null is None else old.not_null
    return (steps.SetType(step.table, step.column, old.type, not_null),)


@_reverse.register
def reverse_set_default(step: steps.SetDefault, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetDefault(step.table, step.column, old.default),)


@_reverse.register
def reverse_set_on_update(step: steps.SetOnUpdate, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    return (steps.SetOnUpdate(step.table, step.column, old.on_update),)


@_reverse.register
def reverse_set_column_options(step: steps.SetColumnOptions, before: Schema) -> tuple[Step, ...]:
    old = require_column(require_table(before, step.table), step.column)
    value = "true" if old.allow_commit_timestamp else None
    return (steps.SetColumnOptions(step.table, step.column, (("allow_commit_timestamp", value),)),)


@_reverse.register
def reverse_add_check(step: steps.AddCheck, before: Schema) -> tuple[Step, ...]:
    if step.check.name is None:
        raise PlanError("a CHECK without a name cannot be undone: give it a name with CONSTRAINT")
    return (steps.DropConstraint(step.table, step.check.name),)


@_reverse.register
def reverse_add_foreign_key(step: steps.AddForeignKey, before: Schema) -> tuple[Step, ...]:
    if step.foreign_key.name is None:
        raise PlanError(
            "a FOREIGN KEY without a name cannot be undone: give it a name with CONSTRAINT"
        )
    return (steps.DropConstraint(step.table, step.foreign_key.name),)


@_reverse.register
def reverse_set_row_deletion_policy(
    step: steps.SetRowDeletionPolicy, before: Schema
) -> tuple[Step, ...]:
    old = require_table(before, step.table).row_deletion_policy
    replaces = step.policy is not None and old is not None
    return (steps.SetRowDeletionPolicy(step.table, old, replaces),)


@_reverse.register
def reverse_create_index(step: steps.CreateIndex, before: Schema) -> tuple[Step, ...]:
    existed = step.if_not_exists and before.index(step.index.name) is not None
    return () if existed else (steps.DropIndex(step.index.name),)


@_reverse.register
def reverse_drop_index(step: steps.DropIndex, before: Schema) -> tuple[Step, ...]:
    index = before.index(step.name)
    return () if index is None else (steps.CreateIndex(index),)


@_reverse.register
def reverse_alter_index_storing(step: steps.AlterIndexStoring, before: Schema) -> tuple[Step, ...]:
    return (steps.AlterIndexStoring(step.index, step.column, not step.add),)


@_reverse.register
def reverse_create_change_stream(
    step: steps.CreateChangeStream, before: Schema
) -> tuple[Step, ...]:
    return (steps.DropChangeStream(step.change_stream.name),)


@_reverse.register
def reverse_drop_change_stream(step: steps.DropChangeStream, before: Schema) -> tuple[Step, ...]:
    stream = before.change_stream(step.name)
    return () if stream is None else (steps.CreateChangeStream(stream),)


@_reverse.register
def reverse_alter_change_stream(step: steps.AlterChangeStream, before: Schema) -> tuple[Step, ...]:
    old = before.change_stream(step.change_stream.name)
    return () if old is None else (steps.AlterChangeStream(old, step.changes),)
