"""Lets the runs of one process deliver one after another."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """A lock that is given in the order in which it was asked for: a run far behind, which asks
    again at once, does not keep the others waiting."""

    def __init__(self) -> None:
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            if self._waiting[0] is turn:
                turn.set()
        turn.wait()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.popleft()
            if self._waiting:
                self._waiting[0].set()
