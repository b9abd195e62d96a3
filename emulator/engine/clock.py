"""The time of the server: microseconds that never repeat for commits and never go back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

COUNTER = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts seconds, also while the machine is suspended, and is set by nobody."""
BEGAN_NS = time.time_ns() - time.clock_gettime_ns(COUNTER)


def wall_micros() -> int:
    """Unix time in microseconds, as it goes on from the start of the process: TrueTime does not go
    back, nor stand still until a clock that was set has caught up."""
    return (BEGAN_NS + time.clock_gettime_ns(COUNTER)) // 1000


class Clock:
    """Shared by all databases of a server."""

    def __init__(self, wall: Callable[[], int] = wall_micros) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._last = 0
        self._ahead = 0

    def next(self) -> int:
        """A commit timestamp: above everything that was given out before."""
        with self._lock:
            self._last = max(self.wall(), self._last + 1)
            return self._last

    def now(self) -> int:
        """A read timestamp: every commit timestamp given out later is above it."""
        with self._lock:
            self._last = max(self.wall(), self._last)
            return self._last

    def observe(self, micros: int) -> None:
        """Timestamps given out from now on are above this one (a read ahead)."""
        with self._lock:
            self._last = max(self._last, micros)

    def resume(self, last_commit: int) -> None:
        """Time goes on from the last commit of a file, which was written while the clock of the
        machine was ahead of now."""
        with self._lock:
            self._ahead += max(0, last_commit - self.wall())
            self._last = max(self._last, last_commit)

    def wall(self) -> int:
        """The time without any promise."""
        return self._wall() + self._ahead
