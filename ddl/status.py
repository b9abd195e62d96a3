"""The state of tables: watched or not, by which strategy, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from ddl.errors import DdlError
from ddl.options import WatchOptions
from ddl.render import quote_name, render_source
from ddl.schema import Index, Schema, Table
from ddl.shards import shard_values
from ddl.strategies import Strategy
from ddl.tracking import list_required_steps, name_set_timestamp


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The state of a table.

    ``strategy`` is None for a table that is not watched. ``missing`` says what the strategy
    ``automatic`` would add, ``problem`` why it cannot be applied.
    """

    table: str
    strategy: str | None
    shards: int | None
    index: str | None
    missing: tuple[str, ...]
    problem: str = ""
    index_rows: int | None = None


def list_statuses(schema: Schema, tables: Iterable[str]) -> list[TableStatus]:
    """The state of tables, from the schema alone."""
    known = [table for name in tables if (table := schema.table(name))]
    return [describe_table(schema, table, schema.indexes_of(table.name)) for table in known]


def describe_table(schema: Schema, table: Table, indexes: tuple[Index, ...]) -> TableStatus:
    """The state of one table."""
    index = find_poll_index(table, indexes)
    streams = [
        stream.name
        for stream in schema.change_streams
        if stream.for_all
        or any(w.table.casefold() == table.name.casefold() for w in stream.watches)
    ]
    if index is None and streams:
        return TableStatus(table.name, str(Strategy.CHANGE_STREAM), None, streams[0], ())
    if index is None and uses_change_sets(schema, table):
        return TableStatus(table.name, str(Strategy.CHANGE_SET), None, None, ())
    if index is None:
        return describe_unwatched(schema, table, indexes)
    shard, timestamp = table.column(index.parts[0].column), table.column(index.parts[1].column)
    values = shard_values(shard.generated or "") if shard else None
    strategy = Strategy.AUTOMATIC
    if shard and (shard.generated or "").lstrip().upper().startswith("CASE"):
        strategy = Strategy.PROCESSED
    elif timestamp and timestamp.on_update is None:
        strategy = Strategy.MANUAL
    count = len(values) if values is not None else None
    return TableStatus(table.name, str(strategy), count, index.name, ())


def describe_unwatched(schema: Schema, table: Table, indexes: tuple[Index, ...]) -> TableStatus:
    """The state of a table without a poll index: what ``automatic`` would add, or why it cannot."""
    try:
        single = Schema(schema.dialect, tables=(table,), indexes=indexes)
        steps = list_required_steps(single, table.name, WatchOptions())
    except DdlError as error:
        return TableStatus(table.name, None, None, None, (), problem=str(error))
    return TableStatus(table.name, None, None, None, tuple(each.reason for each in steps))


def find_poll_index(table: Table, indexes: tuple[Index, ...]) -> Index | None:
    """A null-filtered index on (generated shard, commit timestamp)."""
    for index in indexes:
        if len(index.parts) != 2:
            continue
        names = {part.column.casefold() for part in index.parts}
        not_null = {each.casefold() for each in index.where_not_null}
        if not index.null_filtered and not names <= not_null:
            continue
        shard, timestamp = (table.column(part.column) for part in index.parts)
        if shard and shard.generated and timestamp and timestamp.allow_commit_timestamp:
            return index
    return None


def uses_change_sets(schema: Schema, table: Table) -> bool:
    """True if the rows carry ids of an existing table of change sets."""
    name = WatchOptions().for_dialect(schema.dialect).change_set_column
    return table.column(name) is not None and any(
        other.column(name) is not None
        and other.column(name_set_timestamp(schema)) is not None
        and other.name != table.name
        for other in schema.tables
    )


def count_index_rows(database: Database, schema: Schema, status: TableStatus) -> int | None:
    """Counts the rows in the index that polls read; None without an index."""
    index = schema.index(status.index or "")
    if index is None or status.shards is None:
        return None
    names, dialect = [part.column for part in index.parts], schema.dialect
    source = render_source(status.table, names, dialect, index.name)
    condition = " AND ".join(f"{quote_name(name, dialect)} IS NOT NULL" for name in names)
    with database.snapshot() as snapshot:
        query = f"SELECT COUNT(*) FROM {source} WHERE {condition}"  # noqa: S608 (names are quoted)
        return int(next(iter(snapshot.execute_sql(query)))[0])
