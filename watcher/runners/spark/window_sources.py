"""How windows become micro-batches: polled through an index, or from a change stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from watcher.captures.balance import plan_balanced
from watcher.captures.change_stream import ChangeStreamCapture
from watcher.captures.change_stream.cuts import StreamCuts
from watcher.captures.poll_tables import PolledTables
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Slice, Window
from watcher.planning.limits import WindowLimit
from watcher.planning.sources import PlannedSource
from watcher.planning.windows import Look
from watcher.runners.spark.scan import Scan


class WindowSource(PlannedSource, Protocol):
    """What a ``BatchPlanner`` reads of the tables of one schema: its windows are divided into
    slices, which tasks read."""

    def plan_slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """What the tasks of a batch read."""
        ...

    def count_rows(self, windows: Mapping[str, Window], limit: int) -> int | None:
        """How many rows the windows hold, or about ``limit`` where they hold more; None where only
        reading them would say it."""
        ...


def make_window_source(scan: Scan) -> WindowSource:
    """That of the query's capture."""
    if scan.stream is not None:
        return StreamedWindows(scan, scan.stream)
    return PolledWindows(scan)


class PolledWindows(PolledTables):
    """Through the indexes of the tables."""

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan.captures)
        self._options = scan.options

    def plan_slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """As ``WindowSource.plan_slices``: of about the same size, by one query of the indexes."""
        options = self._options
        captures = [each for each in self.parts if each.table.name in windows]
        try:
            return plan_balanced(captures, windows, options.shard_groups, options.rows_per_slice)
        except VersionExpiredError:
            # Each slice is then read as of now, and logs it.
            return [part for c in captures for part in c.plan(windows[c.table.name])]

    def count_rows(self, windows: Mapping[str, Window], limit: int) -> int | None:
        """As ``WindowSource.count_rows``, by the indexes alone."""
        return self.count_up_to(windows, limit)


class StreamedWindows:
    """From a change stream, which is counted by being read."""

    def __init__(self, scan: Scan, stream: ChangeStreamCapture) -> None:
        self._scan = scan
        self._stream = stream
        self._cuts = StreamCuts(stream)

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``WindowSource.look``: a call, and one a partition until one has a change."""
        begin = min(starts.values())
        if at is None:
            at = self._scan.queries.fetch_read_timestamp()
        window = Window(begin, max(begin, at))
        # At the start of a query the stream may not keep records as old as the position.
        changed = begin > 0 and not window.empty and self._stream.has_changes(window)
        return Look(window.end, frozenset(starts if changed else ()))

    def find_first_change(self, windows: Mapping[str, Window]) -> int:
        """As ``WindowSource.find_first_change``: the start, because it is not known."""
        return min(window.start for window in windows.values())

    def cut(self, windows: Mapping[str, Window], limit: WindowLimit) -> int:
        """As ``WindowSource.cut``, exactly: by a count of the stream's records."""
        start = min(window.start for window in windows.values())
        end = max(window.end for window in windows.values())
        return self._cuts.find_end(Window(start, end), limit)

    def plan_slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """As ``WindowSource.plan_slices``: the partitions that are active at its start."""
        begin = min(window.start for window in windows.values())
        end = max(window.end for window in windows.values())
        return self._stream.plan(Window(begin, end))

    def count_rows(self, windows: Mapping[str, Window], limit: int) -> int | None:  # noqa: ARG002
        """As ``WindowSource.count_rows``: a stream is counted by being read."""
        return 0 if all(window.empty for window in windows.values()) else None
