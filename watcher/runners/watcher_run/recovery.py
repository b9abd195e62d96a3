"""What a watcher does when a window fails: waits, connects again, reads the schema again, ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from google.api_core.exceptions import GoogleAPICallError

from watcher.model.errors import (
    IndexDroppedError,
    LeaseExpiredError,
    SinkUnavailableError,
    WatcherError,
)
from watcher.model.log_events.running import (
    INDEX_MISSING,
    RUN_RETRIED,
    RUN_RETRIED_QUIETLY,
    SCHEMA_CHANGED,
    SESSION_LOST,
)
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.settings import RunSettings
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import iterate_pauses

LOG = logging.getLogger("watcher")
PAUSE_SECONDS_FIRST = 1.0
PAUSE_SECONDS_MAX = 60.0
SCHEMA_CHANGES_MAX = 5
"""So many windows in a row that fail because of the schema are an error."""


def iterate_pauses_of_run(first_seconds: float) -> Iterator[float]:
    """How many seconds to wait after each failure in a row of a run."""
    return iterate_pauses(first_seconds, PAUSE_SECONDS_MAX)


class Recovery:
    """The failures in a row of one run."""

    def __init__(
        self,
        settings: RunSettings,
        connection: Connection,
        lease: LeaseKeeper,
        reread_schema: Callable[[], None],
    ) -> None:
        """``reread_schema`` continues with the tables of the current schema."""
        self._settings = settings
        self._connection = connection
        self._lease = lease
        self._reread_schema = reread_schema
        self._schema_failures = 0
        self._index_gone_since: float | None = None
        self._pauses = iterate_pauses_of_run(PAUSE_SECONDS_FIRST)
        self.failures = 0

    def reset(self) -> None:
        """A window was delivered."""
        self._settings.resolver.queries.outages.record_answer()
        self.failures = self._schema_failures = 0
        self._index_gone_since = None
        self._pauses = iterate_pauses_of_run(PAUSE_SECONDS_FIRST)
        self._settings.lifecycle.note_success()

    def handle(self, error: Exception) -> float:
        """How many seconds to wait before the next try. Raises the error when it is permanent."""
        self._settings.metrics.count_error(type(error).__name__)
        kind = self._classify(error)
        if kind is FailureKind.SCHEMA and self._schema_failures < SCHEMA_CHANGES_MAX:
            self._schema_failures += 1
            SCHEMA_CHANGED.log(LOG, error=error)
            self._reread_schema()
            return 0.0
        if kind is FailureKind.SESSION:
            SESSION_LOST.log(LOG, error=error)
            self._connection.lost = True
        elif kind is not FailureKind.RETRY:
            raise error
        return self._back_off(error)

    def _back_off(self, error: Exception) -> float:
        """An outage is reported once, by its own lines; other errors each time, also to
        operators."""
        pause = next(self._pauses)
        self.failures += 1
        self._settings.metrics.count_retry("window")
        self._settings.lifecycle.note_failure()
        outages = self._settings.resolver.queries.outages
        # A lease expires in a long outage: that is no error of its own.
        expired = isinstance(error, LeaseExpiredError)
        reported = outages.record_error(error) or (
            expired and outages.happened_within(self._settings.config.lease)
        )
        # A queue has its own two lines, and operators can read of it in the database.
        own_lines = isinstance(error, SinkUnavailableError)
        event = RUN_RETRIED_QUIETLY if reported or own_lines else RUN_RETRIED
        event.log(LOG, seconds=pause, failures=self.failures, error=error)
        if not reported:
            self._lease.store_error(error)
        return pause

    def _classify(self, error: Exception) -> FailureKind:
        """What to do about an error. Another index may have replaced one that was dropped, or its
        table may be dropped, too."""
        kind = classify_error(error)
        if kind is not FailureKind.INDEX and not isinstance(error, IndexDroppedError):
            return kind
        if self._settings.config.on_missing_index == "scan":
            return FailureKind.SCHEMA
        try:
            self._settings.resolver.resolve_latest()
        except WatcherError as second:
            INDEX_MISSING.log(LOG, error=second)
            return self._wait_for_index()
        except GoogleAPICallError as second:
            return classify_error(second)
        return FailureKind.SCHEMA

    def _wait_for_index(self) -> FailureKind:
        """Spanner drops a table only when its indexes are gone: until it is dropped, too, or the
        index is there again, nothing is delivered, cleared or lost."""
        now = time.monotonic()
        if self._index_gone_since is None:
            self._index_gone_since = now
        waited = now - self._index_gone_since
        return FailureKind.RETRY if waited < self._settings.config.index_wait else FailureKind.INDEX
