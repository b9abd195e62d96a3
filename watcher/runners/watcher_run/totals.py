"""What a watcher has done so far, over all its runs."""

from __future__ import annotations

import time

from watcher.consumers.states import ConsumerProgress


class Totals:
    """Counts from the time that the watcher was made."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._windows = 0
        self._skipped = 0
        self.rows = 0

    def count_window(self, rows: int) -> None:
        """A window of so many rows was delivered."""
        self._windows += 1
        self.rows += rows

    def count_rows(self, rows: int) -> None:
        """So many rows of a backfill were delivered."""
        self.rows += rows

    def count_skipped(self) -> None:
        """A change went to the dead letters."""
        self._skipped += 1

    def note_dead_letters(self, left: int) -> None:
        """So many dead letters are in the file: of earlier runs, or left by a replay."""
        self._skipped = left

    @property
    def progress(self) -> ConsumerProgress:
        """The counts as operators see them."""
        seconds = max(time.monotonic() - self._started, 0.001)
        return ConsumerProgress(self._windows, self.rows, self.rows / seconds, self._skipped)
