"""Positions that end with the process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from watcher.positions.values import Move, Position, moved


class MemoryPositions:
    """Positions that end with the process; for tests and for reading without being remembered."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        with self._lock:
            micros = self._positions.get((consumer, table))
        return None if micros is None else Position(consumer, table, micros)

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        self.save_all([Move(position, expected)])

    def save_all(self, moves: Sequence[Move], owner: str | None = None) -> None:  # noqa: ARG002
        """As ``Positions.save_all``; one process is its own owner."""
        with self._lock:
            self._positions |= moved(self._positions, moves)

    def of(self, consumer: str) -> dict[str, int]:
        """As ``Positions.of``."""
        with self._lock:
            return {t: micros for (c, t), micros in self._positions.items() if c == consumer}

    def all(self, table: str) -> tuple[Position, ...]:
        """As ``Positions.all``."""
        with self._lock:
            return tuple(
                Position(c, t, micros) for (c, t), micros in self._positions.items() if t == table
            )

    def every(self) -> tuple[Position, ...]:
        """As ``Positions.every``."""
        with self._lock:
            return tuple(Position(c, t, micros) for (c, t), micros in self._positions.items())
