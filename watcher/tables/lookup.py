"""The columns and indexes of a table, by what they are for."""

from __future__ import annotations

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import drop_default_schema, list_user_tables, same_name, split_name
from spanner_schema.model.schema import Column, Index, KeyPart, Schema, Table
from spanner_schema.model.steps import CreateIndex
from spanner_schema.model.suggestions import suggest_name
from spanner_schema.syntax.render import render_step
from spanner_schema.watched.shards import shard_values
from spanner_schema.watched.tracked import (
    find_own_trackings,
    is_null_filtered,
    is_poll_index,
    list_streams,
)
from watcher.model.errors import NotWatchableError, TableNotFoundError
from watcher.tables.values import ShardValue, TableSpec


def get_table(schema: Schema, name: str, database_name: str) -> Table:
    """A table of a schema. Raises TableNotFoundError."""
    table = schema.table(drop_default_schema(name))
    if table is None:
        advice = suggest_name(name, list_user_tables(schema), "it has")
        raise TableNotFoundError(f"{database_name} has no table {name}; {advice}")
    return table


def get_column(table: Table, name: str) -> Column:
    """A column of a table. Raises NotWatchableError."""
    column = table.column(name)
    if column is None:
        raise NotWatchableError(f"table {table.name} has no column {name}")
    return column


def list_primary_key(table: Table) -> tuple[str, ...]:
    """The columns of the primary key, in order."""
    return tuple(part.column for part in table.primary_key)


def list_descending(table: Table) -> tuple[str, ...]:
    """The columns of the primary key that descend."""
    return tuple(part.column for part in table.primary_key if part.descending)


def get_index(schema: Schema, table: Table, name: str) -> Index:
    """An index of a table. Raises NotWatchableError."""
    for index in schema.indexes_of(table.name):
        if is_called(index, name):
            return index
    raise NotWatchableError(f"table {table.name} has no index {name}")


def find_polling_index(schema: Schema, table: Table, name: str | None, database_name: str) -> Index:
    """The null-filtered index on a computed shard and a commit timestamp; of a name, if one is
    given. Raises NotWatchableError."""
    for index in schema.indexes_of(table.name):
        if is_poll_index(table, index) and (name is None or is_called(index, name)):
            return index
    raise NotWatchableError(
        f"table {table.name} has no null-filtered index on a computed shard and a commit"
        f" timestamp; {advise_on_polling(schema, table, database_name)}"
    )


def is_called(index: Index, name: str) -> bool:
    """True for the index of this name, in which the schema of its table may be left out."""
    return same_name(name, index.name) or same_name(name, split_name(index.name)[1])


def advise_on_polling(schema: Schema, table: Table, database_name: str) -> str:
    """How a table without such an index can be watched: as it is tracked, if it is."""
    for tracking in find_own_trackings(schema, table):
        shard, index = tracking.shard.column.name, tracking.index.name
        return (
            f"applications write the shard {shard} of its index {index}: say so with --shard time"
            f" (or fixed, not-null) --shard-column {shard}, the same in [table.{table.name}], or in"
            f" Spark with the options shard and shardColumn = {shard}"
        )
    streams = list_streams(schema, table)
    if streams:
        return (
            f"the change stream {streams[0]} has its changes: read it with --stream {streams[0]}"
            " (capture = 'change-stream'); there is nothing to clear"
        )
    return (
        "make it watchable: spanner-watcher ddl apply"
        f" --database spanner://{database_name} --table {table.name}"
    )


def find_index(schema: Schema, table: Table, shard: Column | None, timestamp: Column) -> str | None:
    """A null-filtered index on exactly (shard, timestamp), if there is one."""
    columns = [column.name.casefold() for column in (shard, timestamp) if column is not None]
    for index in schema.indexes_of(table.name):
        parts = [part.column.casefold() for part in index.parts]
        if parts == columns and is_null_filtered(index):
            return index.name
    return None


def find_change_set_index(schema: Schema, table: Table, column: str) -> str:
    """The name of an index that begins with the change-set id. Raises NotWatchableError."""
    for index in schema.indexes_of(table.name):
        if index.parts[0].column == column and not index.null_filtered:
            return index.name
    missing = Index(f"{table.name}ByChangeSet", table.name, (KeyPart(column),))
    raise NotWatchableError(
        f"table {table.name} has no index that begins with {column}: every poll would scan it;"
        f" {render_step(CreateIndex(missing), schema.dialect)}"
    )


def find_timestamp_column(table: Table, spec: TableSpec) -> Column:
    """The commit-timestamp column that the configuration names, or the only one."""
    if spec.timestamp_column is not None:
        column = get_column(table, spec.timestamp_column)
        if not column.allow_commit_timestamp:
            raise NotWatchableError(
                f"{table.name}.{column.name} does not hold commit timestamps"
                " (allow_commit_timestamp is not set); name a column that does"
            )
        return column
    columns = [column for column in table.columns if column.allow_commit_timestamp]
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns) or "none"
        raise NotWatchableError(
            f"table {table.name} has these commit-timestamp columns: {names}; set timestamp_column"
            " to the one to watch"
        )
    return columns[0]


def find_deleted_column(table: Table, spec: TableSpec) -> str | None:
    """The column of a soft delete. Raises NotWatchableError unless it is BOOL or TIMESTAMP."""
    if spec.deleted is None:
        return None
    column = get_column(table, spec.deleted)
    if column.type.code not in (TypeCode.BOOL, TypeCode.TIMESTAMP):
        raise NotWatchableError(
            f"{table.name}.{column.name} cannot mark deletes: it must be BOOL or TIMESTAMP"
        )
    return column.name


def list_computed_values(table: Table, shard: Column) -> tuple[ShardValue, ...]:
    """The values of a computed shard. Raises NotWatchableError."""
    values = shard_values(shard.generated or "")
    if values is None:
        raise NotWatchableError(
            f"the values of {table.name}.{shard.name} do not follow from its expression"
            f" ({shard.generated}), which must be MOD(..., number), or a sum or a choice of such:"
            f" name it with --shard not-null --shard-column {shard.name}, the same in"
            f" [table.{table.name}], or in Spark with the options shard and shardColumn"
        )
    return values


def list_shard_values(
    table: Table, shard: Column | None, spec: TableSpec
) -> tuple[ShardValue, ...] | None:
    """The shard values that a query names."""
    if shard is None or spec.shard in ("not-null", "time", "none"):
        return None
    values = spec.shard_values or shard_values(shard.generated or "")
    if values is None:
        raise NotWatchableError(
            f"the values of {table.name}.{shard.name} do not follow from its expression; set"
            " shard_values, or shard = 'not-null'"
        )
    return tuple(values)
