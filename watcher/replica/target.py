"""Where a replica is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from watcher.captures.poll import PollCapture
from watcher.replica.copies import CopyState, Dropped, StoredCopy
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.upkeep import CompactCopy

Copy = TypeVar("Copy", bound=StoredCopy)


class FindDeleted(Protocol):
    """Removes rows that Spanner has deleted, where no capture tells which."""

    def is_due(self, name: str) -> bool:
        """Whether a table is to be looked at now."""
        ...

    def note(self, name: str, end: int) -> None:
        """The copy of a table has no deleted rows at a window's end."""
        ...

    def explain(self, name: str, end: int) -> tuple[str, ...]:
        """Which deleted rows a copy may have at a window's end, a clause for people."""
        ...

    def remove(
        self, copy: StoredCopy, capture: PollCapture, state: CopyState, end: int
    ) -> CopyState | None:
        """Removes those that the copy has at a window's end; None where nothing was removed."""
        ...


@dataclass(frozen=True)
class ReplicaTarget(Generic[Copy]):
    """Where a replica is: its copies and its manifest. ``keep_seconds``: for how long cuts are
    kept. ``format`` is that of the copies. ``compact``, if it is given, is called with a copy after
    the cut of a window that has changed it. ``dropped``: what becomes of
    columns that the table has no more. ``deleted`` finds rows that were deleted; None: the
    captures tell, or nobody. ``mode``: what the copies keep; ``caveats`` are clauses for people on
    what they lack."""

    copies: Callable[[str], Copy]
    manifest: Manifest
    keep_seconds: float
    format: str
    compact: CompactCopy[Copy] | None = None
    dropped: Dropped = "load"
    deleted: FindDeleted | None = None
    mode: Mode = LATEST
    caveats: tuple[str, ...] = ()
