"""Commits windows to the copies of a replica, and then the cut: docs/replica-protocol.md.

What the rows of a window are, and who writes them, is the caller's: Arrow tables and delta-rs, or
data frames and Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from watcher.captures.poll import PollCapture
from watcher.model.errors import ReplicaError, VersionExpiredError
from watcher.model.log_events import copies as events
from watcher.process.failpoints import failpoint
from watcher.replica.column_changes import ColumnChanges
from watcher.replica.copies import CopyState, KeepingCopy, StoredCopy
from watcher.replica.copy_views import CopyViews
from watcher.replica.cut_writer import CutWriter
from watcher.replica.cuts.cut import Cause, Reason
from watcher.replica.cuts.modes import LATEST
from watcher.replica.cuts.owner import Owner
from watcher.replica.known_copies import KnownCopies
from watcher.replica.replaced_copies import ReplacedCopies
from watcher.replica.replica_window import CutReport, ReplicaWindow, WindowRows
from watcher.replica.rows import compare_columns, has_copy_columns
from watcher.replica.target import ReplicaTarget
from watcher.replica.upkeep import Upkeep
from watcher.replica.window_reads import whole_capture
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")

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
        self._target = target
        self._check = check
        self._owner = Owner(database, consumer, target.format)
        self._known = KnownCopies(target.copies, target.manifest)
        self._cuts = CutWriter(self._owner, target, self._known, report)
        self._columns = ColumnChanges(target, self._known, self._cuts)
        self._fresh = True
        self._replaced = ReplacedCopies(target.manifest)
        self._views = CopyViews(target.manifest)
        self._upkeep = Upkeep(target.manifest, target.keep_seconds, target.compact)

    @property
    def unfinished(self) -> bool:
        """Whether the latest window has left something to load."""
        return self._cuts.unfinished

    def begin(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> ReplicaWindow:
        """A window: which copies are loaded. ``starts`` is where it starts for each table."""
        known = self._known
        if self._fresh:
            last = self._cuts.read_last()
            known.begin(last)
            self._replaced.begin(last)
            self._fresh = False
        last = self._cuts.last
        known.enter(end, last)
        for name in self._replaced.list_unknown(captures):
            state = known.states.get(name) or known.open(name).read_state()
            if state is not None and state.end:
                self._replaced.know(name, state.end)
        for name in self._replaced.look(captures, end):
            known.forget(name)
        forward = last is None or end >= last.end
        if forward:
            known.keep(captures)
        known.refresh()
        known.settle_verified()
        loads = dict[str, str]()
        for name, capture in captures.items():
            if not self._views.fits(capture.table, last):
                loads[name] = "its columns, where or its masks have changed"
            elif (obstacle := known.find_obstacle(name, starts[name], self._replaced)) is not None:
                loads[name] = obstacle
        usable = captures.keys() - loads.keys()
        # A copy that is as new as the window, or newer, takes nothing from it.
        older = [name for name in usable if known.states[name].end < end]
        changed = {n: captures[n] for n in older if not self._has_columns(n, captures[n])}
        widened = self._columns.plan(changed, starts, end)
        for name in changed.keys() - widened.keys():
            differences = compare_columns(known.states[name].schema, captures[name])
            loads[name] = f"its table has other columns: {differences.explain()}"
        return ReplicaWindow(end, captures, loads, forward, widened)

    def commit(self, window: ReplicaWindow, rows: WindowRows[Copy]) -> None:
        """Commits every table that changed, goes on with loads, and writes the cut."""
        self._target.manifest.owner.check(self._owner)
        self._cuts.note_strong_reads(window)
        self._note_gaps(window)
        for name in window.captures:
            if name in window.widened and name not in window.loads:
                self._check()
                self._columns.widen(window, name, rows)
            if name in rows.changed and name not in window.loads:
                self._merge(window, name, rows)
        for name in self._list_loads(window):
            self._load(window, name, rows)
        for name in window.captures:
            self._remove_deleted(window, name)
        failpoint("after-replica-tables")
        self._cuts.write(window, self._replaced.looked, self._check)
        failpoint("after-replica-cut")
        self._keep_up(window)

    def discard(self) -> None:
        """What is stored is read anew."""
        self._known.forget_all()
        self._views.discard()
        self._fresh = True

    def _has_columns(self, name: str, capture: PollCapture) -> bool:
        return has_copy_columns(self._known.states[name].schema, capture)

    def _note_gaps(self, window: ReplicaWindow) -> None:
        """Where a change stream leaves changes out, and nobody can say which, cuts are not exact
        until it is whole again and the copy is loaded or verified."""
        for name, capture in window.captures.items():
            if capture.table.gaps and name not in window.loads:
                detail = "; ".join(capture.table.gaps)
                self._known.marks[name] = Reason(Cause.PARTIAL_STREAM, detail, window.end)

    def _list_loads(self, window: ReplicaWindow) -> list[str]:
        """The tables to load, those first whose loads are under way."""
        begun = [n for n in window.captures if n not in window.loads and self._known.is_loading(n)]
        return [*begun, *(name for name in window.captures if name in window.loads)]

    def _load(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Loads a table at the window's end, or a chunk of it, if there is time."""
        if name not in window.loads:
            self._load_more(window, name, rows)
        elif rows.may_load:
            self._load_first(window, name, rows)
        else:
            # What the window has of it is not in the copy.
            self._known.forget(name)
            window.waiting.append(name)

    def _load_first(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Begins at the first key; as of now where the end cannot be read any more."""
        capture = whole_capture(window.captures[name])
        end = window.end
        self._check_reload(name, window.loads[name])
        self._check()
        self._views.note(capture.table, self._cuts.last)
        try:
            state, count = rows.load(self._known.open(name), capture, end)
        except VersionExpiredError:
            end = capture.queries.fetch_read_timestamp()
            state, count = rows.load(self._known.open(name), capture, end)
        self._known.marks.pop(name, None)
        self._replaced.settle(name, end)
        self._views.settle(capture.table)
        self._known.adopt(name, None, state)
        self._note_loaded(window, name, count, end)

    def _check_reload(self, name: str, reason: str) -> None:
        """A load has the rows that are there now. Raises ReplicaError where the copy has others,
        which it is to keep. The last cut may not list it: its table was left out for a while, or
        gone."""
        last, mode = self._cuts.last, self._target.mode
        listed = last.tables.get(name) if last is not None else None
        if mode == LATEST or last is None or (listed is not None and listed.loading):
            return
        copy = self._known.open(name)
        state = copy.read_state()
        if state is None or state.progress is not None:
            return
        if listed is not None or has_merges(copy, state):
            raise ReplicaError(
                f"the copy of {name} would have to be loaded again ({reason}); but it was made"
                f" with mode = '{mode}', and a load has none of the rows that only the copy has:"
                " rename the folder of the copy, which keeps them, and start again; in a"
                " catalog, replicate into another namespace"
            )

    def _load_more(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Goes on after the last key. A copy that is ahead waits for the windows to reach it."""
        before = self._known.states[name]
        if before.end > window.end or not rows.may_load:
            return
        capture = whole_capture(window.captures[name])
        self._check()
        try:
            state, count = rows.load(self._known.open(name), capture, window.end, before.progress)
        except VersionExpiredError as error:
            events.LOAD_POSTPONED.log(LOG, table=name, error=error)
            return
        self._known.adopt(name, before.version, state)
        self._note_loaded(window, name, count, window.end)

    def _note_loaded(self, window: ReplicaWindow, name: str, count: int, end: int) -> None:
        window.loaded[name] = count
        progress = self._known.states[name].progress
        rest = "" if progress is None else f"; {progress.explain()}"
        events.TABLE_LOADED.log(LOG, table=name, at=format_timestamp(end), rows=count, rest=rest)
        failpoint("after-replica-table")

    def _merge(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Merges the rows of a table. One without a key has one row at most, and is loaded."""
        capture = window.captures[name]
        if not capture.table.primary_key:
            window.loads[name] = "it has no key"
            return
        if self._known.states[name].end >= window.end:
            events.COPY_AHEAD.log(LOG, table=name, end=self._known.states[name].end)
            return
        self._check()
        before = self._known.states[name]
        state, count = rows.merge(self._known.open(name), capture, window.end, before)
        self._known.adopt(name, before.version, state)
        if not self._has_columns(name, capture):
            self._known.mark(name, f"version {state.version} has other columns than the table")
        window.merged[name] = count
        failpoint("after-replica-table")

    def _remove_deleted(self, window: ReplicaWindow, name: str) -> None:
        """Removes rows that Spanner does not have at the window's end, where no capture tells."""
        deleted, state = self._target.deleted, self._known.states.get(name)
        if deleted is None or state is None or name in window.waiting or not window.forward:
            return
        if state.progress is not None or state.end > window.end:
            return
        if name in window.loads:
            deleted.note(name, window.end)
        elif name in window.loaded or deleted.is_due(name):  # earlier chunks are of earlier ends
            self._check()
            after = deleted.remove(self._known.open(name), window.captures[name], state, window.end)
            if after is not None:
                self._known.adopt(name, state.version, after)
                window.merged.setdefault(name, 0)

    def _keep_up(self, window: ReplicaWindow) -> None:
        """Compacts what has changed, and removes what nobody needs."""
        if self._cuts.last is None or not window.forward:
            return
        keys = {name: each.table.primary_key for name, each in window.captures.items()}
        changed = [*window.loaded, *window.merged]
        self._check()
        self._upkeep.compact(changed, keys, self._known.open, self._known.states)
        self._upkeep.prune(self._cuts.last, self._known.opened)


def has_merges(copy: StoredCopy, state: CopyState) -> bool:
    """Whether a copy has commits of windows after those of its load."""
    return isinstance(copy, KeepingCopy) and state.end > copy.find_loaded(state.version)
