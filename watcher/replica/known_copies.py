"""What the writer of a replica knows of its copies: how they are, and what others have done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from watcher.model.log_events.copies import (
    COPY_VERIFIED,
    COPY_WRITTEN_BY_OTHERS,
    LOAD_PROGRESS_LOST,
)
from watcher.model.window import BEGINNING
from watcher.replica.copies import CopyState, StoredCopy
from watcher.replica.cuts.cut import Cause, Cut, Reason, TableCut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.replaced_copies import ReplacedCopies
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")
REFRESH_SECONDS = 300.0
"""How often the versions of idle copies are read anew: someone may have compacted them."""

Copy = TypeVar("Copy", bound=StoredCopy)


class KnownCopies(Generic[Copy]):
    """The copies of one replica. ``states`` are those of the copies that can be used; ``marks`` say
    why a copy is not known to be exact, until it is loaded or verified."""

    def __init__(self, copies: Callable[[str], Copy], manifest: Manifest) -> None:
        self._open_copy = copies
        self._manifest = manifest
        self._refreshed_at = time.monotonic()
        self._end = 0
        self._last: Cut | None = None
        self._foreign = False
        """Whether copies that no cut lists may be those of an owner before: of another database."""
        self.opened: dict[str, Copy] = {}
        self.states: dict[str, CopyState] = {}
        self.marks: dict[str, Reason] = {}

    def begin(self, last: Cut | None) -> None:
        """What is known is that of the last cut."""
        self._foreign = last is None and self._manifest.owner.was_taken()
        self.marks = {}
        if last is not None:
            self.marks = {
                name: reason
                for name, each in last.tables.items()
                for reason in each.reasons
                if reason.cause.stays
            } | dict(last.absent)

    def enter(self, end: int, last: Cut | None) -> None:
        """A window begins, after the cut that is the last one now."""
        self._end = end
        self._last = last

    def open(self, name: str) -> Copy:
        """The copy of a table."""
        if name not in self.opened:
            self.opened[name] = self._open_copy(name)
        return self.opened[name]

    def keep(self, names: Collection[str]) -> None:
        """Forgets the copies of tables that are gone: one that comes back is another one."""
        self.states = {name: state for name, state in self.states.items() if name in names}

    def forget(self, name: str) -> None:
        """What is stored of a copy is read anew before it is used."""
        self.states.pop(name, None)

    def forget_all(self) -> None:
        """What is stored is read anew."""
        self.states = {}

    def is_loading(self, name: str) -> bool:
        """Whether a copy has a part of its table."""
        return name in self.states and self.states[name].progress is not None

    def refresh(self) -> None:
        """Reads the versions of all copies anew, now and then."""
        if time.monotonic() - self._refreshed_at < REFRESH_SECONDS:
            return
        known, self.states = self.states, {}
        for name, before in known.items():
            state = self.open(name).read_state()
            # Where another instance has written, the last cut says whether the copy can be used.
            if state is not None and state.end == before.end:
                self.adopt(name, before.version, state)
        self._refreshed_at = time.monotonic()

    def find_obstacle(self, name: str, start: int, replaced: ReplacedCopies) -> str | None:
        """Why a copy does not have everything up to the table's position (rule 1); None where it
        does."""
        if name in self.states:
            return None
        state = self.open(name).read_state()
        if state is None:
            return "there is none"
        if name in replaced:
            return "it is that of another table, which had the name before"
        listed = self._last.tables.get(name) if self._last and self._last.end >= start else None
        covered = listed is not None and listed.version <= state.version
        # A table that was dropped and is back begins at the beginning; its copy is the old one's.
        if not (covered or (BEGINNING < start <= state.end and not self._foreign)):
            return describe_gap(start, state, listed)
        if self._lacks_progress(name, state):
            LOAD_PROGRESS_LOST.log(LOG, table=name)
            return "it is not known how far its load was"
        self.adopt(name, listed.version if listed is not None and covered else None, state)
        return None

    def adopt(self, name: str, after: int | None, state: CopyState) -> None:
        """Takes a copy as it is, and notes what others have done to it after a version."""
        self.states[name] = state
        outside = self.open(name).list_outside(after, state.version)
        if not outside:
            return
        newest, more = outside[0], len(outside) - 1
        others = f", and {more} more commits by others" if more else ""
        self.mark(name, f"version {newest.version}: {newest.detail}{others}")

    def mark(self, name: str, detail: str) -> None:
        """Cuts are not exact from this window on, until the copy is loaded or verified."""
        COPY_WRITTEN_BY_OTHERS.log(LOG, table=name, detail=detail)
        self.marks[name] = Reason(Cause.OUTSIDE_WRITE, detail, self._end)

    def settle_verified(self) -> None:
        """Forgets marks of copies that ``verify`` has found equal since."""
        for name, mark in list(self.marks.items()):
            if self._manifest.read_verified(name) >= mark.since:
                COPY_VERIFIED.log(LOG, table=name)
                del self.marks[name]

    def _lacks_progress(self, name: str, state: CopyState) -> bool:
        """Whether the copy was under load at the last cut, has no commit since, and does not say
        how far it is."""
        last = self._last
        if state.progress is not None or last is None or name not in last.tables:
            return False
        return state.end <= last.end and last.tables[name].loading


def describe_gap(start: int, state: CopyState, listed: TableCut | None) -> str:
    """Why a copy may lack something before a table's position."""
    if start <= BEGINNING:
        return "its table has no position yet"
    at = f"its version {state.version} ends at {format_timestamp(state.end)}"
    cut = "no cut up to there" if listed is None else f"the last cut has version {listed.version}"
    return f"its table's position is {format_timestamp(start)}, {at}, and {cut} lists it"
