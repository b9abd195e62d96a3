"""How far each watched table may have been cleared: written before it happens."""

from __future__ import annotations

from collections.abc import Iterable

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.own_names import cleared_table
from watcher.consumers.positions.reader import RowReader
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.timestamps import to_datetime, to_micros

COLUMNS = ("WatchedTable", "ClearedTo", "UpdatedAt")


def read_cleared(
    reader: RowReader,
    positions_table: str,
    tables: Iterable[str],
    sql: SqlDialect,
) -> dict[str, int]:
    """Cleared-to of those of the tables that were ever cleared, in microseconds since 1970."""
    text = (
        f"SELECT {sql.quote_all(COLUMNS[:2])} FROM {sql.quote(cleared_table(positions_table))}"  # noqa: S608
        f" WHERE {sql.is_any(sql.quote('WatchedTable'), '@tables')}"
    )
    values = {"tables": (list(tables), param_types.Array(param_types.STRING))}
    rows = reader.execute_sql(*sql.bind(text, values))
    return {row[0]: to_micros(row[1]) for row in rows}


def write_cleared(
    transaction: Transaction,
    positions_table: str,
    tables: Iterable[str],
    micros: int,
    sql: SqlDialect,
) -> None:
    """Moves cleared-to of the tables forward to ``micros``; never back."""
    names = tuple(tables)
    stored = read_cleared(transaction, positions_table, names, sql)
    rows = [
        (name, to_datetime(micros), COMMIT_TIMESTAMP)
        for name in names
        if stored.get(name, -1) < micros
    ]
    if rows:
        transaction.insert_or_update(cleared_table(positions_table), COLUMNS, rows)
