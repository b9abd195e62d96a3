"""The history table of the commit-timestamp document: what a row was, each time it changed."""

from __future__ import annotations

from ddl.errors import PlanError
from ddl.names import choose_free_name
from ddl.schema import (
    Column,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    Schema,
    Table,
    Type,
    TypeCode,
)
from ddl.steps import CreateTable


def make_history_table(
    schema: Schema,
    table_name: str,
    *,
    interleaved: bool = True,
    name: str | None = None,
    timestamp: str = "ChangedAt",
    keep_days: int | None = None,
) -> CreateTable:
    """A history of a table: its key, then the commit timestamp last in the key, then its columns.

    Interleaved, the history lies with its row and goes with it; not interleaved it outlives it.
    ``keep_days`` deletes what is older. Spanner: a commit timestamp must not come first in a key.
    Raises PlanError.
    """
    table = schema.table(table_name)
    if table is None:
        known = ", ".join(each.name for each in schema.tables) or "none"
        raise PlanError(f"there is no table {table_name}; tables of this schema: {known}")
    if not table.primary_key:
        raise PlanError(f"table {table.name} has no primary key, so its rows have no history")
    if table.column(timestamp) is not None:
        raise PlanError(f"{table.name} has a column {timestamp}: choose another with --timestamp")
    if keep_days is not None and keep_days < 1:
        raise PlanError("the history must be kept for a day at least")
    stamp = Column(timestamp, Type(TypeCode.TIMESTAMP), not_null=True, allow_commit_timestamp=True)
    keys = {part.column.casefold() for part in table.primary_key}
    copied = [
        copy_column(column, key=column.name.casefold() in keys)
        for column in table.columns
        if column.generated is None or column.name.casefold() in keys
    ]
    history = Table(
        choose_free_name(schema, name or f"{table.name}History"),
        tuple(
            [c for c in copied if c.name.casefold() in keys]
            + [stamp]
            + [c for c in copied if c.name.casefold() not in keys]
        ),
        (*table.primary_key, KeyPart(timestamp)),
        interleave=Interleave(table.name, OnDelete.CASCADE) if interleaved else None,
        row_deletion_policy=RowDeletionPolicy(timestamp, keep_days) if keep_days else None,
    )
    return CreateTable(history)


def copy_column(column: Column, key: bool) -> Column:
    """A column as the history has it: no default, nothing computed, nothing written by itself."""
    return Column(column.name, column.type, not_null=key and column.not_null)
