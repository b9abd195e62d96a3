"""Writes the cut of a window: the version of each copy, and why it is not known to be exact."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from watcher.model.log_events.copies import CUT_NOT_EXACT, CUT_SKIPPED, WINDOW_TOO_OLD
from watcher.replica.copies import StoredCopy
from watcher.replica.cuts.cut import Cause, Cut, Reason, TableCut, describe_table
from watcher.replica.cuts.owner import Owner
from watcher.replica.known_copies import KnownCopies
from watcher.replica.replica_window import CutReport, LoadState, ReplicaWindow
from watcher.replica.target import ReplicaTarget
from watcher.replica.window_reads import is_readable, measure_lag
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")
Copy = TypeVar("Copy", bound=StoredCopy)


class CutWriter(Generic[Copy]):
    """Of one replica. ``last`` is the cut that was written last; ``unfinished``: the latest window
    has left something to load."""

    def __init__(
        self,
        owner: Owner,
        target: ReplicaTarget[Copy],
        known: KnownCopies[Copy],
        report: Callable[[CutReport], object],
    ) -> None:
        self._owner = owner
        self._target = target
        self._known = known
        self._report = report
        self.last: Cut | None = None
        self.unfinished = False

    def read_last(self) -> Cut | None:
        """Claims the folder, and reads the cut that was written last."""
        self._target.manifest.claim(self._owner)
        self.last = self._target.manifest.read_last()
        return self.last

    def note_strong_reads(self, window: ReplicaWindow) -> None:
        """Where the end is no longer readable, rows may have been read as of now, or be missing
        because they changed since: cuts are not exact until windows end after that. Written before
        anything is committed."""
        capture = next(iter(window.captures.values()), None)
        if capture is None or is_readable(capture, window.end):
            return
        now = capture.queries.fetch_read_timestamp()
        WINDOW_TOO_OLD.log(LOG, end=format_timestamp(window.end), exact_from=format_timestamp(now))
        late = Reason(Cause.READ_LATE, f"rows were read at {format_timestamp(now)}")
        last = self.last or replace(self._make(window.end), reasons=(late,))
        self._put(replace(last, exact_from=now))

    def note_read_at(self, at: int) -> bool:
        """Values of a timestamp are about to be in a copy whose rows are older: cuts are not exact
        until windows end there. Returns whether there is a cut that says so."""
        if self.last is not None and self.last.exact_from < at:
            self._put(replace(self.last, exact_from=at))
        return self.last is not None

    def write(self, window: ReplicaWindow, looked: int, check: Callable[[], None]) -> None:
        """Writes the cut of a window whose tables are committed. ``check`` raises when this
        instance must not write any more."""
        exact_from = self.last.exact_from if self.last is not None else 0
        described = [name for name in window.captures if name not in window.waiting]
        self.unfinished = bool(window.waiting) or any(map(self._known.is_loading, described))
        cut = replace(
            self._make(window.end),
            tables={name: self._describe(name, window) for name in described},
            exact_from=exact_from,
            reasons=tuple(list_reasons(window, exact_from)),
            looked=looked,
            absent={n: mark for n, mark in self._known.marks.items() if n not in described},
        )
        check()
        self._target.manifest.owner.check(self._owner)
        if not window.forward:
            CUT_SKIPPED.log(LOG, end=format_timestamp(cut.end))
            return
        self._put(cut)
        if not cut.exact:
            CUT_NOT_EXACT.log(LOG, end=format_timestamp(cut.end), reasons=cut.explain())
        lag = measure_lag(window.captures, window.end)
        loading = self._measure_loads(window, described)
        self._report(CutReport(cut, dict(window.loaded), dict(window.merged), lag, loading))

    def _measure_loads(
        self, window: ReplicaWindow, described: list[str]
    ) -> dict[str, LoadState | None]:
        loading: dict[str, LoadState | None] = dict.fromkeys(window.waiting)
        parts = {name: self._known.states[name].progress for name in described}
        return loading | {n: LoadState.measure(p, window.end) for n, p in parts.items() if p}

    def _describe(self, name: str, window: ReplicaWindow) -> TableCut:
        """A copy in the window's cut."""
        state = self._known.states[name]
        reasons = list[Reason]()
        if state.progress is not None:
            reasons.append(Reason(Cause.LOADING, state.progress.explain()))
        if name in self._known.marks:
            reasons.append(self._known.marks[name])
        if state.end > window.end:
            detail = f"the copy is at {format_timestamp(state.end)} already"
            reasons.append(Reason(Cause.AHEAD, detail))
        described = describe_table(window.captures[name].table, state.version)
        deleted = self._target.deleted
        caveats = deleted.explain(name, window.end) if deleted is not None else ()
        caveats = (*described.caveats, *caveats, *self._target.caveats)
        return replace(described, reasons=tuple(reasons), caveats=caveats)

    def _make(self, end: int) -> Cut:
        owner = self._owner
        target = self._target
        return Cut(owner.database, owner.consumer, end, copies=target.format, mode=target.mode)

    def _put(self, cut: Cut) -> None:
        self._target.manifest.write(cut)
        self.last = cut


def list_reasons(window: ReplicaWindow, exact_from: int) -> list[Reason]:
    """Why a cut is not exact, whatever its copies are."""
    reasons = []
    if window.end < exact_from:
        late = f"rows up to here were read at {format_timestamp(exact_from)}"
        reasons.append(Reason(Cause.READ_LATE, late))
    if window.waiting:
        names = ", ".join(window.waiting)
        reasons.append(Reason(Cause.LOADING, f"not loaded yet: {names}"))
    return reasons
