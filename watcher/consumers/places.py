"""Where a consumer is in each table, read and removed in a transaction: what dividing a consumer
into parts, and merging them again, have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.spanner import select_of_consumer
from watcher.consumers.positions.tables import backfills_table, consumers_table
from watcher.errors import LeaseHeldError
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.timestamps import to_micros


@dataclass(frozen=True, slots=True)
class Place:
    """A position, and how far rows may have been handed over above it: rule 8 of docs/protocol.md;
    None: as far as goes without a plan."""

    position: int
    reached: int | None


def read_places(
    transaction: Transaction, positions_table: str, consumer: str, sql: SqlDialect
) -> dict[str, Place]:
    """The places of a consumer by table."""
    columns = ("WatchedTable", "Position", "PlannedEnd")
    rows = transaction.execute_sql(*select_of_consumer(sql, positions_table, columns, consumer))
    return {
        row[0]: Place(to_micros(row[1]), to_micros(row[2]) if row[2] is not None else None)
        for row in rows
    }


def check_ended(
    transaction: Transaction, positions_table: str, consumer: str, sql: SqlDialect
) -> None:
    """Raises LeaseHeldError while an instance runs as a consumer, or a backfill of it is not done:
    its positions cannot be moved to other names."""
    q, bound = sql.quote, {"consumer": (consumer, param_types.STRING)}
    of_consumer = f"WHERE {q('Consumer')} = @consumer"
    alive = (
        f"SELECT COUNT(*) FROM {q(consumers_table(positions_table))} {of_consumer}"  # noqa: S608
        f" AND {q('Owner')} IS NOT NULL AND {q('LeaseUntil')} > CURRENT_TIMESTAMP"
    )
    filling = f"SELECT COUNT(*) FROM {q(backfills_table(positions_table))} {of_consumer}"  # noqa: S608
    if next(iter(transaction.execute_sql(*sql.bind(alive, bound))))[0]:
        raise LeaseHeldError(
            f"an instance runs as consumer '{consumer}'; stop it first: spanner-watcher ctl stop"
            f" {consumer}"
        )
    if next(iter(transaction.execute_sql(*sql.bind(filling, bound))))[0]:
        raise LeaseHeldError(
            f"a backfill of consumer '{consumer}' is not done; start it as before and let it end"
        )


def remove_consumer(
    transaction: Transaction,
    positions_table: str,
    consumer: str,
    tables: Sequence[str],
    sql: SqlDialect,
) -> None:
    """Removes positions of a consumer, and its state when it has no other."""
    left = read_places(transaction, positions_table, consumer, sql).keys() - set(tables)
    if tables:
        transaction.delete(positions_table, KeySet(keys=[[consumer, table] for table in tables]))
    if not left:
        transaction.delete(consumers_table(positions_table), KeySet(keys=[[consumer]]))
