"""Virtual time, which only the scheduler advances, and the machine's own functions."""

from __future__ import annotations

import threading
import time
import uuid
from types import SimpleNamespace

from emulator.engine.locks.table import LockTable
from emulator.engine.turn import Turn

TICK_SECONDS = 0.001
BEGIN_SECONDS = 1_750_000_000.0
"""Virtual time begins in 2025."""

originals = SimpleNamespace(
    sleep=time.sleep,
    monotonic=time.monotonic,
    clock_gettime=time.clock_gettime,
    time=time.time,
    time_ns=time.time_ns,
    start=threading.Thread.start,
    join=threading.Thread.join,
    wait=threading.Event.wait,
    acquire=Turn.acquire,
    pause=LockTable.pause,
    uuid4=uuid.uuid4,
)


class VirtualClock:
    """A clock in seconds since 1970 that advances only by ``tick`` and ``advance``."""

    def __init__(self) -> None:
        self._micros = round(BEGIN_SECONDS * 1_000_000)

    @property
    def seconds(self) -> float:
        """Now."""
        return self._micros / 1_000_000

    def micros(self) -> int:
        """Now, in microseconds."""
        return self._micros

    def tick(self) -> None:
        """The time that a step takes."""
        self.advance(TICK_SECONDS)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._micros += max(round(seconds * 1_000_000), 1)

    def next_hour(self) -> None:
        """Each schedule begins at a whole hour, so that nothing in it depends on the one before."""
        hour = 3_600_000_000
        self._micros = (self._micros // hour + 2) * hour
