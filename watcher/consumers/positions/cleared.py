"""How far each watched table may have been cleared: written before it happens."""

from __future__ import annotations

from collections.abc import Iterable

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.tables import cleared_table
from watcher.spanner.sql import quote_name
from watcher.spanner.timestamps import to_datetime, to_micros

COLUMNS = ("WatchedTable", "ClearedTo", "UpdatedAt")


def read_cleared(reader: RowReader, positions_table: str, tables: Iterable[str]) -> dict[str, int]:
    """Cleared-to of those of the tables that were ever cleared, in microseconds since 1970."""
    rows = reader.execute_sql(
        f"SELECT WatchedTable, ClearedTo FROM {quote_name(cleared_table(positions_table))}"  # noqa: S608
        " WHERE WatchedTable IN UNNEST(@tables)",
        params={"tables": list(tables)},
        param_types={"tables": param_types.Array(param_types.STRING)},
    )
    return {row[0]: to_micros(row[1]) for row in rows}


def write_cleared(
    transaction: Transaction, positions_table: str, tables: Iterable[str], micros: int
) -> None:
    """Moves cleared-to of the tables forward to ``micros``; never back."""
    names = tuple(tables)
    stored = read_cleared(transaction, positions_table, names)
    rows = [
        (name, to_datetime(micros), COMMIT_TIMESTAMP)
        for name in names
        if stored.get(name, -1) < micros
    ]
    if rows:
        transaction.insert_or_update(cleared_table(positions_table), COLUMNS, rows)
