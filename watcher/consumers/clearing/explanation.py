"""What each method of clearing would read and write."""

from __future__ import annotations

from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from watcher.consumers.clearing.by_index import ROWS_PER_TRANSACTION
from watcher.consumers.clearing.methods import (
    TABLE_ROWS_PER_CLEARED,
    ClearingLoad,
    Method,
    choose_method,
    count_table_rows,
)
from watcher.consumers.clearing.statements import target_table
from watcher.tables.values import WatchedTable


@dataclass(frozen=True, slots=True)
class Cost:
    """What a method reads and writes. ``transactions`` None: one for each split of the table."""

    index_entries_read: int
    table_rows_read: int
    rows_written: int
    transactions: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What may be cleared up to ``safe`` (microseconds since 1970), and at which cost.

    The table was counted as far as ``auto`` counts it: with ``at_least`` it has as many rows or
    more. ``by_index`` is None for a table without an index. Each row written also changes its
    entries in the indexes of the timestamp: with change sets it is deleted.
    """

    table: str
    safe: int
    slowest_consumer: str
    at_least: bool
    partitioned: Cost
    by_index: Cost | None
    auto: Method


def explain(
    database: Database, table: WatchedTable, safe: int, consumer: str, load: ClearingLoad
) -> Explanation:
    """Counts as ``auto`` does, and clears nothing."""
    rows = load.rows
    limit = rows * TABLE_ROWS_PER_CLEARED + 1
    counted = count_table_rows(database, table, limit)
    pages = sum(-(-each.rows // ROWS_PER_TRANSACTION) for each in load.shards)
    return Explanation(
        table=target_table(table),
        safe=safe,
        slowest_consumer=consumer,
        at_least=counted == limit,
        partitioned=Cost(0, counted, rows, None),
        by_index=None if table.index is None else Cost(rows, rows, rows, pages),
        auto=choose_method(database, table, Method.AUTO, rows),
    )
