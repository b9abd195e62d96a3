"""Positions as values, and what keeping them means: compare and set, never back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from watcher.errors import PositionConflictError, WatcherError
from watcher.stream import timestamp_text

TABLE = "SpannerWatcherPositions"


@dataclass(frozen=True, slots=True)
class Position:
    """A consumer's place in the changes of one table; ``micros`` is the end of its last window."""

    consumer: str
    table: str
    micros: int


@dataclass(frozen=True, slots=True)
class Move:
    """A position to be saved, and the one that must be there (None: the consumer is new)."""

    position: Position
    expected: int | None


class Positions(Protocol):
    """Keeps positions. Saving compares and sets: who expects another position is refused."""

    def load(self, consumer: str, table: str) -> Position | None:
        """The position of a consumer, or None for one that is not registered."""
        ...

    def save(self, position: Position, expected: int | None) -> None:
        """``save_all`` of one."""
        ...

    def save_all(self, moves: Sequence[Move], owner: str | None = None) -> None:
        """Advances (or, with ``expected`` None, registers) a consumer in several tables at once.

        ``owner`` names the instance that must hold the consumer's lease in the same transaction.
        Raises PositionConflictError, and saves nothing, when a kept position is not the expected
        one or the lease is another's.
        """
        ...

    def of(self, consumer: str) -> dict[str, int]:
        """The positions of a consumer by table, in microseconds since 1970."""
        ...

    def all(self, table: str) -> tuple[Position, ...]:
        """Every consumer of a table."""
        ...

    def every(self) -> tuple[Position, ...]:
        """Every consumer of every table."""
        ...


def conflict(position: Position, expected: int | None, found: int | None) -> PositionConflictError:
    """The refusal of a position that somebody else has moved."""
    shown = [timestamp_text(m) if m is not None else "none" for m in (expected, found)]
    return PositionConflictError(
        f"consumer '{position.consumer}' of {position.table} was expected at {shown[0]} but stands"
        f" at {shown[1]}: does another instance with the same name run?"
    )


def check_forward(position: Position, expected: int | None) -> None:
    """A position never goes back."""
    if expected is not None and position.micros < expected:
        raise WatcherError(
            f"the position of '{position.consumer}' would go back from {timestamp_text(expected)}"
            f" to {timestamp_text(position.micros)}"
        )


def moved(kept: Mapping[tuple[str, str], int], moves: Sequence[Move]) -> dict[tuple[str, str], int]:
    """What saving the moves changes. Raises PositionConflictError before anything is changed."""
    changes = {}
    for move in moves:
        check_forward(move.position, move.expected)
        key = (move.position.consumer, move.position.table)
        if kept.get(key) != move.expected:
            raise conflict(move.position, move.expected, kept.get(key))
        changes[key] = move.position.micros
    return changes
