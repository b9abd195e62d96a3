"""Copies follow tables whose columns have changed, without a load."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Generic, TypeVar

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.copies import COLUMNS_NOT_READ
from watcher.process.failpoints import failpoint
from watcher.replica.copies import NewColumns, StoredCopy, find_stamp
from watcher.replica.cut_writer import CutWriter
from watcher.replica.known_copies import KnownCopies
from watcher.replica.new_columns import (
    ColumnPlan,
    TooManyValuesError,
    find_rule,
    plan_columns,
)
from watcher.replica.replica_window import ReplicaWindow, WindowRows
from watcher.replica.rows import copy_schema
from watcher.replica.target import ReplicaTarget

LOG = logging.getLogger("watcher.replica")
Copy = TypeVar("Copy", bound=StoredCopy)


class ColumnChanges(Generic[Copy]):
    """Of one replica."""

    def __init__(
        self, target: ReplicaTarget[Copy], known: KnownCopies[Copy], cuts: CutWriter[Copy]
    ) -> None:
        self._target = target
        self._known = known
        self._cuts = cuts

    def plan(
        self, changed: Mapping[str, PollCapture], starts: Mapping[str, int], end: int
    ) -> dict[str, ColumnPlan]:
        """Of tables whose columns are not those of their copies, those that need no load."""
        dropped, known = self._target.dropped, self._known
        plans = {
            name: plan_columns(
                find_rule(known.open(name)),
                capture,
                known.states[name],
                starts[name],
                end,
                dropped,
            )
            for name, capture in changed.items()
        }
        return {name: plan for name, plan in plans.items() if plan is not None}

    def widen(self, window: ReplicaWindow, name: str, rows: WindowRows[Copy]) -> None:
        """Gives a copy the columns of its table; a copy that cannot have them is loaded."""
        capture, plan = window.captures[name], window.widened[name]
        before, copy = self._known.states[name], self._known.open(name)
        # A window that comes again, and ends earlier, would have values that are newer.
        if plan.scanned and not self._cuts.note_read_at(window.end):
            window.load_whole(name)
            return
        schema = copy_schema(capture, find_stamp(before.schema.names))
        keep = self._target.dropped == "keep"
        columns = NewColumns(schema, window.end, name in rows.changed, keep_dropped=keep)
        try:
            state = rows.change_columns(copy, capture, plan, columns)
        except (VersionExpiredError, TooManyValuesError) as error:
            COLUMNS_NOT_READ.log(LOG, table=name, error=error)
            state = None
        if state is None:
            window.load_whole(name)
            return
        self._known.adopt(name, before.version, state)
        failpoint("after-replica-columns")
