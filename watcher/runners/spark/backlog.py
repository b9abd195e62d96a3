"""What a micro-batch leaves for the next ones, counted for Spark's progress."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property

from watcher.model.errors import WatcherError
from watcher.model.log_events.spark import BACKLOG_UNKNOWN
from watcher.model.window import Window
from watcher.runners.spark.window_sources import WindowSource
from watcher.spanner.failures import CALL_ERRORS

LOG = logging.getLogger("watcher.spark")
ROWS_BEHIND_MAX = 10_000
"""No more rows are counted: a count must cost little beside the batch."""


class Backlog:
    """The windows between the end of a batch and the newest timestamp that was seen."""

    def __init__(self, source: WindowSource, windows: Mapping[str, Window]) -> None:
        self._source = source
        self._windows = {name: window for name, window in windows.items() if not window.empty}

    @cached_property
    def rows(self) -> int | None:
        """How many rows they hold, ``ROWS_BEHIND_MAX`` at most; None where that is not known. A
        count that fails is logged: it ends no query."""
        if not self._windows:
            return 0
        try:
            rows = self._source.count_rows(self._windows, ROWS_BEHIND_MAX)
        except (*CALL_ERRORS, WatcherError) as error:
            BACKLOG_UNKNOWN.log(LOG, error=error)
            return None
        return None if rows is None else min(rows, ROWS_BEHIND_MAX)
