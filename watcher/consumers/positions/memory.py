"""Positions that end with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from watcher.consumers.positions.content import Content, WholePositions


class MemoryPositions(WholePositions):
    """Positions that end with the process; for tests and for reading without being remembered.

    Clearing does not see them, so nothing is ever cleared behind them.
    """

    def __init__(self) -> None:
        self._content = Content()
        self._lock = threading.Lock()

    def _read(self) -> Content:
        with self._lock:
            return self._content.copy()

    @contextmanager
    def _change(self) -> Iterator[Content]:
        with self._lock:
            content = self._content.copy()
            yield content
            self._content = content
