"""Positions that end with the process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions.values import (
    BackfillMove,
    Move,
    Position,
    Registered,
    Registration,
    check_backfills,
    moved,
    plan_registration,
)


class MemoryPositions:
    """Positions that end with the process; for tests and for reading without being remembered.

    Clearing does not see them, so nothing is ever cleared behind them.
    """

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str], int] = {}
        self._backfills: dict[tuple[str, str], BackfillProgress] = {}
        self._lock = threading.RLock()

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        with self._lock:
            micros = self._positions.get((consumer, table))
        return None if micros is None else Position(consumer, table, micros)

    def register(self, registration: Registration, owner: str | None = None) -> Registered:  # noqa: ARG002
        """As ``Positions.register``."""
        consumer = registration.consumer
        with self._lock:
            plan = plan_registration(registration, self.of(consumer), {})
            self._positions |= {(consumer, table): at for table, at in plan.moved.items()}
            self._backfills |= {(consumer, table): p for table, p in plan.backfills.items()}
        return plan

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        self.save_all([Move(position, expected)])

    def save_all(
        self,
        moves: Sequence[Move],
        owner: str | None = None,  # noqa: ARG002
        backfills: Sequence[BackfillMove] = (),
        consumer: str | None = None,
    ) -> None:
        """As ``Positions.save_all``; one process is its own owner."""
        name = consumer or ""
        with self._lock:
            check_backfills(name, self.backfills(name), backfills)
            self._positions |= moved(self._positions, moves)
            for move in backfills:
                self._backfills.pop((name, move.table), None)
                if move.progress is not None:
                    self._backfills[name, move.table] = move.progress

    def remove(self, consumer: str, tables: Sequence[str], owner: str | None = None) -> None:  # noqa: ARG002
        """As ``Positions.remove``."""
        with self._lock:
            for table in tables:
                self._positions.pop((consumer, table), None)
                self._backfills.pop((consumer, table), None)

    def of(self, consumer: str) -> dict[str, int]:
        """As ``Positions.of``."""
        with self._lock:
            return {t: micros for (c, t), micros in self._positions.items() if c == consumer}

    def backfills(self, consumer: str) -> dict[str, BackfillProgress]:
        """As ``Positions.backfills``."""
        with self._lock:
            return {t: progress for (c, t), progress in self._backfills.items() if c == consumer}

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
