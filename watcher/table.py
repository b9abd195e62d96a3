"""What is known of a table that is watched: found in the schema, never guessed."""

from __future__ import annotations

from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from ddl.parse import parse_schema
from ddl.schema import Column, Index, Schema, Table, Type, TypeCode
from ddl.shards import shard_values
from watcher.errors import NotWatchableError, TableNotFoundError

ShardValue = int | str


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table with its commit-timestamp column, and the shard column and index where it has them.

    ``shard_values`` are all values that the shard can have; None when they cannot be listed: then a
    query asks for ``IS NOT NULL`` only, or, with ``shard_interval`` (day, hour, minute), for the
    intervals that the window touches. ``index`` None polls through whatever Spanner chooses.
    ``processed_column`` is set for the strategy of that name. ``deleted`` names a BOOL or TIMESTAMP
    column that marks a soft delete.
    """

    name: str
    columns: tuple[tuple[str, Type], ...]
    primary_key: tuple[str, ...]
    timestamp_column: str
    shard_column: str | None
    shard_values: tuple[ShardValue, ...] | None
    index: str | None
    processed_column: str | None = None
    clears_by_null: bool = True
    shard_interval: str | None = None
    deleted: str | None = None

    def column_type(self, name: str) -> Type:
        """The type of a column, or INT64 for a hidden one."""
        return next((type_ for n, type_ in self.columns if n == name), Type(TypeCode.INT64))


def discover(database: Database, name: str) -> WatchedTable:
    """Reads the schema and finds how the table is watched.

    Raises TableNotFoundError, or NotWatchableError that names the command which makes it watchable.
    """
    database.reload()
    return watched_table(parse_schema(list(database.ddl_statements)), name, database.name)


def watched_table(schema: Schema, name: str, database_name: str) -> WatchedTable:
    """As ``discover``, from a schema."""
    table = schema.table(name)
    if table is None:
        known = ", ".join(t.name for t in schema.tables) or "none"
        raise TableNotFoundError(f"{database_name} has no table {name}; it has: {known}")
    index = next((i for i in schema.indexes_of(table.name) if serves(table, i)), None)
    if index is None:
        raise NotWatchableError(
            f"table {table.name} has no null-filtered index on a computed shard and a commit"
            " timestamp; make it watchable: spanner-watcher ddl apply"
            f" --database spanner://{database_name} --table {table.name}"
        )
    shard = column_of(table, index.parts[0].column)
    timestamp = column_of(table, index.parts[1].column)
    values = shard_values(shard.generated or "")
    if values is None:
        raise NotWatchableError(
            f"the values of {table.name}.{shard.name} cannot be told from its expression"
            f" ({shard.generated}); it must end in MOD(..., number)"
        )
    return WatchedTable(
        name=table.name,
        columns=tuple((c.name, c.type) for c in table.columns if not c.hidden),
        primary_key=tuple(part.column for part in table.primary_key),
        timestamp_column=timestamp.name,
        shard_column=shard.name,
        shard_values=values,
        index=index.name,
        processed_column=processed_column(table, shard),
        clears_by_null=not timestamp.not_null,
    )


def serves(table: Table, index: Index) -> bool:
    """True for a null-filtered index on (generated INT64, commit timestamp)."""
    if len(index.parts) != 2:
        return False
    names = {part.column.casefold() for part in index.parts}
    filtered = {name.casefold() for name in index.where_not_null}
    if not index.null_filtered and not names <= filtered:
        return False
    shard, timestamp = (table.column(part.column) for part in index.parts)
    return bool(shard and shard.generated and timestamp and timestamp.allow_commit_timestamp)


def column_of(table: Table, name: str) -> Column:
    """A column that the index vouches for."""
    column = table.column(name)
    if column is None:
        raise NotWatchableError(f"table {table.name} has no column {name}")
    return column


def processed_column(table: Table, shard: Column) -> str | None:
    """The column of CASE WHEN Processed THEN NULL ..., if the shard is computed so."""
    words = (shard.generated or "").split()
    if [word.upper() for word in words[:2]] != ["CASE", "WHEN"]:
        return None
    column = table.column(words[2].strip("`"))
    return column.name if column else None
