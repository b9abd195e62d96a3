"""The scheduled clearing of the demo: APScheduler and partitioned DML, beside everything else."""

from __future__ import annotations

from google.cloud.spanner_v1.database import Database

from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.demo.settings import DemoSettings
from watcher.runners.schedule import Schedule
from watcher.tables.values import WatchedTable


class ScheduledClearing:
    """Clears at the settings' interval while the ``with`` block runs; ``cleared`` counts rows."""

    def __init__(self, settings: DemoSettings, database: Database, table: WatchedTable) -> None:
        positions = SpannerPositions(database)
        self._clearing = Clearing(database, table, positions)
        self._schedule = Schedule()
        self._schedule.every(settings.clear_every_seconds, "clear", self.now)
        self.cleared = 0

    def now(self) -> None:
        """Clears once."""
        self.cleared += self._clearing.clear().rows

    def __enter__(self) -> ScheduledClearing:
        self._schedule.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._schedule.stop()
        self._schedule.wait()
