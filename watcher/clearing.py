"""Clearing: what every consumer has delivered leaves the index, by partitioned DML."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from watcher import sql
from watcher.errors import ConfigurationError, NotWatchableError
from watcher.positions import Position, Positions
from watcher.stream import micros_of, moment_of
from watcher.table import WatchedTable
from watcher.window import BEGINNING

LOG = logging.getLogger("watcher.clearing")
MARGIN_SECONDS = 0.0
"""Rows this much older than the slowest consumer's position are cleared, and none younger."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clearing did; ``safe`` is in microseconds since 1970, ``rows`` a lower bound."""

    safe: int
    rows: int
    slowest_consumer: str


class Clearing:
    """Clears one table behind the slowest of its registered consumers."""

    def __init__(
        self,
        database: Database,
        table: WatchedTable,
        positions: Positions,
        margin_seconds: float = MARGIN_SECONDS,
    ) -> None:
        if margin_seconds < 0:
            raise ConfigurationError(f"the margin must not be negative: {margin_seconds}")
        self._database = database
        self._table = table
        self._positions = positions
        self._margin = round(margin_seconds * 1_000_000)
        self._statement = statement(table)

    def safe(self) -> tuple[int, str]:
        """Up to where may be cleared, and which consumer holds it there.

        Raises ConfigurationError when nobody is registered: then nothing is known to be delivered.
        """
        found = self._waiting()
        if not found:
            raise ConfigurationError(
                f"no consumer of {self._table.name} is registered, so nothing is known to be"
                " delivered; start one first (spanner-watcher watch, or a Spark query with the"
                " option consumer)"
            )
        slowest = min(found, key=lambda position: position.micros)
        return max(slowest.micros - self._margin, 0), slowest.consumer

    def _waiting(self) -> tuple[Position, ...]:
        """Every consumer that has to have delivered; of change sets, which several tables share,
        every consumer that there is."""
        if self._table.change_sets is None:
            return self._positions.all(self._table.name)
        return self._positions.every()

    def count(self) -> Cleared:
        """What ``clear`` would take out now, by an index-only count."""
        safe, consumer = self.safe()
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                sql.count_clearable(self._table),
                params={"safe": moment_of(safe)},
                param_types={"safe": param_types.TIMESTAMP},
            )
            return Cleared(safe, int(next(iter(rows))[0]), consumer)

    def clear(self, rows_max: int | None = None, report_seconds: float | None = None) -> Cleared:
        """Takes delivered rows out of the index. Idempotent, and safe beside writers.

        ``rows_max`` takes out about so many of the oldest only. A slowest consumer that stands more
        than ``report_seconds`` back is reported in the log: it may be gone for good.
        """
        safe, consumer = self.safe()
        if report_seconds is not None:
            self._report(safe, consumer, report_seconds)
        if rows_max is not None:
            safe = self._capped(safe, rows_max)
        rows = self._database.execute_partitioned_dml(
            self._statement,
            params={"safe": moment_of(safe)},
            param_types={"safe": param_types.TIMESTAMP},
            exclude_txn_from_change_streams=True,
        )
        return Cleared(safe, int(rows), consumer)

    def _report(self, safe: int, consumer: str, seconds: float) -> None:
        if safe == BEGINNING:
            return  # it has only just registered
        behind = time.time() - (safe + self._margin) / 1_000_000
        if behind > seconds:
            LOG.warning(
                "clearing of %s waits for consumer '%s', which stands %.0f s back; if it is gone"
                " for good, take it off with 'spanner-watcher ctl forget %s'",
                self._table.name,
                consumer,
                behind,
                consumer,
            )

    def _capped(self, safe: int, rows_max: int) -> int:
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                sql.latest_clearable(self._table),
                params={"safe": moment_of(safe), "limit": rows_max},
                param_types={"safe": param_types.TIMESTAMP, "limit": param_types.INT64},
            )
            found = next(iter(rows))[0]
        return safe if found is None else min(safe, micros_of(found))


def statement(table: WatchedTable) -> str:
    """The clearing statement of the table's strategy."""
    if table.change_sets is not None:
        return sql.delete_change_sets(table.change_sets, table.timestamp_column)
    if table.processed_column is not None:
        return sql.clear_by_processed(table, table.processed_column)
    if not table.clears_by_null:
        raise NotWatchableError(
            f"{table.name}.{table.timestamp_column} is NOT NULL and there is no Processed column:"
            " the index of this table cannot be cleared"
        )
    return sql.clear_by_null(table)
