"""The time of the server: microseconds that never repeat for commits and never go back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wall_micros() -> int:
    """Unix time in microseconds."""
    return time.time_ns() // 1000


class Clock:
    """Shared by all databases of a server."""

    def __init__(self, wall: Callable[[], int] = wall_micros) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        """A commit timestamp: above everything that was given out before."""
        with self._lock:
            self._last = max(self._wall(), self._last + 1)
            return self._last

    def now(self) -> int:
        """A read timestamp: every commit timestamp given out later is above it."""
        with self._lock:
            self._last = max(self._wall(), self._last)
            return self._last

    def observe(self, micros: int) -> None:
        """Timestamps given out from now on are above this one (a restart, a read ahead)."""
        with self._lock:
            self._last = max(self._last, micros)

    def wall(self) -> int:
        """The time without any promise."""
        return self._wall()
