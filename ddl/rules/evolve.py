"""What a step does to a schema and the way back from it, and the schema that statements make, with
Spanner's refusals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import ddl.rules.table_changes
import ddl.rules.table_renames  # noqa: F401 (registers what is done with its steps)
from ddl.rules.dispatch import apply_by_type, reverse_by_type
from ddl.rules.refusals import check_change_stream, check_index
from ddl.rules.table_changes import change_options
from spanner_schema.model import steps
from spanner_schema.model.errors import DuplicateNameError, NameNotFoundError
from spanner_schema.model.names import check_name_is_free, require_table, same_name
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.steps import Step
from spanner_schema.syntax.grants import PRIVILEGE_STATEMENTS, change_grants
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.tokens import split_statements


def apply_step(schema: Schema, step: Step) -> Schema:
    """The schema after a step. Raises SchemaError where Spanner would refuse."""
    after: Schema = apply_by_type(step, schema)
    return after


def reverse_step(step: Step, before: Schema) -> tuple[Step, ...]:
    """The steps that undo a step, which was applied to the schema ``before``.

    Raises PlanError for a step that loses what no statement can restore.
    """
    undo: tuple[Step, ...] = reverse_by_type(step, before)
    return undo


def parse_schema(statements: str | Iterable[str], dialect: Dialect = Dialect.GOOGLESQL) -> Schema:
    """The schema that the statements make of an empty database.

    Raises DdlSyntaxError, and SchemaError for a statement that Spanner would refuse.
    """
    text = statements if isinstance(statements, str) else ";\n".join(statements)
    schema = Schema(dialect=dialect)
    for statement, _ in split_statements(text, dialect):
        step = parse_statement(statement, dialect, list_bundle_types(schema))
        schema = apply_step(schema, step)
    return schema


@apply_by_type.register
def create_index(step: steps.CreateIndex, schema: Schema) -> Schema:
    """CREATE INDEX."""
    index = step.index
    if step.if_not_exists and schema.index(index.name):
        return schema
    check_name_is_free(schema, index.name)
    check_index(require_table(schema, index.table), index)
    return replace(schema, indexes=(*schema.indexes, index))


@reverse_by_type.register
def reverse_create_index(step: steps.CreateIndex, before: Schema) -> tuple[Step, ...]:
    existed = step.if_not_exists and before.index(step.index.name) is not None
    return () if existed else (steps.DropIndex(step.index.name),)


@apply_by_type.register
def drop_index(step: steps.DropIndex, schema: Schema) -> Schema:
    """DROP INDEX."""
    index = schema.index(step.name)
    if index is None:
        vectors = [v for v in schema.verbatim if v.kind == "VECTOR INDEX"]
        if any(same_name(v.name, step.name) for v in vectors):
            return drop_verbatim(steps.DropVerbatim("VECTOR INDEX", step.name), schema)
        if step.if_exists:
            return schema
        raise NameNotFoundError("Index", step.name)
    return replace(schema, indexes=tuple(i for i in schema.indexes if i is not index))


@reverse_by_type.register
def reverse_drop_index(step: steps.DropIndex, before: Schema) -> tuple[Step, ...]:
    index = before.index(step.name)
    return () if index is None else (steps.CreateIndex(index),)


@apply_by_type.register
def alter_index_storing(step: steps.AlterIndexStoring, schema: Schema) -> Schema:
    """ALTER INDEX ADD | DROP STORED COLUMN."""
    old = schema.index(step.index)
    if old is None:
        raise NameNotFoundError("Index", step.index)
    stored = tuple(name for name in old.storing if not same_name(name, step.column))
    new = replace(old, storing=(*stored, step.column) if step.add else stored)
    check_index(require_table(schema, old.table), new)
    return replace(schema, indexes=tuple(new if i is old else i for i in schema.indexes))


@reverse_by_type.register
def reverse_alter_index_storing(step: steps.AlterIndexStoring, before: Schema) -> tuple[Step, ...]:
    return (steps.AlterIndexStoring(step.index, step.column, not step.add),)


@apply_by_type.register
def set_index_options(step: steps.SetIndexOptions, schema: Schema) -> Schema:
    """ALTER INDEX SET OPTIONS."""
    old = schema.index(step.index)
    if old is None:
        raise NameNotFoundError("Index", step.index)
    new = replace(old, options=change_options(old.options, step.options))
    return replace(schema, indexes=tuple(new if i is old else i for i in schema.indexes))


@reverse_by_type.register
def reverse_set_index_options(step: steps.SetIndexOptions, before: Schema) -> tuple[Step, ...]:
    index = before.index(step.index)
    old = dict(index.options) if index is not None else {}
    options = tuple((name, old.get(name)) for name, _ in step.options)
    return (steps.SetIndexOptions(step.index, options),)


@apply_by_type.register
def create_change_stream(step: steps.CreateChangeStream, schema: Schema) -> Schema:
    """CREATE CHANGE STREAM."""
    if step.if_not_exists and schema.change_stream(step.change_stream.name):
        return schema
    check_name_is_free(schema, step.change_stream.name)
    check_change_stream(schema, step.change_stream)
    return replace(schema, change_streams=(*schema.change_streams, step.change_stream))


@reverse_by_type.register
def reverse_create_change_stream(
    step: steps.CreateChangeStream, before: Schema
) -> tuple[Step, ...]:
    return (steps.DropChangeStream(step.change_stream.name),)


@apply_by_type.register
def alter_change_stream(step: steps.AlterChangeStream, schema: Schema) -> Schema:
    """ALTER CHANGE STREAM: what it watches, its options, or both."""
    old = schema.change_stream(step.change_stream.name)
    if old is None:
        raise NameNotFoundError("Change Stream", step.change_stream.name)
    new = old
    if "watches" in step.changes:
        new = replace(new, watches=step.change_stream.watches, for_all=step.change_stream.for_all)
    if "options" in step.changes:
        options = dict(old.options) | dict(step.change_stream.options)
        new = replace(new, options=tuple(options.items()))
    check_change_stream(schema, new)
    streams = tuple(new if s is old else s for s in schema.change_streams)
    return replace(schema, change_streams=streams)


@reverse_by_type.register
def reverse_alter_change_stream(step: steps.AlterChangeStream, before: Schema) -> tuple[Step, ...]:
    old = before.change_stream(step.change_stream.name)
    return () if old is None else (steps.AlterChangeStream(old, step.changes),)


@apply_by_type.register
def drop_change_stream(step: steps.DropChangeStream, schema: Schema) -> Schema:
    """DROP CHANGE STREAM."""
    stream = schema.change_stream(step.name)
    if stream is None:
        if step.if_exists:
            return schema
        raise NameNotFoundError("Change Stream", step.name)
    return replace(
        schema, change_streams=tuple(s for s in schema.change_streams if s is not stream)
    )


@reverse_by_type.register
def reverse_drop_change_stream(step: steps.DropChangeStream, before: Schema) -> tuple[Step, ...]:
    stream = before.change_stream(step.name)
    return () if stream is None else (steps.CreateChangeStream(stream),)


@apply_by_type.register
def alter_database(step: steps.AlterDatabase, schema: Schema) -> Schema:
    """ALTER DATABASE SET OPTIONS: null removes an option."""
    options = dict(schema.options) | dict(step.options)
    return replace(schema, options={k: v for k, v in options.items() if v is not None})


@apply_by_type.register
def create_named_schema(step: steps.CreateNamedSchema, schema: Schema) -> Schema:
    """CREATE SCHEMA."""
    if any(same_name(name, step.name) for name in schema.named_schemas):
        if step.if_not_exists:
            return schema
        raise DuplicateNameError("Schema", step.name)
    return replace(schema, named_schemas=(*schema.named_schemas, step.name))


@apply_by_type.register
def drop_named_schema(step: steps.DropNamedSchema, schema: Schema) -> Schema:
    """DROP SCHEMA."""
    rest = tuple(name for name in schema.named_schemas if not same_name(name, step.name))
    if rest == schema.named_schemas and not step.if_exists:
        raise NameNotFoundError("Schema", step.name)
    return replace(schema, named_schemas=rest)


@apply_by_type.register
def create_verbatim(step: steps.CreateVerbatim, schema: Schema) -> Schema:
    """CREATE [OR REPLACE] of an object that is kept as text."""
    new = step.item
    replaced = [v.kind == new.kind and same_name(v.name, new.name) for v in schema.verbatim]
    if not any(replaced):
        return replace(schema, verbatim=(*schema.verbatim, new))
    pairs = zip(schema.verbatim, replaced, strict=True)
    return replace(schema, verbatim=tuple(new if is_old else item for item, is_old in pairs))


@apply_by_type.register
def drop_verbatim(step: steps.DropVerbatim, schema: Schema) -> Schema:
    """DROP of an object that is kept as text."""
    rest = tuple(
        item
        for item in schema.verbatim
        if item.kind != step.kind or not same_name(item.name, step.name)
    )
    if rest == schema.verbatim and not step.if_exists:
        kind = "Index" if step.kind.endswith(" INDEX") else step.kind.capitalize()
        raise NameNotFoundError(kind, step.name)
    return replace(schema, verbatim=rest)


@apply_by_type.register
def alter_table_if_exists(step: steps.AlterTableIfExists, schema: Schema) -> Schema:
    """ALTER TABLE IF EXISTS."""
    return schema if schema.table(step.table) is None else apply_step(schema, step.step)


@apply_by_type.register
def apply_other_statement(step: steps.OtherStatement, schema: Schema) -> Schema:
    """GRANT and REVOKE; others change nothing in the model."""
    if step.kind not in PRIVILEGE_STATEMENTS:
        return schema
    return replace(schema, grants=change_grants(schema.grants, step.text, schema.dialect))
