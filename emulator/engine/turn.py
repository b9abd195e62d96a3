"""The turn to use the connection that writes: for one statement, or for one commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from emulator.engine.locks.table import busy


class Turn:
    """A mutex whose waiting is bounded. Nobody waits for a client or for a lock while it has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def acquire(self, wait_seconds: float) -> None:
        """Waits for the turn. Raises ABORTED when it takes too long."""
        if not self._lock.acquire(timeout=wait_seconds):
            raise busy()

    def release(self) -> None:
        """Releases the turn."""
        self._lock.release()

    @contextmanager
    def taken(self, wait_seconds: float) -> Iterator[None]:
        """Has the turn while it lasts."""
        self.acquire(wait_seconds)
        try:
            yield
        finally:
            self.release()
