"""The sink of a watcher that keeps a replica: the rows of a window, held as Arrow tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.model.change import Change
from watcher.model.window import BEGINNING, Window
from watcher.replica.commits import CutReport, ReplicaTarget, ReplicaWindow, ReplicaWriter
from watcher.replica.copies import STAMP_COLUMN, CopyState, TableCopy
from watcher.replica.rows import (
    arrange_changes,
    arrange_rows,
    copy_schema,
    fits_copy,
    reduce_changes,
)


@dataclass
class HeldRows:
    """The ``WindowRows`` of one window, in memory."""

    check: Callable[[], None]
    tables: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))

    @property
    def changed(self) -> Collection[str]:
        """As ``WindowRows.changed``."""
        return self.tables.keys()

    def load(self, copy: TableCopy, capture: PollCapture, end: int) -> tuple[CopyState, int]:
        """As ``WindowRows.load``: reads the table in this process."""
        count = 0

        def read() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in iterate_table(capture, end):
                self.check()
                count += batch.num_rows
                yield batch

        return copy.load(copy_schema(capture), read(), end), count

    def merge(
        self, copy: TableCopy, capture: PollCapture, end: int, stamp: str
    ) -> tuple[CopyState, int]:
        """As ``WindowRows.merge``."""
        key = capture.table.primary_key
        rows = reduce_changes(self.tables.pop(capture.table.name), key)
        rows = rows.rename_columns([stamp if n == STAMP_COLUMN else n for n in rows.column_names])
        self.check()
        return copy.merge(rows, key, end), rows.num_rows


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
    ) -> None:
        self._database = database
        self._check = check
        self._writer = ReplicaWriter(database, consumer, target, check, report)
        self._window: ReplicaWindow | None = None
        self._rows = HeldRows(check)

    def begin_window(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> None:
        """As ``WindowSink.begin_window``."""
        self._rows = HeldRows(self._check)
        self._window = self._writer.begin(end, starts, captures)

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``. Holds the window, which ``max_rows`` bounds."""
        window = self._require_window()
        if isinstance(rows, TableRows):
            if rows.table.name not in window.loads:
                self._rows.tables[rows.table.name].append(arrange_rows(rows))
            return
        for name, changes in group_changes(rows, self._database).items():
            if name not in window.captures or name in window.loads:
                continue
            capture = window.captures[name]
            if all(fits_copy(change, capture) for change in changes):
                self._rows.tables[name].append(arrange_changes(changes, capture))
            else:
                window.load_whole(name)
                self._rows.tables.pop(name, None)

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


def group_changes(rows: StreamRows, database: str) -> dict[str, list[Change]]:
    """The changes of a batch by table."""
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in iterate_changes(rows, database):
        groups[change.table].append(change)
    return groups


def iterate_table(capture: PollCapture, at: int) -> Iterator[pa.RecordBatch]:
    """The rows of a table at a timestamp as a copy has them, without softly deleted ones. Raises
    VersionExpiredError."""
    snapshot = SnapshotCapture(capture)
    for part in snapshot.plan(Window(BEGINNING, at)):
        for rows in snapshot.read(part):
            table = arrange_rows(rows)
            kept = table.filter(pc.invert(table.column(table.num_columns - 1)))
            yield from kept.drop_columns([table.column_names[-1]]).to_batches()
