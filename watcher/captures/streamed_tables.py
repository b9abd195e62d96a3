"""Tables that a change stream watches, read window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import StreamRows
from watcher.captures.change_stream import ChangeStreamCapture, StreamSlice, WatchedStream
from watcher.captures.change_stream.cuts import StreamCuts
from watcher.captures.change_stream.listening import Listening
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.repeats import Records
from watcher.captures.poll import PollCapture
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import Look
from watcher.process.tracing import Kind, Value, describe_database, follow, span, start_span
from watcher.spanner.results.columns import TIMESTAMP

FEW_ROWS = 10_000
FEW_BYTES = 8 * 1024 * 1024
"""Windows that have fewer are read once: while they are counted."""


class StreamedTables:
    """The ``Source`` of tables whose changes come from a change stream.

    A window of a reader that keeps up is kept from ``cut`` to ``read``, because to count it is to
    read it. One that is far behind counts first.
    """

    def __init__(self, capture: ChangeStreamCapture, tables: Sequence[PollCapture]) -> None:
        """``tables`` read each table whole, for a backfill."""
        self._capture = capture
        self._tables = {each.table.name: each for each in tables}
        self._cuts = StreamCuts(capture)
        self._is_behind = False
        self._kept: tuple[Window, tuple[StreamRows, ...]] | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """As ``Source.tables``."""
        return tuple(self._tables)

    @property
    def parts(self) -> tuple[ChangeStreamCapture | PollCapture, ...]:
        """What it reads with: equal for tables that are alike in two schemas."""
        return (self._capture, *self._tables.values())

    @property
    def read_by_schema(self) -> bool:
        """As ``Source.read_by_schema``."""
        return False

    @property
    def change_stream(self) -> WatchedStream:
        """The change stream."""
        return self._capture.change_stream

    def reads(self, table: str) -> bool:
        """Whether changes of a table are delivered, also when it came after this value."""
        return self._capture.change_filter.accepts_table(table)

    def plan(self, window: Window) -> Sequence[StreamSlice]:
        """The partitions that are active when a window begins: one call."""
        return self._capture.plan(window)

    def open(self, start: int) -> OpenQueries:
        """Queries that stay open, from a timestamp (outside) on."""
        return self._capture.open(start)

    def listen(self, start: int, end: int, wake: Callable[[], object]) -> Listening | None:
        """As ``ChangeStreamCapture.listen``."""
        return self._capture.listen(start, end, wake)

    def convert_records(
        self, records: Iterable[tuple[str, Records]], window: Window
    ) -> Iterator[StreamRows]:
        """Records with their partitions as changes, in their order."""
        return self._capture.convert_records(records, window)

    def capture(self, table: str) -> PollCapture:
        """The capture that reads a table whole."""
        return self._tables[table]

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Source.look``. Every table may have changed."""
        if at is None:
            at = self._capture.queries.fetch_read_timestamp()
        return Look(max(at, *starts.values()), frozenset(self._tables))

    def find_first_change(self, windows: Mapping[str, Window]) -> int:
        """As ``Source.find_first_change``: the start, because it is not known."""
        return span_windows(windows).start

    def cut(self, windows: Mapping[str, Window], limit: WindowLimit) -> int:
        """As ``Source.cut``, exactly: by a count of the stream's records."""
        whole = span_windows(windows)
        self._kept = None
        if not self._is_behind:
            with span(*self._describe_span()):
                few = self._capture.read_few(
                    whole,
                    min(limit.rows or FEW_ROWS, FEW_ROWS),
                    min(limit.bytes or FEW_BYTES, FEW_BYTES),
                )
            if few is not None:
                self._kept = whole, few
                return whole.end
        end = self._cuts.find_end(whole, limit)
        self._is_behind = end < whole.end
        return end

    def read(self, windows: Mapping[str, Window]) -> Iterator[StreamRows]:
        """As ``Source.read``: the changes of each key in commit order."""
        if not windows:
            return
        whole = span_windows(windows)
        starts = {n: windows[n].start if n in windows else whole.end for n in self._tables}
        late = {name: start for name, start in starts.items() if start > whole.start}
        kept = self._take_kept(whole)
        for changes in self._read_traced(whole) if kept is None else kept:
            yield StreamRows(whole, drop_early(changes.batch, late), changes.shapes)

    def _read_traced(self, whole: Window) -> Iterator[StreamRows]:
        return follow(start_span(*self._describe_span()), self._capture.read_window(whole))

    def _describe_span(self) -> tuple[str, Mapping[str, Value], Kind]:
        """The partitions of a window are read side by side: they are one span."""
        stream = self._capture.change_stream.name
        path = self._capture.queries.address.path
        return f"slice {stream}", describe_database(path, stream), Kind.CLIENT

    def _take_kept(self, whole: Window) -> Iterable[StreamRows] | None:
        """What was kept of a window, once: who reads it again reads the stream."""
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] == whole else None


def span_windows(windows: Mapping[str, Window]) -> Window:
    """One window over those of all tables."""
    start = min(window.start for window in windows.values())
    return Window(start, max(window.end for window in windows.values()))


def drop_early(batch: pa.RecordBatch, starts: Mapping[str, int]) -> pa.RecordBatch:
    """The changes without those of a table from before its own window begins."""
    for table, start in starts.items():
        bound = pa.scalar(start, pa.int64()).cast(TIMESTAMP)
        early = pc.and_(
            pc.equal(batch.column("table"), table),
            pc.less_equal(batch.column("commit_timestamp"), bound),
        )
        batch = batch.filter(pc.invert(early))
    return batch
