"""How many rows a window may hold."""

from __future__ import annotations

ROWS_FIRST = 10_000
ROWS_GROWTH = 4
WINDOW_SECONDS = 30.0
"""A window should be delivered in so many seconds; its position is saved at its end."""


class Pace:
    """How many rows a window may hold, so that a slow sink saves its position now and then: the
    first windows are smaller, and one that takes long makes the next one smaller."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self.rows = min(rows_max, ROWS_FIRST)

    def note(self, rows: int, seconds: float, whole: bool) -> None:
        """So many rows of a window were delivered in so many seconds; not ``whole``: it failed."""
        if seconds > WINDOW_SECONDS and rows:
            self.rows = min(self.rows, max(1, int(rows * WINDOW_SECONDS / seconds)))
        elif whole and seconds * ROWS_GROWTH <= WINDOW_SECONDS:
            self.rows = min(self._rows_max, self.rows * ROWS_GROWTH)
