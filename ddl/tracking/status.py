"""The state of tables: watched or not, by which strategy, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from ddl.tracking.wanted_schema import list_required_steps
from spanner_schema.model.errors import DdlError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Index, Schema, Table
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.render import quote_column, render_source
from spanner_schema.watched.tracked import (
    find_own_trackings,
    find_sets_table,
    find_trackings,
    list_streams,
)


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
    trackings = find_trackings(schema, table)
    if trackings:
        tracking = trackings[0]
        count = len(tracking.shard.values) if tracking.shard.values else None
        return TableStatus(table.name, str(tracking.strategy), count, tracking.index.name, ())
    streams = list_streams(schema, table)
    if streams:
        return TableStatus(table.name, str(Strategy.CHANGE_STREAM), None, streams[0], ())
    if find_sets_table(schema, table) is not None:
        return TableStatus(table.name, str(Strategy.CHANGE_SET), None, None, ())
    own = find_own_trackings(schema, table)
    if own:
        return TableStatus(table.name, str(own[0].strategy), None, own[0].index.name, ())
    return describe_unwatched(schema, table, indexes)


def describe_unwatched(schema: Schema, table: Table, indexes: tuple[Index, ...]) -> TableStatus:
    """The state of a table without a poll index: what ``automatic`` would add, or why it cannot."""
    try:
        single = Schema(schema.dialect, tables=(table,), indexes=indexes)
        steps = list_required_steps(single, table.name, WatchOptions())
    except DdlError as error:
        return TableStatus(table.name, None, None, None, (), problem=str(error))
    return TableStatus(table.name, None, None, None, tuple(each.reason for each in steps))


def count_index_rows(database: Database, schema: Schema, status: TableStatus) -> int | None:
    """Counts the rows in the index that polls read; None without an index."""
    index = schema.index(status.index or "")
    if index is None:
        return None
    names, dialect = [part.column for part in index.parts], schema.dialect
    source = render_source(status.table, names, dialect, index.name)
    condition = " AND ".join(f"{quote_column(name, dialect)} IS NOT NULL" for name in names)
    with database.snapshot() as snapshot:
        query = f"SELECT COUNT(*) FROM {source} WHERE {condition}"  # noqa: S608 (names are quoted)
        return int(next(iter(snapshot.execute_sql(query)))[0])
