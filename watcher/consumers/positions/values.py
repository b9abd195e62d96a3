"""The positions of consumers: values, and the rules of moving them. No I/O.

The protocol is in docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from watcher.captures.progress import BackfillProgress
from watcher.model.errors import PositionConflictError, WatcherError
from watcher.model.window import BEGINNING
from watcher.spanner.timestamps import format_timestamp

TABLE = "SpannerWatcherPositions"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a consumer is in one table; ``micros`` is the end of its last window."""

    consumer: str
    table: str
    micros: int


@dataclass(frozen=True, slots=True)
class Move:
    """A position to be saved, and the one that must be there (None: the consumer is new)."""

    position: Position
    expected: int | None


@dataclass(frozen=True, slots=True)
class BackfillMove:
    """The progress of a backfill to be saved (None: it is done), and the one that must be there."""

    table: str
    progress: BackfillProgress | None
    expected: BackfillProgress | None


@dataclass(frozen=True, slots=True)
class Registration:
    """Where a consumer starts in tables in which it has no position.

    ``now`` are tables whose start is a read timestamp of just now; where something above it was
    cleared already, all of them begin there instead. ``filled`` are tables whose backfill begins at
    their position. ``backwards``: positions above their start go back to it; else they stay.
    ``cleared_with`` maps tables to that of their change sets, which is cleared for them.
    ``selection`` says which tables the consumer watches, and whether it polls them; it is stored
    with the positions.
    ``replaced`` maps tables to the commit timestamp at which their name went to another table: a
    position below it is that of the table before.
    """

    consumer: str
    starts: Mapping[str, int]
    now: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    backwards: bool = False
    cleared_with: Mapping[str, str] = field(default_factory=dict)
    selection: str | None = None
    replaced: Mapping[str, int] = field(default_factory=dict)

    def is_void(self, table: str, position: int) -> bool:
        """Whether a stored position is that of a table which had the name before."""
        return BEGINNING < position < self.replaced.get(table, BEGINNING)

    @property
    def tables_cleared(self) -> tuple[str, ...]:
        """The tables by which it is known how far those of this registration were cleared."""
        return (*self.starts, *self.cleared_with.values())

    def cleared_to(self, table: str, cleared: Mapping[str, int]) -> int:
        """How far a table may have been cleared, given that of ``tables_cleared``."""
        names = (table, self.cleared_with.get(table, table))
        return max(cleared.get(name, BEGINNING) for name in names)


@dataclass(frozen=True, slots=True)
class Registered:
    """What a registration leads to. ``positions`` are those of all its tables afterwards, ``moved``
    what has to be written for it. ``cleared`` maps tables that begin below what was cleared already
    to that timestamp: rows between the two may be missing."""

    positions: Mapping[str, int]
    moved: Mapping[str, int]
    backfills: Mapping[str, BackfillProgress] = field(default_factory=dict)
    cleared: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    """Tables whose backfill is not to go on: it is that of another table of the name."""


class Positions(Protocol):
    """Keeps positions and the progress of backfills. Saving compares and sets: who expects another
    position is refused."""

    unplanned_micros: int
    """A window that is no longer is handed over without a planned end."""

    def load(self, consumer: str, table: str) -> Position | None:
        """The position of a consumer, or None for one that is not registered."""
        ...

    def register(self, registration: Registration, owner: str | None = None) -> Registered:
        """Gives a consumer its first positions, and stores the selection that they are of, in one
        transaction.

        Raises PositionConflictError, and saves nothing, when the lease is another's.
        """
        ...

    def save(self, position: Position, expected: int | None) -> None:
        """``save_all`` of one."""
        self.save_all([Move(position, expected)])

    def save_all(
        self,
        moves: Sequence[Move],
        owner: str | None = None,
        backfills: Sequence[BackfillMove] = (),
        consumer: str | None = None,
    ) -> None:
        """Moves positions, and the progress of backfills of a ``consumer``, in one transaction.

        ``owner`` names the instance that must hold the consumer's lease in the same transaction.
        Raises PositionConflictError, and saves nothing, when something stored is not what is
        expected or the lease is another's.
        """
        ...

    def plan_ends(
        self, consumer: str, ends: Mapping[str, int | None], owner: str | None = None
    ) -> None:
        """Stores how far rows of tables may be handed over (None: as far as it goes without a
        plan), before they are.

        Raises PositionConflictError when the lease is another's.
        """
        ...

    def load_planned_ends(self, consumer: str) -> dict[str, int]:
        """The planned ends of a consumer by table, in microseconds since 1970: nothing was handed
        over above them. Where it is registered that is its position."""
        ...

    def remove(self, consumer: str, tables: Sequence[str], owner: str | None = None) -> None:
        """Unregisters a consumer from tables that were dropped."""
        ...

    def load_all(self, consumer: str) -> dict[str, int]:
        """The positions of a consumer by table, in microseconds since 1970."""
        ...

    def load_selection(self, consumer: str) -> str | None:
        """Which tables a consumer polls, by its last registration; None for a change stream, and
        for a consumer that was never registered. A table that it means, and in which the consumer
        has no position, could be watched at none of its positions."""
        ...

    def load_backfills(self, consumer: str) -> dict[str, BackfillProgress]:
        """The backfills of a consumer that are in progress, by table."""
        ...

    def list_all(self) -> tuple[Position, ...]:
        """Every position of every consumer."""
        ...


