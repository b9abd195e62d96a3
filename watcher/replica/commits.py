"""Commits windows to the copies of a replica, and then the cut: docs/replica-protocol.md.

What the rows of a window are, and who writes them, is the caller's: Arrow tables and delta-rs, or
data frames and Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events import copies as events
from watcher.model.window import BEGINNING
from watcher.process.failpoints import failpoint
from watcher.replica.copies import CopyState, StoredCopy, find_stamp
from watcher.replica.cuts import Cause, Cut, Reason, TableCut, describe_table
from watcher.replica.owner import Owner
from watcher.replica.replaced_copies import ReplacedCopies
from watcher.replica.replica_window import CutReport, LoadState, ReplicaWindow, WindowRows
from watcher.replica.rows import copy_schema, has_copy_columns
from watcher.replica.target import ReplicaTarget
from watcher.replica.upkeep import Upkeep
from watcher.replica.window_reads import (
    is_readable,
    measure_lag,
    needs_no_load,
    whole_capture,
)
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")
REFRESH_SECONDS = 300.0
"""How often the versions of idle copies are read anew: someone may have compacted them."""

Copy = TypeVar("Copy", bound=StoredCopy)


class ReplicaWriter(Generic[Copy]):
    """One commit a table and window, then the cut.

    ``check`` raises when this instance must not write any more: it is called before every commit.
    """

    def __init__(
        self,
        database: str,
        consumer: str,
        target: ReplicaTarget[Copy],
        check: Callable[[], None] = lambda: None,
        report: Callable[[CutReport], object] = lambda _: None,
    ) -> None:
        self._database = database
        self._consumer = consumer
        self._target = target
        self._check = check
        self._report = report
        self._copies: dict[str, Copy] = {}
        self._states: dict[str, CopyState] = {}
        self._owner = Owner(database, consumer, target.format)
        self._last: Cut | None = None
        self._marks: dict[str, Reason] = {}
        """The copies that others have written, until they are loaded or verified."""
        self._fresh = True
        self._replaced = ReplacedCopies(target.manifest)
        self._end = 0
        self.unfinished = False
        """Whether the latest window has left something to load."""
        self._refreshed_at = time.monotonic()
        self._upkeep = Upkeep(target.manifest, target.keep_seconds, target.compact)

    def begin(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> ReplicaWindow:
        """A window: which copies are loaded. ``starts`` is where it starts for each table."""
        if self._fresh:
            self._read_last()
            self._replaced.begin(self._last)
            self._fresh = False
        self._end = end
        for name in self._replaced.look(captures, end):
            self._states.pop(name, None)
        forward = self._last is None or end >= self._last.end
        if forward:
            # A table that is gone, and comes back, is another one.
            self._states = {n: state for n, state in self._states.items() if n in captures}
        self._refresh()
        self._settle_verified()
        usable = {name for name in captures if self._is_usable(name, starts[name])}
        changed = {name for name in usable if not self._has_columns(name, captures[name])}
        old = {name: self._states[name] for name in changed if self._target.add_columns}
        keep = self._target.keep_dropped
        widened = {n for n in old if needs_no_load(captures[n], old[n], starts[n], end, keep)}
        loads = frozenset(captures.keys() - usable | changed - widened)
        return ReplicaWindow(end, captures, loads, forward, frozenset(widened))

    def commit(self, window: ReplicaWindow, rows: WindowRows[Copy]) -> None:
        """Commits every table that changed, goes on with loads, and writes the cut."""
        self._target.manifest.owner.check(self._owner)
        self._note_strong_reads(window)
        self._note_gaps(window)
        for name in window.captures:
            if name in window.widened - window.loads:
                self._widen(window, name)
            if name in rows.changed and name not in window.loads:
                self._merge(window, name, rows)
        for name in self._list_loads(window):
            self._load(window, name, rows)
        for name in window.captures:
            self._remove_deleted(window, name)
        failpoint("after-replica-tables")
        self._write_cut(window)
        failpoint("after-replica-cut")
        self._keep_up(window)

    def discard(self) -> None:
        """What is stored is read anew."""
        self._states = {}
        self._fresh = True

    # What is there already.

    def _read_last(self) -> None:
        self._target.manifest.claim(self._owner)
        self._last = last = self._target.manifest.read_last()
        self._marks = {
            name: reason
            for name, each in (last.tables.items() if last is not None else ())
            for reason in each.reasons
            if reason.cause.stays
        }

    def _open(self, name: str) -> Copy:
        if name not in self._copies:
            self._copies[name] = self._target.copies(name)
        return self._copies[name]

    def _refresh(self) -> None:
        """Reads the versions of all copies anew, now and then."""
        if time.monotonic() - self._refreshed_at < REFRESH_SECONDS:
            return
        known, self._states = self._states, {}
        for name, before in known.items():
            state = self._open(name).read_state()
            # Where another instance has written, the last cut says whether the copy can be used.
            if state is not None and state.end == before.end:
                self._adopt(name, before.version, state)
        self._refreshed_at = time.monotonic()

    def _is_usable(self, name: str, start: int) -> bool:
        """Whether a copy has everything up to the table's position: rule 1."""
        if name in self._states:
            return True
        state = self._open(name).read_state()
        if state is None or name in self._replaced:
            return False
        listed = self._last.tables.get(name) if self._last and self._last.end >= start else None
        covered = listed is not None and listed.version <= state.version
        # A table that was dropped and is back begins at the beginning; its copy is the old one's.
        if not (covered or BEGINNING < start <= state.end):
            return False
        if self._lacks_progress(name, state):
            events.LOAD_PROGRESS_LOST.log(LOG, table=name)
            return False
        self._adopt(name, listed.version if listed is not None and covered else None, state)
        return True

    def _lacks_progress(self, name: str, state: CopyState) -> bool:
        """Whether the copy was under load at the last cut, has no commit since, and does not say
        how far it is."""
        last = self._last
        if state.progress is not None or last is None or name not in last.tables:
            return False
        reasons = last.tables[name].reasons
        return state.end <= last.end and any(each.cause is Cause.LOADING for each in reasons)

    def _adopt(self, name: str, after: int | None, state: CopyState) -> None:
        """Takes a copy as it is, and notes what others have done to it after a version."""
        self._states[name] = state
        outside = self._open(name).list_outside(after, state.version)
        if not outside:
            return
        newest, more = outside[0], len(outside) - 1
        others = f", and {more} more commits by others" if more else ""
        self._mark(name, f"version {newest.version}: {newest.detail}{others}")

    def _mark(self, name: str, detail: str) -> None:
        """Cuts are not exact from this window on, until the copy is loaded or verified."""
        events.COPY_WRITTEN_BY_OTHERS.log(LOG, table=name, detail=detail)
        self._marks[name] = Reason(Cause.OUTSIDE_WRITE, detail, self._end)

    def _settle_verified(self) -> None:
        """Forgets marks of copies that ``verify`` has found equal since."""
        for name, mark in list(self._marks.items()):
            if self._target.manifest.read_verified(name) >= mark.since:
                events.COPY_VERIFIED.log(LOG, table=name)
                del self._marks[name]

    def _has_columns(self, name: str, capture: PollCapture) -> bool:
        return has_copy_columns(self._states[name].schema, capture)

    # Commits.

    def _note_gaps(self, window: ReplicaWindow) -> None:
        """Where a change stream leaves changes out, and nobody can say which, cuts are not exact
        until it is whole again and the copy is loaded or verified."""
        for name, capture in window.captures.items():
            if capture.table.gaps and name not in window.loads:
                detail = "; ".join(capture.table.gaps)
                self._marks[name] = Reason(Cause.PARTIAL_STREAM, detail, window.end)

    def _note_strong_reads(self, window: ReplicaWindow) -> None:
        """Where the end is no longer readable, rows may have been read as of now, or be missing
        because they changed since: cuts are not exact until windows end after that. Written before
        anything is committed."""
        capture = next(iter(window.captures.values()), None)
        if capture is None or is_readable(capture, window.end):
            return
        now = capture.queries.fetch_read_timestamp()
        events.WINDOW_TOO_OLD.log(
            LOG, end=format_timestamp(window.end), exact_from=format_timestamp(now)
        )
        late = Reason(Cause.READ_LATE, f"rows were read at {format_timestamp(now)}")
        last = self._last or replace(self._make_cut(window.end), reasons=(late,))
        self._put(replace(last, exact_from=now))

    def _list_loads(self, window: ReplicaWindow) -> list[str]:
        """The tables to load, those first whose loads are under way."""
        begun = [n for n in window.captures if n not in window.loads and self._is_loading(n)]
        return [*begun, *(name for name in window.captures if name in window.loads)]

    def _is_loading(self, name: str) -> bool:
        return name in self._states and self._states[name].progress is not None

    def _load(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Loads a table at the window's end, or a chunk of it, if there is time."""
        if name not in window.loads:
            self._load_more(window, name, rows)
        elif rows.may_load:
            self._load_first(window, name, rows)
        else:
            # What the window has of it is not in the copy.
            self._states.pop(name, None)
            window.waiting.append(name)

    def _load_first(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Begins at the first key; as of now where the end cannot be read any more."""
        capture = whole_capture(window.captures[name])
        end = window.end
        self._check()
        try:
            state, count = rows.load(self._open(name), capture, end)
        except VersionExpiredError:
            end = capture.queries.fetch_read_timestamp()
            state, count = rows.load(self._open(name), capture, end)
        self._marks.pop(name, None)
        self._replaced.settle(name, end)
        self._adopt(name, None, state)
        self._note_loaded(window, name, count, end)

    def _load_more(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Goes on after the last key. A copy that is ahead waits for the windows to reach it."""
        before = self._states[name]
        if before.end > window.end or not rows.may_load:
            return
        capture = whole_capture(window.captures[name])
        self._check()
        try:
            state, count = rows.load(self._open(name), capture, window.end, before.progress)
        except VersionExpiredError as error:
            events.LOAD_POSTPONED.log(LOG, table=name, error=error)
            return
        self._adopt(name, before.version, state)
        self._note_loaded(window, name, count, window.end)

    def _note_loaded(self, window: ReplicaWindow, name: str, count: int, end: int) -> None:
        window.loaded[name] = count
        progress = self._states[name].progress
        rest = "" if progress is None else f"; {progress.explain()}"
        events.TABLE_LOADED.log(LOG, table=name, at=format_timestamp(end), rows=count, rest=rest)
        failpoint("after-replica-table")

    def _widen(self, window: ReplicaWindow, name: str) -> None:
        """Gives a copy the new columns of its table, and notes which are dropped; a copy that
        cannot have that is loaded."""
        self._check()
        before, add = self._states[name], self._target.add_columns
        schema = copy_schema(window.captures[name], find_stamp(before.schema.names))
        state = None if add is None else add(self._open(name), schema)
        if state is None:
            window.load_whole(name)
        else:
            self._adopt(name, before.version, state)

    def _merge(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Merges the rows of a table. One without a key has one row at most, and is loaded."""
        capture = window.captures[name]
        if not capture.table.primary_key:
            window.loads |= {name}
            return
        if self._states[name].end >= window.end:
            events.COPY_AHEAD.log(LOG, table=name, end=self._states[name].end)
            return
        self._check()
        before = self._states[name]
        state, count = rows.merge(self._open(name), capture, window.end, before)
        self._adopt(name, before.version, state)
        if not self._has_columns(name, capture):
            self._mark(name, f"version {state.version} has other columns than the table")
        window.merged[name] = count
        failpoint("after-replica-table")

    def _remove_deleted(self, window: ReplicaWindow, name: str) -> None:
        """Removes rows that Spanner does not have at the window's end, where no capture tells."""
        deleted, state = self._target.deleted, self._states.get(name)
        if deleted is None or state is None or name in window.waiting or not window.forward:
            return
        if state.progress is not None or state.end > window.end:
            return
        if name in window.loaded:
            deleted.note(name, window.end)
        elif deleted.is_due(name):
            self._check()
            after = deleted.remove(self._open(name), window.captures[name], state, window.end)
            if after is not None:
                self._adopt(name, state.version, after)
                window.merged.setdefault(name, 0)

    # The cut.

    def _write_cut(self, window: ReplicaWindow) -> None:
        exact_from = self._last.exact_from if self._last is not None else 0
        described = [name for name in window.captures if name not in window.waiting]
        self.unfinished = bool(window.waiting) or any(map(self._is_loading, described))
        reasons = []
        if window.end < exact_from:
            late = f"rows up to here were read at {format_timestamp(exact_from)}"
            reasons.append(Reason(Cause.READ_LATE, late))
        if window.waiting:
            names = ", ".join(window.waiting)
            reasons.append(Reason(Cause.LOADING, f"not loaded yet: {names}"))
        cut = replace(
            self._make_cut(window.end),
            tables={name: self._describe(name, window) for name in described},
            exact_from=exact_from,
            reasons=tuple(reasons),
            looked=self._replaced.looked,
        )
        self._check()
        self._target.manifest.owner.check(self._owner)
        if not window.forward:
            events.CUT_SKIPPED.log(LOG, end=format_timestamp(cut.end))
            return
        self._put(cut)
        if not cut.exact:
            events.CUT_NOT_EXACT.log(LOG, end=format_timestamp(cut.end), reasons=cut.explain())
        lag = measure_lag(window.captures, window.end)
        loading: dict[str, LoadState | None] = dict.fromkeys(window.waiting)
        parts = {name: self._states[name].progress for name in described}
        loading |= {n: LoadState.measure(each, window.end) for n, each in parts.items() if each}
        self._report(CutReport(cut, dict(window.loaded), dict(window.merged), lag, loading))

    def _describe(self, name: str, window: ReplicaWindow) -> TableCut:
        """A copy in the window's cut."""
        state = self._states[name]
        reasons = list[Reason]()
        if state.progress is not None:
            reasons.append(Reason(Cause.LOADING, state.progress.explain()))
        if name in self._marks:
            reasons.append(self._marks[name])
        if state.end > window.end:
            detail = f"the copy is at {format_timestamp(state.end)} already"
            reasons.append(Reason(Cause.AHEAD, detail))
        described = describe_table(window.captures[name].table, state.version)
        deleted = self._target.deleted
        caveats = deleted.explain(name, window.end) if deleted is not None else ()
        return replace(described, reasons=tuple(reasons), caveats=(*described.caveats, *caveats))

    def _make_cut(self, end: int) -> Cut:
        return Cut(self._database, self._consumer, end, copies=self._target.format)

    def _put(self, cut: Cut) -> None:
        manifest = self._target.manifest
        manifest.write(cut)
        self._last = cut

    def _keep_up(self, window: ReplicaWindow) -> None:
        """Compacts what has changed, and removes what nobody needs."""
        if self._last is None or not window.forward:
            return
        keys = {name: each.table.primary_key for name, each in window.captures.items()}
        changed = [*window.loaded, *window.merged]
        self._check()
        self._upkeep.compact(changed, keys, self._open, self._states)
        self._upkeep.prune(self._last, self._copies)
