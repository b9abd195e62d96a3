"""Clears one table behind the slowest of its consumers."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from watcher.consumers.clearing.bounds import Fence, Slowest, make_bounds
from watcher.consumers.clearing.by_index import ByIndex
from watcher.consumers.clearing.explanation import Explanation, explain
from watcher.consumers.clearing.guard import check_erasable
from watcher.consumers.clearing.methods import (
    ClearingLoad,
    Method,
    choose_method,
    clear_partitioned,
    limit_end,
    read_load,
)
from watcher.consumers.clearing.statements import clearing_statement
from watcher.consumers.positions import Positions
from watcher.model.errors import ConfigurationError
from watcher.model.log_events.reading import CLEARING_WAITS_FOR_CONSUMER, CLEARING_WAITS_FOR_START
from watcher.model.window import BEGINNING
from watcher.process.failpoints import failpoint
from watcher.process.tracing import OWN, Kind, describe_database, span
from watcher.spanner.timestamps import to_micros
from watcher.tables.values import WatchedTable

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
    """Clears one table behind the slowest of its registered consumers.

    With a ``fence`` only while this instance owns the lease of its consumer.
    """

    def __init__(
        self,
        database: Database,
        table: WatchedTable,
        positions: Positions,
        margin_seconds: float = MARGIN_SECONDS,
        method: Method | str = Method.PARTITIONED,
        fence: Fence | None = None,
    ) -> None:
        if margin_seconds < 0:
            raise ConfigurationError(f"the margin must not be negative: {margin_seconds}")
        clearing_statement(table)  # refuses what cannot be cleared
        self._database = database
        self._table = table
        self._margin = round(margin_seconds * 1_000_000)
        self._method = Method(method)
        self._bounds = make_bounds(positions, fence)

    def count(self) -> Cleared:
        """What ``clear`` would clear now, by an index-only count."""
        safe, slowest = self._read_safe_end()
        load = read_load(self._database, self._table, safe)
        return Cleared(safe, load.rows, slowest.consumer)

    def explain(self) -> Explanation:
        """What each method would read and write now, and which ``auto`` takes; changes nothing."""
        safe, slowest = self._read_safe_end()
        load = read_load(self._database, self._table, safe)
        return explain(self._database, self._table, safe, slowest.consumer, load)

    def clear(self, rows_max: int | None = None, report_seconds: float | None = None) -> Cleared:
        """Removes delivered rows from the index. Idempotent, and safe beside writers.

        ``rows_max`` removes about so many of the oldest only. A slowest consumer that is more than
        ``report_seconds`` behind is reported in the log: it may have ended for good. Cleared-to is
        written before anything is cleared, no higher than the latest row that will be. Raises
        NotOursError where it would erase what an application wrote, and nobody let it.
        """
        attributes = describe_database(self._database.name, self._table.name)
        with span(f"clear {self._table.name}", attributes, Kind.CLIENT) as current:
            cleared = self._clear(rows_max, report_seconds)
            current.set(f"{OWN}rows", cleared.rows)
            current.set(f"{OWN}slowest_consumer", cleared.slowest_consumer)
        return cleared

    def _clear(self, rows_max: int | None, report_seconds: float | None) -> Cleared:
        safe, slowest = self._read_safe_end()
        self._report(slowest, report_seconds)
        load = read_load(self._database, self._table, safe)
        if not load.rows:
            return Cleared(safe, 0, slowest.consumer)
        end = load.latest
        if rows_max is not None and rows_max < load.rows:
            end = limit_end(self._database, self._table, safe, rows_max)
        # The margin keeps its distance from the positions as they are now, in the transaction.
        end, slowest = self._bounds.announce(self._table, self._margin, end)
        failpoint("after-cleared-to-before-clearing")
        rows = self._clear_up_to(end, load) if end != BEGINNING else 0
        return Cleared(end, rows, slowest.consumer)

    def _clear_up_to(self, end: int, load: ClearingLoad) -> int:
        """Clears by the method that is chosen; how many rows."""
        method = choose_method(self._database, self._table, self._method, load.rows)
        if method is Method.INDEX:
            return ByIndex(self._database, self._table, end).clear(load)
        return clear_partitioned(self._database, self._table, end)

    def _read_safe_end(self) -> tuple[int, Slowest]:
        """How far the table may be cleared now, and the consumer that limits it. Raises
        ConfigurationError when nobody is registered, NotOursError for what may not be erased."""
        check_erasable(self._database, self._table)
        slowest = self._bounds.read(self._table)
        return max(slowest.micros - self._margin, BEGINNING), slowest

    def _report(self, slowest: Slowest, seconds: float | None) -> None:
        """Says for whom clearing waits, where that may last."""
        name, consumer = self._table.name, slowest.consumer
        if slowest.micros == BEGINNING:
            if not slowest.registered:
                CLEARING_WAITS_FOR_START.log(LOG, table=name, consumer=consumer)
            return  # it has only just registered
        # The clock of the machine may be off: Spanner is asked before anybody is accused.
        suspected = seconds is not None and time.time() - slowest.micros / 1_000_000 > seconds
        behind = self._read_age(slowest.micros) if suspected else 0.0
        if seconds is not None and behind > seconds:
            CLEARING_WAITS_FOR_CONSUMER.log(LOG, table=name, consumer=consumer, seconds=behind)

    def _read_age(self, micros: int) -> float:
        """How many seconds ago a timestamp was, by Spanner's time."""
        with self._database.snapshot() as snapshot:
            (now,) = next(iter(snapshot.execute_sql("SELECT CURRENT_TIMESTAMP")))
        return (to_micros(now) - micros) / 1_000_000
