"""The latest overview, read in the background, and why there is no newer one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge

from watcher.model.errors import WatcherError
from watcher.model.log_events.running import OVERVIEW_UNREADABLE
from watcher.overview.lag_history import LagHistory
from watcher.overview.metrics import OverviewCollector
from watcher.overview.values import Overview
from watcher.spanner.failures import CALL_ERRORS

LOG = logging.getLogger("watcher.page")
FRESH_READS = 3
"""The page is ready while its overview is no older than so many intervals ..."""
FRESH_SECONDS_MIN = 15.0
"""... or than this."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest overview there is; ``age_seconds`` since it was read. ``failure`` says why the
    last try gave none."""

    overview: Overview | None
    age_seconds: float
    failure: str | None


class Feed:
    """Keeps the latest overview. ``read`` reads one."""

    def __init__(self, read: Callable[[], Overview], every_seconds: float) -> None:
        self._read = read
        self._fresh_seconds = max(FRESH_SECONDS_MIN, FRESH_READS * every_seconds)
        self._reading = threading.Lock()
        self._overview: Overview | None = None
        self._read_at = time.monotonic()
        self._failure: str | None = None
        self.lags = LagHistory()
        self.registry = CollectorRegistry()
        self.registry.register(OverviewCollector(lambda: self._overview))
        self._reads = Counter(
            "spanner_watcher_page_reads",
            "Reads of everything that the page shows",
            ("outcome",),
            registry=self.registry,
        )
        age = Gauge(
            "spanner_watcher_page_age_seconds",
            "Seconds since the page has read the database",
            registry=self.registry,
        )
        age.set_function(lambda: self.latest.age_seconds)

    @property
    def latest(self) -> Latest:
        """What is known now."""
        return Latest(self._overview, time.monotonic() - self._read_at, self._failure)

    @property
    def ready(self) -> bool:
        """True while what is shown is fresh."""
        return self._overview is not None and self.latest.age_seconds <= self._fresh_seconds

    def read(self) -> Overview:
        """Reads now. Raises what the client and watcher raise."""
        with self._reading:
            overview = self._read()
            self.lags.record(overview)
            self._overview, self._read_at = overview, time.monotonic()
            self._failure = None
            self._reads.labels("ok").inc()
            return overview

    def refresh(self) -> None:
        """Reads now; an error is kept to be shown, and the next read may succeed."""
        try:
            self.read()
        except (*CALL_ERRORS, WatcherError) as error:
            text = str(getattr(error, "message", "") or error or type(error).__name__)
            if self._failure is None:
                OVERVIEW_UNREADABLE.log(LOG, error=text)
            self._failure = text
            self._reads.labels("failed").inc()
