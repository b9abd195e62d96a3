"""Positions that one process keeps as a whole: in memory, and what a file has in common with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions.values import (
    BackfillMove,
    Move,
    Position,
    Positions,
    Registered,
    Registration,
    apply_moves,
    check_backfills,
    plan_registration,
)


@dataclass(slots=True)
class Content:
    """Everything that is kept, by consumer and table."""

    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    backfills: dict[tuple[str, str], BackfillProgress] = field(default_factory=dict)
    planned_ends: dict[tuple[str, str], int] = field(default_factory=dict)
    selections: dict[str, str] = field(default_factory=dict)
    """By consumer."""

    def copy(self) -> Content:
        """The same content, to be changed apart."""
        return Content(
            dict(self.positions),
            dict(self.backfills),
            dict(self.planned_ends),
            dict(self.selections),
        )

    def positions_by_table(self, consumer: str) -> dict[str, int]:
        """The positions of a consumer."""
        return {table: at for (name, table), at in self.positions.items() if name == consumer}

    def backfills_by_table(self, consumer: str) -> dict[str, BackfillProgress]:
        """The backfills of a consumer."""
        return {t: progress for (name, t), progress in self.backfills.items() if name == consumer}


class WholePositions(Positions):
    """``Positions`` over a ``Content``, which is read and replaced as a whole. One process is its
    own owner: the comparison with what is expected keeps a second instance out."""

    unplanned_micros = 0  # it costs no call

    def _read(self) -> Content:
        """What is kept now."""
        raise NotImplementedError

    def _change(self) -> AbstractContextManager[Content]:
        """The content to change, alone; kept at the end unless an error is raised."""
        raise NotImplementedError

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        micros = self._read().positions.get((consumer, table))
        return None if micros is None else Position(consumer, table, micros)

    def register(self, registration: Registration, owner: str | None = None) -> Registered:  # noqa: ARG002
        """As ``Positions.register``."""
        consumer = registration.consumer
        with self._change() as content:
            plan = plan_registration(registration, content.positions_by_table(consumer), {})
            moved = {(consumer, table): at for table, at in plan.moved.items()}
            content.positions |= moved
            content.planned_ends |= moved
            for table in plan.ended:
                content.backfills.pop((consumer, table), None)
            content.backfills |= {(consumer, table): p for table, p in plan.backfills.items()}
            content.selections.pop(consumer, None)
            if registration.selection is not None:
                content.selections[consumer] = registration.selection
        return plan

    def save_all(
        self,
        moves: Sequence[Move],
        owner: str | None = None,  # noqa: ARG002
        backfills: Sequence[BackfillMove] = (),
        consumer: str | None = None,
    ) -> None:
        """As ``Positions.save_all``."""
        name = consumer or ""
        with self._change() as content:
            check_backfills(name, content.backfills_by_table(name), backfills)
            content.positions |= apply_moves(content.positions, moves)
            for move in backfills:
                content.backfills.pop((name, move.table), None)
                if move.progress is not None:
                    content.backfills[name, move.table] = move.progress

    def plan_ends(
        self,
        consumer: str,
        ends: Mapping[str, int | None],
        owner: str | None = None,  # noqa: ARG002
    ) -> None:
        """As ``Positions.plan_ends``."""
        with self._change() as content:
            for table, end in ends.items():
                content.planned_ends.pop((consumer, table), None)
                if end is not None:
                    content.planned_ends[consumer, table] = end

    def load_planned_ends(self, consumer: str) -> dict[str, int]:
        """As ``Positions.load_planned_ends``."""
        ends = self._read().planned_ends
        return {table: end for (name, table), end in ends.items() if name == consumer}

    def remove(self, consumer: str, tables: Sequence[str], owner: str | None = None) -> None:  # noqa: ARG002
        """As ``Positions.remove``."""
        with self._change() as content:
            for table in tables:
                content.positions.pop((consumer, table), None)
                content.backfills.pop((consumer, table), None)
                content.planned_ends.pop((consumer, table), None)

    def load_all(self, consumer: str) -> dict[str, int]:
        """As ``Positions.load_all``."""
        return self._read().positions_by_table(consumer)

    def load_selection(self, consumer: str) -> str | None:
        """As ``Positions.load_selection``."""
        return self._read().selections.get(consumer)

    def load_backfills(self, consumer: str) -> dict[str, BackfillProgress]:
        """As ``Positions.load_backfills``."""
        return self._read().backfills_by_table(consumer)

    def list_all(self) -> tuple[Position, ...]:
        """As ``Positions.list_all``."""
        return tuple(Position(c, t, micros) for (c, t), micros in self._read().positions.items())


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
