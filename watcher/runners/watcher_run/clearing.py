"""Clears the tables of a watcher on a schedule."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from watcher.consumers.clearing import Clearing
from watcher.model.log_events.reading import CLEARING_POSTPONED, CLEARING_POSTPONED_BY_OUTAGE
from watcher.runners.metrics import Metrics
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.settings.sections import ClearingConfig
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import is_outage
from watcher.tables.values import WatchedTable

LOG = logging.getLogger("watcher")


class PeriodicClearing:
    """Removes delivered rows from the indexes, while this instance owns its lease."""

    def __init__(
        self,
        settings: ClearingConfig,
        connection: Connection,
        lease: LeaseKeeper,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._lease = lease
        self._metrics = metrics

    def clear(self, tables: Iterable[WatchedTable]) -> None:
        """Clears tables. What may go away is left to the next clearing."""
        for table in tables:
            self._clear_table(table)

    def _clear_table(self, table: WatchedTable) -> None:
        settings = self._settings
        try:
            result = Clearing(
                self._connection.database,
                table,
                self._connection.positions,
                settings.margin,
                settings.method,
                self._lease.fence,
            ).clear(settings.rows_max, settings.report_after)
        except Exception as error:
            kind = classify_error(error)
            if kind is FailureKind.PERMANENT:
                raise
            self._connection.lost |= kind is FailureKind.SESSION
            event = CLEARING_POSTPONED_BY_OUTAGE if is_outage(error) else CLEARING_POSTPONED
            event.log(LOG, table=table.name, error=error)
        else:
            self._metrics.count_cleared(table.name, result.rows)
