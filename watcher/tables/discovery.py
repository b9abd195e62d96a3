"""How a table is watched: read from the schema, never guessed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Schema, Table
from spanner_schema.watched.tracked import (
    find_processed,
    find_set_rows,
    find_sets_table,
    is_poll_index,
    name_set_id,
)
from watcher.model.errors import ConfigurationError, TableNotFoundError
from watcher.spanner.outages import Outages
from watcher.spanner.read_options import ReadOptions
from watcher.spanner.sessions import SharedSession
from watcher.spanner.stream import QueryStream
from watcher.tables.column_choice import choose_columns, choose_masks
from watcher.tables.lookup import (
    find_change_set_index,
    find_deleted_column,
    find_index,
    find_polling_index,
    find_timestamp_column,
    get_column,
    get_index,
    get_table,
    list_computed_values,
    list_descending,
    list_primary_key,
    list_shard_values,
)
from watcher.tables.predicate_parser import make_row_filter
from watcher.tables.schema_reader import read_epoch
from watcher.tables.values import ChangeSetSource, TableSpec, WatchedTable

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
    """As ``discover_table``, from a schema."""
    table = get_table(schema, name, database_name)
    spec = follow_strategy(schema, table, spec or TableSpec())
    if spec.change_sets is not None:
        watched = find_through_change_sets(schema, table, database_name, spec, spec.change_sets)
    elif spec.shard in (None, "computed") and spec.shard_column is None:
        watched = find_computed(schema, table, database_name, spec)
    else:
        watched = find_specified(schema, table, spec)
    watched = replace(watched, deleted=find_deleted_column(table, spec))
    watched = put_columns(watched, table, spec, list_required_columns(watched, table))
    return put_filter(watched, table, spec)


def put_columns(
    watched: WatchedTable, table: Table, spec: TableSpec, required: Collection[str]
) -> WatchedTable:
    """The table with the columns that are read of it, the names of the others, and the masks."""
    columns = choose_columns(table, spec.choice, required)
    names = {name for name, _ in columns}
    left_out = tuple(each.name for each in table.columns if each.name not in names)
    stamps = (watched.timestamp_column, watched.shard_column)
    always = (*required, *(name for name in stamps if name))
    masks = choose_masks(table, spec.choice, names, always, watched.dialect)
    kept = tuple(mask for mask in masks if mask.column in names)
    return replace(watched, columns=columns, left_out=left_out, masks=kept)


def put_filter(watched: WatchedTable, table: Table, spec: TableSpec) -> WatchedTable:
    """The table with the filter of its rows. Raises ConfigurationError."""
    if spec.where is None:
        return watched
    if watched.change_sets is not None:
        raise ConfigurationError(
            f"where of table {table.name} does not work with change sets, whose columns could be"
            " meant: give the table a commit timestamp of its own, or filter in a callback"
        )
    return replace(watched, row_filter=make_row_filter(spec.where, table, watched.dialect))


def follow_strategy(schema: Schema, table: Table, spec: TableSpec) -> TableSpec:
    """The spec with the change sets that the schema shows, for a table that is tracked by them and
    of which nobody said how it is polled."""
    told = (spec.change_sets, spec.shard, spec.shard_column, spec.timestamp_column, spec.index)
    if any(each is not None for each in told):
        return spec
    if any(is_poll_index(table, index) for index in schema.indexes_of(table.name)):
        return spec
    for column in (spec.change_set_column, None):
        sets = find_sets_table(schema, table, column)
        if sets is not None:
            name = column or name_set_id(schema.dialect)
            return replace(spec, change_sets=sets.name, change_set_column=name)
    return spec


def find_table_to_clear(
    schema: Schema, name: str, database_name: str, spec: TableSpec | None = None
) -> WatchedTable:
    """As ``find_watched_table``. A table of change sets is cleared for the rows that carry their
    ids: what is deleted from it is what every consumer of those has delivered."""
    table = get_table(schema, name, database_name)
    rows = find_set_rows(schema, table) if spec is None else None
    return find_watched_table(
        schema, table.name if rows is None else rows.name, database_name, spec
    )


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
    watched = WatchedTable(
        name=table.name,
        columns=(),
        primary_key=list_primary_key(table),
        descending=list_descending(table),
        timestamp_column="",
        shard_column=None,
        shard_values=None,
        index=None,
        dialect=schema.dialect,
    )
    spec = spec or TableSpec()
    return put_filter(put_columns(watched, table, spec, ()), table, spec)


def find_computed(
    schema: Schema, table: Table, database_name: str, spec: TableSpec
) -> WatchedTable:
    """A table with a null-filtered index on a computed shard and a commit timestamp."""
    index = find_polling_index(schema, table, spec.index, database_name)
    shard = get_column(table, index.parts[0].column)
    timestamp = get_column(table, index.parts[1].column)
    return WatchedTable(
        name=table.name,
        columns=(),
        primary_key=list_primary_key(table),
        descending=list_descending(table),
        timestamp_column=timestamp.name,
        shard_column=shard.name,
        shard_values=list_computed_values(table, shard),
        hashed=True,
        index=index.name,
        processed_column=find_processed(table, shard, schema.dialect),
        clears_by_null=not timestamp.not_null,
        dialect=schema.dialect,
    )


def find_specified(schema: Schema, table: Table, spec: TableSpec) -> WatchedTable:
    """A table whose shard and timestamp the configuration names.

    Raises NotWatchableError for a column or an index that does not exist or is not suitable.
    """
    timestamp = find_timestamp_column(table, spec)
    shard = get_column(table, spec.shard_column) if spec.shard_column else None
    index = get_index(schema, table, spec.index).name if spec.index else None
    return WatchedTable(
        name=table.name,
        columns=(),
        primary_key=list_primary_key(table),
        descending=list_descending(table),
        timestamp_column=timestamp.name,
        shard_column=shard.name if shard else None,
        shard_values=list_shard_values(table, shard, spec),
        index=index or find_index(schema, table, shard, timestamp),
        processed_column=find_processed(table, shard, schema.dialect) if shard else None,
        clears_by_null=not timestamp.not_null,
        dialect=schema.dialect,
    )


def find_through_change_sets(
    schema: Schema, table: Table, database_name: str, spec: TableSpec, sets_name: str
) -> WatchedTable:
    """A table whose rows carry the id of the change set that wrote them last."""
    sets_table = schema.table(sets_name)
    if sets_table is None:
        raise TableNotFoundError(f"{database_name} has no table {sets_name} of change sets")
    of_sets = replace(
        spec,
        change_sets=None,
        deleted=None,
        columns=None,
        exclude_columns=(),
        text_columns=(),
        where=None,
        masks={},
    )
    if not any(is_poll_index(sets_table, index) for index in schema.indexes_of(sets_table.name)):
        of_sets = replace(of_sets, shard=spec.shard or "none")
    sets = find_watched_table(schema, sets_name, database_name, of_sets)
    column = get_column(table, spec.change_set_column)
    index = find_change_set_index(schema, table, column.name)
    id_column = get_column(sets_table, spec.change_set_column).name
    return replace(
        sets,
        name=table.name,
        columns=(),
        primary_key=list_primary_key(table),
        descending=list_descending(table),
        processed_column=None,
        change_sets=ChangeSetSource(sets_table.name, id_column, column.name, index),
    )
