"""Counts that stop at a limit, so that asking again and again costs little; whole ones on request.

Spanner: a query may join at most 200 SELECTs by UNION ALL, and have 950 parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Schema
from watcher.captures import statements
from watcher.captures.progress import BackfillProgress
from watcher.consumers.clearing.statements import indexed_table
from watcher.model.window import Window
from watcher.overview.reader import StaleReader
from watcher.overview.values import Count, ShardCount
from watcher.replica.keys.order import KeyOrder
from watcher.replica.keys.ranges import KeyInterval
from watcher.replica.verification.key_conditions import render_interval
from watcher.spanner.sql import Statement, WireValue, union_statements
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.values import ShardValue, WatchedTable

ROWS_BEHIND_MAX = 10_000
"""No more rows of a window are counted unasked."""
INDEX_ROWS_MAX = 20_000
"""About so many entries of an index are read for its shards, unasked, ..."""
SHARD_ROWS_MIN = 100
"""... but at least so many of each shard."""
UNIONS_MAX = 100
INT64, STRING, TIMESTAMP = Type(TypeCode.INT64), Type(TypeCode.STRING), Type(TypeCode.TIMESTAMP)


def limited(rows: int, limit: int) -> Count:
    """A count that stopped after ``limit`` rows."""
    return Count(rows, at_least=rows >= limit)


def count_behind(reader: StaleReader, table: WatchedTable, position: int) -> Count:
    """The rows after a position, by the index alone."""
    window = Window(min(position, reader.at), reader.at)
    if window.empty:
        return Count(0)
    ((rows,),) = reader.run(statements.count_window_up_to(table, window, ROWS_BEHIND_MAX))
    return limited(rows, ROWS_BEHIND_MAX)


def count_shards(
    reader: StaleReader, table: WatchedTable, safe: int | None
) -> tuple[tuple[ShardCount, ...], Count | None]:
    """The rows of each shard in the index, and those at or below ``safe``; None without it."""
    shards: Sequence[ShardValue | None] = table.shard_values or (None,)
    limit = max(SHARD_ROWS_MIN, INDEX_ROWS_MAX // len(shards))
    rows = count_each(reader, table, shards, None, limit)
    counts = tuple(ShardCount(shard, count) for shard, count in zip(shards, rows, strict=True))
    if safe is None:
        return counts, None
    return counts, sum(count_each(reader, table, shards, safe, limit), Count(0))


def count_each(
    reader: StaleReader,
    table: WatchedTable,
    shards: Sequence[ShardValue | None],
    safe: int | None,
    limit: int,
) -> list[Count]:
    """The rows of each shard, in order, ``limit`` at most."""
    rows: dict[int, int] = {}
    numbers = range(len(shards))
    for first in range(0, len(shards), UNIONS_MAX):
        parts = [
            count_shard(table, n, shards[n], safe, limit) for n in numbers[first:][:UNIONS_MAX]
        ]
        rows |= {row[0]: row[1] for row in reader.run(union_statements(parts))}
    return [limited(rows[n], limit) for n in numbers]


def count_shard(
    table: WatchedTable, number: int, shard: ShardValue | None, safe: int | None, limit: int
) -> Statement:
    """``number``, and how many rows of one shard are in the index: a range of it, in its order, and
    no more than ``limit`` entries."""
    conditions = list(indexed_conditions(table))
    params: dict[str, WireValue] = {"limit": str(limit)}
    types = {"limit": INT64}
    if shard is not None and table.shard_column is not None:
        conditions.append(f"{table.sql.quote_column(table.shard_column)} = @shard{number}")
        params[f"shard{number}"] = str(shard)
        types[f"shard{number}"] = STRING if isinstance(shard, str) else INT64
    if safe is not None:
        conditions.append(f"{table.sql.quote_column(table.timestamp_column)} <= @safe")
        params["safe"], types["safe"] = format_timestamp(safe), TIMESTAMP
    rows = f"SELECT 1 FROM {indexed_table(table)} WHERE {' AND '.join(conditions)} LIMIT @limit"  # noqa: S608
    return Statement(f"SELECT {number}, COUNT(*) FROM ({rows}) AS counted", params, types)  # noqa: S608


def indexed_conditions(table: WatchedTable) -> Iterator[str]:
    """The proof that a row is in the null-filtered index."""
    if table.shard_column is not None:
        yield f"{table.sql.quote_column(table.shard_column)} IS NOT NULL"
    yield f"{table.sql.quote_column(table.timestamp_column)} IS NOT NULL"


def count_index(reader: StaleReader, table: WatchedTable, safe: int | None) -> tuple[int, int]:
    """All rows of the index, and those at or below ``safe``: reads every entry."""
    timestamp = table.sql.quote_column(table.timestamp_column)
    sql = (
        f"SELECT COUNT(*), COUNT(CASE WHEN {timestamp} <= @safe THEN 1 END)"  # noqa: S608
        f" FROM {indexed_table(table)} WHERE {' AND '.join(indexed_conditions(table))}"
    )
    params: dict[str, WireValue] = {"safe": format_timestamp(safe or 0)}
    ((rows, clearable),) = reader.run(Statement(sql, params, {"safe": TIMESTAMP}))
    return rows, clearable


def count_left(
    reader: StaleReader, schema: Schema, table: str, progress: BackfillProgress, limit: int | None
) -> Count | None:
    """The rows above the last key of a backfill; None for a table that is gone."""
    defined = schema.table(table)
    if defined is None:
        return None
    order = KeyOrder.of_table(defined, schema.dialect)
    condition = render_interval(order, KeyInterval(after=progress.after))
    params, types = dict(condition.params), dict(condition.types)
    rows = f"SELECT 1 FROM {reader.sql.quote(table)} WHERE {condition.sql}"  # noqa: S608
    if limit is not None:
        rows += " LIMIT @limit"
        params["limit"], types["limit"] = str(limit), INT64
    counted = f"SELECT COUNT(*) FROM ({rows}) AS counted"  # noqa: S608
    ((count,),) = reader.run(Statement(counted, params, types))
    return Count(count) if limit is None else limited(count, limit)
