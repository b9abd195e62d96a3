"""What consumers have stored of themselves, as it was at a read timestamp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.spanner_v1 import param_types

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions import (
    Position,
    backfills_table,
    consumers_table,
    errors_table,
    own_tables,
)
from watcher.consumers.positions.fences import is_alive
from watcher.consumers.positions.selections import parse_selection
from watcher.consumers.positions.tables import find_own_columns
from watcher.consumers.states import (
    ConsumerProgress,
    ConsumerStatus,
    State,
    StoredError,
    parse_command,
)
from watcher.overview.reader import StaleReader
from watcher.overview.retention import VERSION_RETENTION, parse_period
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.selection import Selection

Columns = Mapping[str, frozenset[str]]
"""The columns of each of the product's own tables that exists."""

ERRORS_SHOWN_MAX = 100
STATUS_COLUMNS = (
    *("Consumer", "State", "Command", "UpdatedAt", "Windows", "DeliveredRows", "RowsPerSecond"),
    *("DeadLetters", "Reason", "Selection"),
)


@dataclass(frozen=True, slots=True)
class StoredState:
    """The product's own tables at one timestamp. ``selections`` has no consumer that an earlier
    release ran on a change stream."""

    statuses: Mapping[str, ConsumerStatus]
    selections: Mapping[str, Selection]
    positions: tuple[Position, ...]
    backfills: Mapping[tuple[str, str], BackfillProgress]


def read_own_columns(reader: StaleReader, positions_table: str) -> Columns:
    """The tables and columns that exist: an older release has made fewer."""
    columns: dict[str, set[str]] = {}
    for each in find_own_columns(reader, reader.sql, positions_table):
        columns.setdefault(each.table, set()).add(each.name)
    return {table: frozenset(names) for table, names in columns.items()}


def read_stored_state(reader: StaleReader, positions_table: str, columns: Columns) -> StoredState:
    """Everything but the errors. Tables that do not exist are empty."""
    table = consumers_table(positions_table)
    rows = read_status_rows(reader, table, columns.get(table, frozenset()))
    ours = own_tables(positions_table)
    return StoredState(
        statuses={row[0]: make_status(row) for row in rows},
        selections={row[0]: parse_selection(row[9], row[0], ours) for row in rows if row[9]},
        positions=read_positions(reader, positions_table, columns),
        backfills=read_backfills(reader, backfills_table(positions_table), columns),
    )


def read_status_rows(
    reader: StaleReader, table: str, columns: frozenset[str]
) -> Sequence[Sequence[Any]]:
    """The rows of the table of leases: ``STATUS_COLUMNS``, then whether the lease is valid."""
    if not columns:
        return ()
    q = reader.sql.quote
    shown = ", ".join(q(name) if name in columns else "NULL" for name in STATUS_COLUMNS)
    text = (
        f"SELECT {shown}, {is_alive(reader.sql, '@at')}"  # noqa: S608
        f" FROM {q(table)} ORDER BY {q('Consumer')}"
    )
    at = (to_datetime(reader.at), param_types.TIMESTAMP)
    return reader.execute_sql(*reader.sql.bind(text, {"at": at}))


def make_status(row: Sequence[Any]) -> ConsumerStatus:
    """A row of ``read_status_rows`` as a status."""
    consumer, state, command, updated_at, windows, rows, rate, dead, reason, _, alive = row
    return ConsumerStatus(
        consumer,
        State(state),
        parse_command(command),
        bool(alive),
        to_micros(updated_at),
        ConsumerProgress(windows or 0, rows or 0, rate or 0.0, dead or 0),
        reason,
    )


def read_positions(reader: StaleReader, table: str, columns: Columns) -> tuple[Position, ...]:
    """Every position, by consumer and table."""
    if table not in columns:
        return ()
    rows = select_by_table(reader, table, "Position")
    return tuple(Position(row[0], row[1], to_micros(row[2])) for row in rows)


def select_by_table(reader: StaleReader, table: str, column: str) -> list[list[Any]]:
    """What is stored for each consumer and table, in their order."""
    key = reader.sql.quote_all(("Consumer", "WatchedTable"))
    source = reader.sql.quote(table)
    return reader.execute_sql(
        f"SELECT {key}, {reader.sql.quote(column)} FROM {source} ORDER BY {key}"  # noqa: S608
    )


def read_backfills(
    reader: StaleReader, table: str, columns: Columns
) -> dict[tuple[str, str], BackfillProgress]:
    """The backfills under way, by consumer and table."""
    if table not in columns:
        return {}
    rows = select_by_table(reader, table, "Progress")
    return {(row[0], row[1]): BackfillProgress.from_text(row[2]) for row in rows}


def read_last_errors(
    reader: StaleReader, positions_table: str, columns: Columns
) -> dict[str, StoredError]:
    """The newest error of each consumer. Reads every stored error: it is asked less often."""
    table = errors_table(positions_table)
    if table not in columns:
        return {}
    q, source = reader.sql.quote, reader.sql.quote(table)
    newest = (
        f"SELECT {q('Consumer')} AS consumer, MAX({q('OccurredAt')}) AS newest"  # noqa: S608
        f" FROM {source} GROUP BY {q('Consumer')}"
    )
    shown = (f"e.{q(name)}" for name in ("Consumer", "OccurredAt", "Kind", "Message"))
    rows = reader.execute_sql(
        f"SELECT {', '.join(shown)} FROM {source} AS e JOIN ({newest}) AS n"  # noqa: S608 (quoted)
        f" ON e.{q('Consumer')} = n.consumer AND e.{q('OccurredAt')} = n.newest"
    )
    return {row[0]: StoredError(row[0], to_micros(row[1]), row[2], row[3]) for row in rows}


def read_errors(
    reader: StaleReader, positions_table: str, columns: Columns, consumer: str
) -> list[StoredError]:
    """The newest errors of a consumer, the newest first; ``ERRORS_SHOWN_MAX`` at most."""
    table = errors_table(positions_table)
    if table not in columns:
        return []
    q, sql = reader.sql.quote, reader.sql
    text = (
        f"SELECT {sql.quote_all(('OccurredAt', 'Kind', 'Message'))} FROM {q(table)}"  # noqa: S608
        f" WHERE {q('Consumer')} = @consumer ORDER BY {q('OccurredAt')} DESC"
        f" LIMIT {ERRORS_SHOWN_MAX}"
    )
    rows = reader.execute_sql(*sql.bind(text, {"consumer": (consumer, param_types.STRING)}))
    return [StoredError(consumer, to_micros(row[0]), row[1], row[2]) for row in rows]


def read_version_retention(reader: StaleReader) -> int:
    """For how many seconds the database keeps versions of rows."""
    rows = reader.execute_sql(
        "SELECT OPTION_VALUE FROM INFORMATION_SCHEMA.DATABASE_OPTIONS"
        " WHERE OPTION_NAME = 'version_retention_period'"
    )
    return parse_period(rows[0][0] if rows and rows[0][0] else VERSION_RETENTION)