def position_conflict(
    position: Position, expected: int | None, actual: int | None
) -> PositionConflictError:
    """The error for a position that another instance has moved."""
    shown = [format_timestamp(m) if m is not None else "none" for m in (expected, actual)]
    return PositionConflictError(
        f"the position of consumer '{position.consumer}' in {position.table} should be {shown[0]}"
        f" but is {shown[1]}: another instance with the same name has moved it"
    )


def check_forward(position: Position, expected: int | None) -> None:
    """A window moves a position forward only."""
    if expected is not None and position.micros < expected:
        raise WatcherError(
            f"the position of consumer '{position.consumer}' would go back from"
            f" {format_timestamp(expected)} to {format_timestamp(position.micros)}"
        )


def apply_moves(
    stored: Mapping[tuple[str, str], int], moves: Sequence[Move]
) -> dict[tuple[str, str], int]:
    """What saving the moves changes. Raises PositionConflictError before anything is changed."""
    changes = {}
    for move in moves:
        check_forward(move.position, move.expected)
        key = (move.position.consumer, move.position.table)
        if stored.get(key) != move.expected:
            raise position_conflict(move.position, move.expected, stored.get(key))
        changes[key] = move.position.micros
    return changes


def check_backfills(
    consumer: str, stored: Mapping[str, BackfillProgress], moves: Iterable[BackfillMove]
) -> None:
    """Raises PositionConflictError when a backfill is not where it is expected."""
    for move in moves:
        if stored.get(move.table) != move.expected:
            raise PositionConflictError(
                f"the backfill of {move.table} for consumer '{consumer}' was moved by"
                " another instance with the same name"
            )


def raise_starts(registration: Registration, cleared: Mapping[str, int]) -> dict[str, int]:
    """The starts, those of ``now`` where nothing above them was cleared. Also of tables that have a
    position: until it took the name another instance may have delivered, and all have cleared."""
    floating = registration.starts.keys() & registration.now
    latest = [
        max(registration.starts[table], registration.cleared_to(table, cleared))
        for table in floating
    ]
    return {**registration.starts, **dict.fromkeys(floating, max(latest, default=BEGINNING))}


def plan_registration(
    registration: Registration, stored: Mapping[str, int], cleared: Mapping[str, int]
) -> Registered:
    """What a registration changes. ``stored`` are the consumer's positions, ``cleared`` is how far
    each of the tables may have been cleared."""
    starts = raise_starts(registration, cleared)
    stored = {t: at for t, at in stored.items() if not registration.is_void(t, at)}
    new = {table: at for table, at in starts.items() if table not in stored}
    back = {
        table: at
        for table, at in starts.items()
        if registration.backwards and stored.get(table, at) > at
    }
    changes = new | back
    tables = registration.starts.keys()
    return Registered(
        positions={table: at for table, at in {**stored, **changes}.items() if table in tables},
        moved=changes,
        backfills={t: BackfillProgress(new[t], None) for t in new if t in registration.filled},
        ended=frozenset(new.keys() & registration.replaced.keys() - registration.filled),
        cleared={
            table: registration.cleared_to(table, cleared)
            for table, at in changes.items()
            if BEGINNING < at < registration.cleared_to(table, cleared)
        },
    )
