"""What a step does to a schema: a pure function, with Spanner's refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from ddl import steps
from ddl.errors import DuplicateNameError, NameNotFoundError, SchemaError
from ddl.references import columns_in
from ddl.schema import (
    ChangeStream,
    Column,
    Index,
    Schema,
    Table,
    Type,
    TypeCode,
)
from ddl.steps import Step

INDEX_KEY_PARTS_MAX = 16
COMMIT_TIMESTAMP = "PENDING_COMMIT_TIMESTAMP()"


def same(left: str, right: str) -> bool:
    """Names are compared without regard to case."""
    return left.casefold() == right.casefold()


def apply(schema: Schema, step: Step) -> Schema:
    """The schema after a step. Raises SchemaError where Spanner would refuse."""
    return _apply(step, schema)


@singledispatch
def _apply(step: object, schema: Schema) -> Schema:  # noqa: ARG001 (the handlers' signature)
    raise SchemaError(f"{type(step).__name__} cannot be applied to a schema")


def table_of(schema: Schema, name: str) -> Table:
    """The table, or NameNotFoundError."""
    table = schema.table(name)
    if table is None:
        raise NameNotFoundError("Table", name)
    return table


def column_of(table: Table, name: str) -> Column:
    """The column, or NameNotFoundError."""
    column = table.column(name)
    if column is None:
        raise NameNotFoundError("Column", f"{table.name}.{name}")
    return column


def free(schema: Schema, name: str) -> None:
    """Tables, indexes, change streams and views share one space of names."""
    if any(items(name) for items in (schema.table, schema.index, schema.change_stream)) or any(
        same(v.name, name) for v in schema.verbatim if v.kind != "ROLE"
    ):
        raise DuplicateNameError("Object", name)


def with_table(schema: Schema, table: Table) -> Schema:
    """The schema with a table in the place of the one with its name."""
    return replace(
        schema, tables=tuple(table if same(t.name, table.name) else t for t in schema.tables)
    )


def with_column(schema: Schema, table: Table, column: Column) -> Schema:
    """The schema with a column in the place of the one with its name; checked."""
    check_column(table, column)
    columns = tuple(column if same(c.name, column.name) else c for c in table.columns)
    return with_table(schema, replace(table, columns=columns))


def check_column(table: Table, column: Column) -> None:
    """Spanner's rules for one column of a table."""
    where = f"{table.name}.{column.name}"
    if column.allow_commit_timestamp and column.type.code not in {
        TypeCode.TIMESTAMP,
        TypeCode.INT64,
    }:
        raise SchemaError(
            f"Option allow_commit_timestamp is only allowed on TIMESTAMP columns, not {where}."
        )
    if column.on_update is not None:
        check_on_update(table, column, where)
    if column.generated is not None:
        check_generated(table, column, where)


def check_on_update(table: Table, column: Column, where: str) -> None:
    """ON UPDATE: the commit timestamp only, with the same DEFAULT, outside the key."""
    if normal(column.on_update) != COMMIT_TIMESTAMP:
        raise SchemaError(f"ON UPDATE of {where} must be {COMMIT_TIMESTAMP}.")
    if normal(column.default) != COMMIT_TIMESTAMP:
        raise SchemaError(f"ON UPDATE of {where} needs DEFAULT ({COMMIT_TIMESTAMP}).")
    if not column.allow_commit_timestamp:
        raise SchemaError(f"ON UPDATE of {where} needs the option allow_commit_timestamp=true.")
    if any(same(part.column, column.name) for part in table.primary_key):
        raise SchemaError(f"ON UPDATE is not allowed on the key column {where}.")


def normal(expression: str | None) -> str:
    """An expression for comparison: no blanks, capitals, without PostgreSQL's prefix."""
    return "".join((expression or "").split()).upper().removeprefix("SPANNER.")


def check_generated(table: Table, column: Column, where: str) -> None:
    """A generated column depends on columns of its row, none of them a commit timestamp."""
    for name in columns_in(column.generated or "", table):
        used = table.column(name)
        if used is not None and used.allow_commit_timestamp:
            raise SchemaError(
                f"Generated column {where} may not depend on the commit timestamp column {name}."
            )


