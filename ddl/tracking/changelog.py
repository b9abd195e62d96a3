"""History tables: each version of a row, by commit timestamp."""

from __future__ import annotations

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import choose_free_name, find_named_table
from spanner_schema.model.schema import (
    Column,
    Dialect,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    Schema,
    Table,
)
from spanner_schema.model.steps import CreateTable


def make_history_table(
    schema: Schema,
    table_name: str,
    *,
    interleaved: bool = True,
    name: str | None = None,
    timestamp: str | None = None,
    keep_days: int | None = None,
) -> CreateTable:
    """The step that creates a history table: a table's key, the commit timestamp, its columns.

    An interleaved history is stored beside its row and deleted with it; one that stands apart
    outlives its row. ``keep_days`` deletes older versions. The commit timestamp comes last in the
    key, because first it would be a hot spot. Without a ``name`` and the name of the ``timestamp``
    they are DocumentsHistory and ChangedAt; documents_history and changed_at in PostgreSQL's
    dialect. Raises PlanError.
    """
    postgres = schema.dialect is Dialect.POSTGRESQL
    timestamp = timestamp or ("changed_at" if postgres else "ChangedAt")
    table = find_named_table(schema, table_name)
    if not table.primary_key:
        raise PlanError(
            f"table {table.name} has no primary key: choose a table whose rows can be told apart"
        )
    if table.column(timestamp) is not None:
        raise PlanError(
            f"{table.name} has a column {timestamp}: choose another name with --timestamp"
        )
    if keep_days is not None and keep_days < 1:
        raise PlanError(f"invalid --keep-days {keep_days}: use at least 1")
    suffix = "_history" if postgres else "History"
    stamp = Column(timestamp, Type(TypeCode.TIMESTAMP), not_null=True, allow_commit_timestamp=True)
    keys = {part.column.casefold() for part in table.primary_key}
    columns = [
        copy_column(column, key=column.name.casefold() in keys)
        for column in table.columns
        if column.generated is None or column.name.casefold() in keys
    ]
    history = Table(
        choose_free_name(schema, name or table.name, "" if name else suffix),
        tuple(
            [c for c in columns if c.name.casefold() in keys]
            + [stamp]
            + [c for c in columns if c.name.casefold() not in keys]
        ),
        (*table.primary_key, KeyPart(timestamp)),
        interleave=Interleave(table.name, OnDelete.CASCADE) if interleaved else None,
        row_deletion_policy=RowDeletionPolicy(timestamp, keep_days) if keep_days else None,
    )
    return CreateTable(history)


def copy_column(column: Column, key: bool) -> Column:
    """A column as the history has it: without default, expression and ON UPDATE. A key column that
    holds commit timestamps does so in a table that is interleaved in its own, too."""
    stamp = key and column.allow_commit_timestamp
    not_null = key and column.not_null
    return Column(column.name, column.type, not_null=not_null, allow_commit_timestamp=stamp)
