"""Clearing: what every consumer has delivered leaves the index, by partitioned DML."""

from __future__ import annotations

from dataclasses import dataclass

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from watcher import sql
from watcher.errors import ConfigurationError, NotWatchableError
from watcher.positions import Positions
from watcher.stream import moment_of
from watcher.table import WatchedTable

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
        found = self._positions.all(self._table.name)
        if not found:
            raise ConfigurationError(
                f"no consumer of {self._table.name} is registered, so nothing is known to be"
                " delivered; start one first (spanner-watcher watch, or a Spark query with the"
                " option consumer)"
            )
        slowest = min(found, key=lambda position: position.micros)
        return max(slowest.micros - self._margin, 0), slowest.consumer

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

    def clear(self) -> Cleared:
        """Takes delivered rows out of the index. Idempotent, and safe beside writers."""
        safe, consumer = self.safe()
        rows = self._database.execute_partitioned_dml(
            self._statement,
            params={"safe": moment_of(safe)},
            param_types={"safe": param_types.TIMESTAMP},
            exclude_txn_from_change_streams=True,
        )
        return Cleared(safe, int(rows), consumer)


def statement(table: WatchedTable) -> str:
    """The clearing statement of the table's strategy."""
    if table.processed_column is not None:
        return sql.clear_by_processed(table, table.processed_column)
    if not table.clears_by_null:
        raise NotWatchableError(
            f"{table.name}.{table.timestamp_column} is NOT NULL and there is no Processed column:"
            " the index of this table cannot be cleared"
        )
    return sql.clear_by_null(table)
