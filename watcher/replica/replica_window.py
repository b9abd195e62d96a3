"""A window on its way to the copies of a replica, and what is reported of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from watcher.captures.poll import PollCapture
from watcher.model.log_events.copies import COPY_RELOADED
from watcher.replica.copies import CopyState, NewColumns, StoredCopy
from watcher.replica.cuts.cut import Cut
from watcher.replica.loads import LoadProgress
from watcher.replica.new_columns import ColumnPlan

LOG = logging.getLogger("watcher.replica")
Written_contra = TypeVar("Written_contra", bound=StoredCopy, contravariant=True)


@dataclass(frozen=True, slots=True)
class LoadState:
    """A load that goes on: how far it is, and for how many seconds it has lasted by Spanner's time,
    up to the window's end."""

    progress: LoadProgress
    seconds: float

    @classmethod
    def measure(cls, progress: LoadProgress, end: int) -> LoadState:
        """That of a load after the window to ``end``."""
        return cls(progress, max(end - progress.began, 0) / 1_000_000)

    @property
    def seconds_left(self) -> float | None:
        """How long it lasts on, if the rest is like what is loaded; None: nobody knows."""
        share = self.progress.share
        return self.seconds * (1 - share) / share if share else None


@dataclass(frozen=True, slots=True)
class CutReport:
    """A window that was written. ``loaded`` and ``merged`` map tables to numbers of rows;
    ``lag_seconds`` is how old the cut was then, by Spanner's time. ``loading``: how far the loads
    are that go on, by table; None where the first chunk is still to come."""

    cut: Cut
    loaded: Mapping[str, int]
    merged: Mapping[str, int]
    lag_seconds: float
    loading: Mapping[str, LoadState | None] = field(default_factory=dict)


@dataclass(slots=True)
class ReplicaWindow:
    """A window on its way to the copies."""

    end: int
    captures: Mapping[str, PollCapture]
    loads: dict[str, str]
    """Tables that are loaded, and why."""
    forward: bool
    """Not before the last cut: a table that joins late has windows of its own before that."""
    widened: Mapping[str, ColumnPlan] = field(default_factory=dict)
    """Tables whose copies get new columns, and are not loaded."""
    loaded: dict[str, int] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Tables for whose first chunk there was no time."""

    def find_added(self, name: str) -> frozenset[str]:
        """The columns that changes of the window may lack: the table has got them in the window.
        Where a change stream leaves columns out, nobody can say which."""
        plan = self.widened.get(name)
        if plan is None or self.captures[name].table.gaps:
            return frozenset()
        return plan.added

    def load_whole(self, name: str) -> None:
        """A table is loaded at the window's end, because changes in the window were made in another
        schema than the one that is valid there."""
        COPY_RELOADED.log(LOG, table=name)
        self.loads[name] = "changes of one window were made in two schemas"


class WindowRows(Protocol[Written_contra]):
    """The rows of a window, and how they are written."""

    @property
    def changed(self) -> Collection[str]:
        """The tables that have rows in the window."""
        ...

    @property
    def may_load(self) -> bool:
        """Whether the window has the time to load something more."""
        ...

    def load(
        self,
        copy: Written_contra,
        capture: PollCapture,
        end: int,
        progress: LoadProgress | None = None,
    ) -> tuple[CopyState, int]:
        """Puts the table as it is at a timestamp, or a chunk of it, in the place of the copy; with
        ``progress`` adds what comes after that. Returns the copy's state, which says whether there
        is more, and how many rows. Raises VersionExpiredError, with nothing changed, where nothing
        can be read then."""
        ...

    def change_columns(
        self, copy: Written_contra, capture: PollCapture, plan: ColumnPlan, columns: NewColumns
    ) -> CopyState | None:
        """As ``EvolvingCopy.change_columns``, with the values that new columns have at the window's
        end, also in rows of the window that lack them. None, too, where the format's columns cannot
        change. Raises VersionExpiredError and TooManyValuesError, with nothing changed."""
        ...

    def merge(
        self, copy: Written_contra, capture: PollCapture, end: int, before: CopyState
    ) -> tuple[CopyState, int]:
        """Merges the newest row of each key, of a copy under load only those up to its last key:
        the copy's state, and how many rows. ``before``: the state that the writer knows."""
        ...
