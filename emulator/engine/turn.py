"""The right to write to a database: one transaction has it at a time, for a bounded time."""

from __future__ import annotations

import threading
import time
from typing import Protocol

from emulator.errors import SpannerError, aborted

IDLE_SECONDS = 10.0
POLL_SECONDS = 0.2


class Holder(Protocol):
    """A transaction that keeps the turn between its requests."""

    def give_up_if_idle(self, idle_seconds: float) -> bool:
        """Rolls back and releases the turn when its client has been silent for so long."""
        ...


class Turn:
    """The right to write. Waiting is bounded; an idle holder is aborted for those who wait."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._lock = threading.Lock()
        self._idle_seconds = idle_seconds
        self.holder: Holder | None = None

    def acquire(self, wait_seconds: float) -> None:
        """Waits for the turn. Raises ABORTED when it takes too long."""
        if self._lock.acquire(blocking=False):
            return
        deadline = time.monotonic() + wait_seconds
        while not self._lock.acquire(timeout=POLL_SECONDS):
            holder = self.holder
            if holder is not None:
                holder.give_up_if_idle(self._idle_seconds)
            if time.monotonic() > deadline:
                raise busy()

    def release(self) -> None:
        """Releases the turn."""
        self.holder = None
        self._lock.release()


def busy() -> SpannerError:
    """Another transaction kept the turn for too long."""
    return aborted("Transaction was aborted: another transaction holds the locks it needs.")
