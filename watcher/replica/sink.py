"""The sink of a watcher that keeps a replica: the rows of a window, held as Arrow tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member

import numpy as np
import pyarrow as pa

from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.model.change import Change
from watcher.replica.commits import ReplicaWriter
from watcher.replica.copies import (
    STAMP_COLUMN,
    CopyState,
    EvolvingCopy,
    NewColumns,
    TableCopy,
    find_stamp,
    is_dropped,
)
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.keys.order import KeyOrder
from watcher.replica.keys.ranges import NOWHERE, KeyInterval, RangeIndex
from watcher.replica.loads import CHUNK_LIMIT, ChunkLimit, LoadBudget, LoadProgress
from watcher.replica.new_columns import ColumnPlan, FilledColumns, read_new_values
from watcher.replica.replica_window import CutReport, ReplicaWindow
from watcher.replica.rows import (
    arrange_changes,
    arrange_rows,
    copy_schema,
    drop_old,
    find_lacking,
    reduce_changes,
)
from watcher.replica.table_chunks import TableChunk, WatchLoad
from watcher.replica.target import ReplicaTarget
from watcher.replica.window_reads import measure_lag
from watcher.tables.values import WatchedTable

Held = tuple[frozenset[str], pa.Table]
"""Rows, and the columns that they lack."""


@dataclass
class HeldRows:
    """The ``WindowRows`` of one window, in memory."""

    check: Callable[[], None]
    budget: LoadBudget
    mode: Mode = LATEST
    watch: WatchLoad | None = None
    values: dict[str, FilledColumns] = member(default_factory=dict)
    """What rows have in columns that their table got after they had changed."""
    tables: dict[str, list[Held]] = member(default_factory=lambda: defaultdict(list))

    def hold(self, name: str, rows: pa.Table, lacking: frozenset[str] = frozenset()) -> None:
        """Rows of a table; ``lacking``: the columns that it got afterwards."""
        self.tables[name].append((lacking, rows))

    @property
    def changed(self) -> Collection[str]:
        """As ``WindowRows.changed``."""
        return self.tables.keys()

    @property
    def may_load(self) -> bool:
        """As ``WindowRows.may_load``."""
        return not self.budget.used_up

    def load(
        self,
        copy: TableCopy,
        capture: PollCapture,
        end: int,
        progress: LoadProgress | None = None,
    ) -> tuple[CopyState, int]:
        """As ``WindowRows.load``: reads the table in this process."""
        chunk = TableChunk(capture, end, progress, self.budget, self.check, self.watch)
        return copy.load_chunk(copy_schema(capture), chunk, end), chunk.rows

    def change_columns(
        self, copy: TableCopy, capture: PollCapture, plan: ColumnPlan, columns: NewColumns
    ) -> CopyState | None:
        """As ``WindowRows.change_columns``."""
        if not isinstance(copy, EvolvingCopy):
            return None
        values = self.values[capture.table.name] = read_new_values(capture, plan, columns.end)
        return copy.change_columns(replace(columns, values=values if plan.has_values else None))

    def merge(
        self, copy: TableCopy, capture: PollCapture, end: int, before: CopyState
    ) -> tuple[CopyState, int]:
        """As ``WindowRows.merge``."""
        key = capture.table.primary_key
        name = capture.table.name
        held = [self._fill(name, *each) for each in self.tables.pop(name)]
        latest = self.mode == LATEST
        rows = reduce_changes(held, key) if latest else drop_old(held, before.end)
        if before.progress is not None:
            rows = keep_loaded(rows, capture.table, before.progress)
        if not rows.num_rows:
            return before, 0
        stamp = find_stamp(before.schema.names)
        rows = rows.rename_columns([stamp if n == STAMP_COLUMN else n for n in rows.column_names])
        for field in before.schema:
            if is_dropped(field):
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        self.check()
        return copy.merge(rows, key, end), rows.num_rows

    def _fill(self, name: str, lacking: frozenset[str], rows: pa.Table) -> pa.Table:
        if not lacking:
            return rows
        filled = (self.values[name].fill(each, lacking) for each in rows.to_batches())
        return pa.Table.from_batches(filled, rows.schema)


class ReplicaSink:
    """A ``WindowSink`` over a replica. ``check`` raises when this instance must not write any
    more."""

    def __init__(
        self,
        database: str,
        consumer: str,
        target: ReplicaTarget[TableCopy],
        check: Callable[[], None],
        report: Callable[[CutReport], object] = lambda _: None,
        limit: ChunkLimit = CHUNK_LIMIT,
        is_stopping: Callable[[], bool] = lambda: False,
        watch: WatchLoad | None = None,
    ) -> None:
        """``is_stopping``: a load is interrupted then, and goes on with the next start. ``watch``
        is told how far loads are."""
        self._watch = watch
        self._limit = limit
        self._is_stopping = is_stopping
        self._database = database
        self._check = check
        self._writer = ReplicaWriter(database, consumer, target, check, report)
        self._window: ReplicaWindow | None = None
        self._mode = target.mode
        self._rows = HeldRows(check, LoadBudget(limit))

    @property
    def unfinished(self) -> bool:
        """As ``WindowSink.unfinished``: there is something to load."""
        return self._writer.unfinished

    def begin_window(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> None:
        """As ``WindowSink.begin_window``."""
        budget = LoadBudget(self._limit, measure_lag(captures, end), self._is_stopping)
        self._window = self._writer.begin(end, starts, captures)
        self._rows = HeldRows(self._check, budget, self._mode, self._watch)

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``. Holds the window, which ``max_rows`` bounds."""
        window = self._require_window()
        if isinstance(rows, TableRows):
            if rows.table.name not in window.loads:
                self._rows.hold(rows.table.name, arrange_rows(rows, self._mode))
            return
        for name, changes in group_changes(rows, self._database).items():
            if name not in window.captures or name in window.loads:
                continue
            capture = window.captures[name]
            groups = group_lacking(changes, capture, window.find_added(name))
            if groups is None:
                window.load_whole(name)
                self._rows.tables.pop(name, None)
                continue
            for lacking, alike in groups.items():
                self._rows.hold(name, arrange_changes(alike, capture, self._mode), lacking)

    def resolved(self, micros: int) -> None:
        """The window's end is known since ``begin_window``."""

    def flush(self) -> None:
        """As ``Sink.flush``: commits every table that changed, and writes the cut."""
        if self._window is None:
            return
        self._writer.commit(self._window, self._rows)
        self._window = None

    def discard(self) -> None:
        """As ``Sink.discard``. What is stored is read anew."""
        self._window = None
        self._writer.discard()

    def _require_window(self) -> ReplicaWindow:
        assert self._window is not None, "begin_window comes before the rows of a window"
        return self._window


def group_lacking(
    changes: Sequence[Change], capture: PollCapture, added: frozenset[str]
) -> dict[frozenset[str], list[Change]] | None:
    """Changes by the columns that they lack, in their order; None where the copy cannot take one,
    even if changes may lack the columns in ``added``."""
    groups = defaultdict[frozenset[str], list[Change]](list)
    for change in changes:
        lacking = find_lacking(change, capture)
        if lacking is None or not lacking <= added:
            return None
        groups[lacking].append(change)
    return groups


def group_changes(rows: StreamRows, database: str) -> dict[str, list[Change]]:
    """The changes of a batch by table."""
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in iterate_changes(rows, database):
        groups[change.table].append(change)
    return groups


def keep_loaded(rows: pa.Table, table: WatchedTable, progress: LoadProgress) -> pa.Table:
    """The rows of a window whose keys are loaded: a later chunk has the others."""
    index = RangeIndex(KeyOrder.of_watched(table), [KeyInterval(upto=progress.upto)])
    keys = rows.select(table.primary_key).combine_chunks()
    indexes = [index.locate(batch) for batch in keys.to_batches()]
    return rows.filter(pa.array(np.concatenate([np.empty(0, np.int64), *indexes]) != NOWHERE))