def check_table(schema: Schema, table: Table) -> None:
    """Spanner's rules for a table as a whole."""
    seen: set[str] = set()
    for column in table.columns:
        if column.name.casefold() in seen:
            raise SchemaError(f"Duplicate column name {table.name}.{column.name}.")
        seen.add(column.name.casefold())
        check_column(table, column)
    for part in table.primary_key:
        code = column_of(table, part.column).type.code
        if code in {TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON, TypeCode.TOKENLIST}:
            raise SchemaError(
                f"Key column {table.name}.{part.column} has type {code.value},"
                " but is part of the primary key."
            )
    if table.interleave is not None:
        check_interleave(schema, table)


def check_interleave(schema: Schema, table: Table) -> None:
    """A child's key begins with its parent's, and both agree on commit timestamps."""
    assert table.interleave is not None
    parent = table_of(schema, table.interleave.parent)
    if len(table.primary_key) < len(parent.primary_key):
        raise SchemaError(f"The key of {table.name} must begin with the key of {parent.name}.")
    for mine, theirs in zip(table.primary_key, parent.primary_key, strict=False):
        if not same(mine.column, theirs.column) or mine.descending != theirs.descending:
            raise SchemaError(f"The key of {table.name} must begin with the key of {parent.name}.")
        ours, others = column_of(table, mine.column), column_of(parent, theirs.column)
        if ours.type != others.type:
            raise SchemaError(f"{table.name}.{ours.name} must have the type of {parent.name}'s.")


@_apply.register
def _(step: steps.CreateTable, schema: Schema) -> Schema:
    if step.if_not_exists and schema.table(step.table.name):
        return schema
    free(schema, step.table.name)
    check_table(schema, step.table)
    return replace(schema, tables=(*schema.tables, step.table))


@_apply.register
def _(step: steps.DropTable, schema: Schema) -> Schema:
    if step.if_exists and schema.table(step.name) is None:
        return schema
    table = table_of(schema, step.name)
    children = [
        t.name for t in schema.tables if t.interleave and same(t.interleave.parent, table.name)
    ]
    if children:
        raise SchemaError(
            f"Cannot drop table {table.name} with interleaved tables: {', '.join(children)}."
        )
    indexes = [index.name for index in schema.indexes_of(table.name)]
    if indexes:
        raise SchemaError(f"Cannot drop table {table.name} with indices: {', '.join(indexes)}.")
    return replace(schema, tables=tuple(t for t in schema.tables if t is not table))


