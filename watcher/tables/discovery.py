"""How a table is watched: read from the schema, never guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddl.schema import Column, Index, Schema, Table, TypeCode
from ddl.shards import shard_values
from watcher.errors import NotWatchableError, TableNotFoundError
from watcher.spanner.outages import Outages
from watcher.spanner.read_options import ReadOptions
from watcher.spanner.sessions import SharedSession
from watcher.spanner.stream import QueryStream
from watcher.tables.column_choice import choose_columns
from watcher.tables.schema_reader import read_epoch
from watcher.tables.values import ChangeSetSource, ShardValue, TableSpec, WatchedTable

if TYPE_CHECKING:
    from google.cloud.spanner_v1.database import Database


def discover_table(database: Database, name: str, spec: TableSpec | None = None) -> WatchedTable:
    """Reads the schema and finds out how the table is watched.

    Raises TableNotFoundError, NotWatchableError with the command that makes the table watchable, or
    ConfigurationError for a column that the table does not have.
    """
    return find_watched_table(read_schema(database), name, database.name, spec)


def read_schema(database: Database) -> Schema:
    """The schema of a database, as of a strong read: without what is still being backfilled. Raises
    NotWatchableError for the PostgreSQL dialect."""
    session = SharedSession(database)
    return read_epoch(QueryStream(session, ReadOptions(), Outages(database.name))).schema


def find_watched_table(
    schema: Schema, name: str, database_name: str, spec: TableSpec | None = None
) -> WatchedTable:
    """As ``discover``, from a schema."""
    table, spec = get_table(schema, name, database_name), spec or TableSpec()
    if spec.change_sets is not None:
        watched = find_through_change_sets(schema, table, database_name, spec, spec.change_sets)
    elif spec.shard in (None, "computed") and spec.shard_column is None:
        watched = find_computed(schema, table, database_name, spec)
    else:
        watched = find_specified(schema, table, spec)
    watched = replace(watched, deleted=find_deleted_column(table, spec))
    required = list_required_columns(watched, table)
    return replace(watched, columns=choose_columns(table, spec.choice, required))


def get_table(schema: Schema, name: str, database_name: str) -> Table:
    """A table of a schema. Raises TableNotFoundError."""
    table = schema.table(name)
    if table is None:
        names = ", ".join(t.name for t in schema.tables) or "none"
        raise TableNotFoundError(f"{database_name} has no table {name}; it has: {names}")
    return table


def list_required_columns(watched: WatchedTable, table: Table) -> tuple[str, ...]:
    """The columns that are always read, besides the key: the commit timestamp, the one that marks a
    delete, and a shard that is text, because it is delivered as it is."""
    stamps = (watched.timestamp_column, watched.shard_column) if watched.change_sets is None else ()
    columns = (table.column(name) for name in stamps if name)
    return tuple(
        column.name
        for column in columns
        if column is not None and not column.hidden and column.type.code is not TypeCode.INT64
    ) + ((watched.deleted,) if watched.deleted else ())


def find_whole_table(
    schema: Schema, name: str, database_name: str, spec: TableSpec | None = None
) -> WatchedTable:
    """A table that is only ever read whole, because its changes come from a change stream."""
    table = get_table(schema, name, database_name)
    return WatchedTable(
        name=table.name,
        columns=choose_columns(table, (spec or TableSpec()).choice, ()),
        primary_key=tuple(part.column for part in table.primary_key),
        timestamp_column="",
        shard_column=None,
        shard_values=None,
        index=None,
    )


def find_computed(
    schema: Schema, table: Table, database_name: str, spec: TableSpec
) -> WatchedTable:
    """A table with a null-filtered index on a computed shard and a commit timestamp."""
    index = next(
        (
            i
            for i in schema.indexes_of(table.name)
            if is_polling_index(table, i) and spec.index in (None, i.name)
        ),
        None,
    )
    if index is None:
        raise NotWatchableError(
            f"table {table.name} has no null-filtered index on a computed shard and a commit"
            " timestamp; make it watchable: spanner-watcher ddl apply"
            f" --database spanner://{database_name} --table {table.name}"
        )
    shard = get_column(table, index.parts[0].column)
    timestamp = get_column(table, index.parts[1].column)
    values = shard_values(shard.generated or "")
    if values is None:
        raise NotWatchableError(
            f"the values of {table.name}.{shard.name} do not follow from its expression"
            f" ({shard.generated}); it must end in MOD(..., number)"
        )
    return WatchedTable(
        name=table.name,
        columns=(),
        primary_key=tuple(part.column for part in table.primary_key),
        timestamp_column=timestamp.name,
        shard_column=shard.name,
        shard_values=values,
        hashed=True,
        index=index.name,
        processed_column=find_processed_column(table, shard),
        clears_by_null=not timestamp.not_null,
    )


def find_specified(schema: Schema, table: Table, spec: TableSpec) -> WatchedTable:
    """A table whose shard and timestamp the configuration names.

    Raises NotWatchableError for a column or an index that does not exist or is not suitable.
    """
    timestamp = find_timestamp_column(table, spec)
    shard = get_column(table, spec.shard_column) if spec.shard_column else None
    if spec.index and not any(i.name == spec.index for i in schema.indexes_of(table.name)):
        raise NotWatchableError(f"table {table.name} has no index {spec.index}")
    return WatchedTable(
        name=table.name,
        columns=(),
        primary_key=tuple(part.column for part in table.primary_key),
        timestamp_column=timestamp.name,
        shard_column=shard.name if shard else None,
        shard_values=list_shard_values(table, shard, spec),
        index=spec.index or find_index(schema, table, shard, timestamp),
        processed_column=find_processed_column(table, shard) if shard else None,
        clears_by_null=not timestamp.not_null,
    )


def find_through_change_sets(
    schema: Schema, table: Table, database_name: str, spec: TableSpec, sets_name: str
) -> WatchedTable:
    """A table whose rows carry the id of the change set that wrote them last."""
    sets_table = schema.table(sets_name)
    if sets_table is None:
        raise TableNotFoundError(f"{database_name} has no table {sets_name} of change sets")
    of_sets = replace(spec, change_sets=None, deleted=None, columns=None, exclude_columns=())
    if not any(is_polling_index(sets_table, index) for index in schema.indexes_of(sets_table.name)):
        of_sets = replace(of_sets, shard=spec.shard or "none")
    sets = find_watched_table(schema, sets_name, database_name, of_sets)
    column = get_column(table, spec.change_set_column)
    index = next(
        (
            i.name
            for i in schema.indexes_of(table.name)
            if i.parts[0].column == column.name and not i.null_filtered
        ),
        None,
    )
    if index is None:
        raise NotWatchableError(
            f"table {table.name} has no index that begins with {column.name}: every poll would"
            f" scan it; CREATE INDEX {table.name}ByChangeSet ON {table.name}({column.name})"
        )
    return replace(
        sets,
        name=table.name,
        columns=(),
        primary_key=tuple(part.column for part in table.primary_key),
        processed_column=None,
        change_sets=ChangeSetSource(
            sets_table.name, get_column(sets_table, spec.change_set_column).name, column.name, index
        ),
    )


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


def find_index(schema: Schema, table: Table, shard: Column | None, timestamp: Column) -> str | None:
    """A null-filtered index on exactly (shard, timestamp), if there is one."""
    columns = [column.name.casefold() for column in (shard, timestamp) if column is not None]
    for index in schema.indexes_of(table.name):
        parts = [part.column.casefold() for part in index.parts]
        filtered = {name.casefold() for name in index.where_not_null}
        if parts == columns and (index.null_filtered or set(parts) <= filtered):
            return index.name
    return None


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


def is_polling_index(table: Table, index: Index) -> bool:
    """True for a null-filtered index on (generated INT64, commit timestamp)."""
    if len(index.parts) != 2:
        return False
    names = {part.column.casefold() for part in index.parts}
    filtered = {name.casefold() for name in index.where_not_null}
    if not index.null_filtered and not names <= filtered:
        return False
    shard, timestamp = (table.column(part.column) for part in index.parts)
    return bool(shard and shard.generated and timestamp and timestamp.allow_commit_timestamp)


def get_column(table: Table, name: str) -> Column:
    """A column of a table. Raises NotWatchableError."""
    column = table.column(name)
    if column is None:
        raise NotWatchableError(f"table {table.name} has no column {name}")
    return column


def find_processed_column(table: Table, shard: Column) -> str | None:
    """The column of CASE WHEN Processed THEN NULL ..., if the shard is computed so."""
    words = (shard.generated or "").split()
    if [word.upper() for word in words[:2]] != ["CASE", "WHEN"]:
        return None
    column = table.column(words[2].strip("`"))
    return column.name if column else None