@_apply.register
def _(step: steps.AddColumn, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    if table.column(step.column.name):
        if step.if_not_exists:
            return schema
        raise SchemaError(f"Duplicate column name {table.name}.{step.column.name}.")
    column = step.column
    if column.not_null and column.default is None and column.generated is None:
        raise SchemaError(
            f"Cannot add NOT NULL column {table.name}.{column.name} to existing table {table.name}."
        )
    grown = replace(table, columns=(*table.columns, column))
    check_column(grown, column)
    return with_table(schema, grown)


@_apply.register
def _(step: steps.DropColumn, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    column = column_of(table, step.column)
    check_unused(schema, table, column)
    kept = tuple(c for c in table.columns if c is not column)
    return with_table(schema, replace(table, columns=kept))


def check_unused(schema: Schema, table: Table, column: Column) -> None:
    """A column that something depends on cannot be dropped."""
    where = f"{table.name}.{column.name}"
    if any(same(part.column, column.name) for part in table.primary_key):
        raise SchemaError(f"Cannot drop key column {where}.")
    for index in schema.indexes_of(table.name):
        used = [part.column for part in index.parts] + list(index.storing)
        if any(same(name, column.name) for name in used):
            raise SchemaError(f"Cannot drop column {where} used by index {index.name}.")
    for other in table.columns:
        if other.generated and any(
            same(name, column.name) for name in columns_in(other.generated, table)
        ):
            raise SchemaError(f"Cannot drop column {where} used by generated column {other.name}.")


@_apply.register
def _(step: steps.AlterColumn, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    old, new = column_of(table, step.column.name), step.column
    if old.type.code is not new.type.code and {old.type.code, new.type.code} != {
        TypeCode.STRING,
        TypeCode.BYTES,
    }:
        raise SchemaError(
            f"Cannot change type of column `{table.name}.{old.name}` from"
            f" `{old.type.code.value}` to `{new.type.code.value}`."
        )
    kept = replace(
        new,
        name=old.name,
        default=new.default if new.default is not None else old.default,
        on_update=new.on_update if new.on_update is not None else old.on_update,
        allow_commit_timestamp=old.allow_commit_timestamp,
    )
    return with_column(schema, table, kept)


@_apply.register
def _(step: steps.SetNotNull, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    column = column_of(table, step.column)
    return with_column(schema, table, replace(column, not_null=step.not_null))


@_apply.register
def _(step: steps.SetType, schema: Schema) -> Schema:
    column = column_of(table_of(schema, step.table), step.column)
    return apply(schema, steps.AlterColumn(step.table, replace(column, type=step.type)))


@_apply.register
def _(step: steps.SetDefault, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    column = column_of(table, step.column)
    if step.expression is None and column.on_update is not None:
        raise SchemaError(
            f"Cannot drop the default of {table.name}.{column.name} while it has ON UPDATE."
        )
    return with_column(schema, table, replace(column, default=step.expression))


@_apply.register
def _(step: steps.SetOnUpdate, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    column = column_of(table, step.column)
    return with_column(schema, table, replace(column, on_update=step.expression))


@_apply.register
def _(step: steps.SetColumnOptions, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    column = column_of(table, step.column)
    for name, value in step.options:
        if name != "allow_commit_timestamp":
            raise SchemaError(f"Option: {name} is unknown.")
        column = replace(column, allow_commit_timestamp=(value or "").lower() == "true")
    return with_column(schema, table, column)


@_apply.register
def _(step: steps.AddForeignKey, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    target = table_of(schema, step.foreign_key.referenced_table)
    for name in step.foreign_key.columns:
        column_of(table, name)
    for name in step.foreign_key.referenced_columns:
        column_of(target, name)
    return with_table(schema, replace(table, foreign_keys=(*table.foreign_keys, step.foreign_key)))


@_apply.register
def _(step: steps.AddCheck, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    return with_table(schema, replace(table, checks=(*table.checks, step.check)))


@_apply.register
def _(step: steps.DropConstraint, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    keys = tuple(k for k in table.foreign_keys if k.name is None or not same(k.name, step.name))
    checks = tuple(c for c in table.checks if c.name is None or not same(c.name, step.name))
    if keys == table.foreign_keys and checks == table.checks:
        raise SchemaError(f"{step.name} is not a constraint in {table.name}.")
    return with_table(schema, replace(table, foreign_keys=keys, checks=checks))


@_apply.register
def _(step: steps.SetRowDeletionPolicy, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    if step.policy is not None:
        column_of(table, step.policy.column)
    elif table.row_deletion_policy is None:
        raise SchemaError(f"Table {table.name} has no row deletion policy.")
    return with_table(schema, replace(table, row_deletion_policy=step.policy))


@_apply.register
def _(step: steps.SetOnDelete, schema: Schema) -> Schema:
    table = table_of(schema, step.table)
    if table.interleave is None:
        raise SchemaError(f"Table {table.name} is not interleaved in another.")
    interleave = replace(table.interleave, on_delete=step.on_delete)
    return with_table(schema, replace(table, interleave=interleave))


@_apply.register
def _(step: steps.SetInterleave, schema: Schema) -> Schema:
    table = replace(table_of(schema, step.table), interleave=step.interleave)
    check_interleave(schema, table)
    return with_table(schema, table)


@_apply.register
def _(step: steps.CreateIndex, schema: Schema) -> Schema:
    index = step.index
    if step.if_not_exists and schema.index(index.name):
        return schema
    free(schema, index.name)
    table = table_of(schema, index.table)
    check_index(table, index)
    return replace(schema, indexes=(*schema.indexes, index))


def check_index(table: Table, index: Index) -> None:
    """An index names columns of its table, each once, of a type that sorts."""
    if len(index.parts) > INDEX_KEY_PARTS_MAX:
        raise SchemaError(
            f"Index {index.name} has {len(index.parts)} key parts; {INDEX_KEY_PARTS_MAX} is the"
            " limit."
        )
    seen: set[str] = set()
    for name in [part.column for part in index.parts] + list(index.storing):
        column = table.column(name)
        if column is None:
            raise SchemaError(
                f"Index {index.name} specifies key column {name}"
                f" which does not exist in the index's base table {table.name}."
            )
        if name.casefold() in seen:
            raise SchemaError(f"Index {index.name} names column {name} twice.")
        seen.add(name.casefold())
    for part in index.parts:
        if not sorts(column_of(table, part.column).type):
            raise SchemaError(f"Cannot index column {table.name}.{part.column}: its type.")


def sorts(type_: Type) -> bool:
    """True for the types that may be part of a key."""
    return type_.code not in {
        TypeCode.ARRAY,
        TypeCode.STRUCT,
        TypeCode.JSON,
        TypeCode.PROTO,
    }


@_apply.register
def _(step: steps.DropIndex, schema: Schema) -> Schema:
    index = schema.index(step.name)
    if index is None:
        if step.if_exists:
            return schema
        raise NameNotFoundError("Index", step.name)
    return replace(schema, indexes=tuple(i for i in schema.indexes if i is not index))


@_apply.register
def _(step: steps.AlterIndexStoring, schema: Schema) -> Schema:
    index = schema.index(step.index)
    if index is None:
        raise NameNotFoundError("Index", step.index)
    stored = tuple(name for name in index.storing if not same(name, step.column))
    changed = replace(index, storing=(*stored, step.column) if step.add else stored)
    check_index(table_of(schema, index.table), changed)
    return replace(schema, indexes=tuple(changed if i is index else i for i in schema.indexes))


@_apply.register
def _(step: steps.CreateChangeStream, schema: Schema) -> Schema:
    free(schema, step.change_stream.name)
    check_change_stream(schema, step.change_stream)
    return replace(schema, change_streams=(*schema.change_streams, step.change_stream))


def check_change_stream(schema: Schema, stream: ChangeStream) -> None:
    """A change stream watches tables and columns that are there."""
    for watched in stream.watches:
        table = table_of(schema, watched.table)
        for name in watched.columns or ():
            column_of(table, name)


@_apply.register
def _(step: steps.AlterChangeStream, schema: Schema) -> Schema:
    old = schema.change_stream(step.change_stream.name)
    if old is None:
        raise NameNotFoundError("Change Stream", step.change_stream.name)
    new = old
    if "watches" in step.changes:
        new = replace(new, watches=step.change_stream.watches, for_all=step.change_stream.for_all)
    if "options" in step.changes:
        merged = dict(old.options) | dict(step.change_stream.options)
        new = replace(new, options=tuple(merged.items()))
    check_change_stream(schema, new)
    streams = tuple(new if s is old else s for s in schema.change_streams)
    return replace(schema, change_streams=streams)


@_apply.register
def _(step: steps.DropChangeStream, schema: Schema) -> Schema:
    stream = schema.change_stream(step.name)
    if stream is None:
        raise NameNotFoundError("Change Stream", step.name)
    return replace(
        schema, change_streams=tuple(s for s in schema.change_streams if s is not stream)
    )


@_apply.register
def _(step: steps.AlterDatabase, schema: Schema) -> Schema:
    merged = dict(schema.options)
    for name, value in step.options:
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return replace(schema, options=merged)


@_apply.register
def _(step: steps.CreateNamedSchema, schema: Schema) -> Schema:
    if any(same(name, step.name) for name in schema.named_schemas):
        if step.if_not_exists:
            return schema
        raise DuplicateNameError("Schema", step.name)
    return replace(schema, named_schemas=(*schema.named_schemas, step.name))


@_apply.register
def _(step: steps.DropNamedSchema, schema: Schema) -> Schema:
    kept = tuple(name for name in schema.named_schemas if not same(name, step.name))
    if kept == schema.named_schemas and not step.if_exists:
        raise NameNotFoundError("Schema", step.name)
    return replace(schema, named_schemas=kept)


@_apply.register
def _(step: steps.CreateVerbatim, schema: Schema) -> Schema:
    item = step.item
    there = [v.kind == item.kind and same(v.name, item.name) for v in schema.verbatim]
    if not any(there):
        return replace(schema, verbatim=(*schema.verbatim, item))
    found = tuple(item if is_it else v for v, is_it in zip(schema.verbatim, there, strict=True))
    return replace(schema, verbatim=found)


@_apply.register
def _(step: steps.DropVerbatim, schema: Schema) -> Schema:
    kept = tuple(v for v in schema.verbatim if v.kind != step.kind or not same(v.name, step.name))
    if kept == schema.verbatim and not step.if_exists:
        raise NameNotFoundError(step.kind.capitalize(), step.name)
    return replace(schema, verbatim=kept)


@_apply.register
def _(step: steps.OtherStatement, schema: Schema) -> Schema:  # noqa: ARG001
    return schema
