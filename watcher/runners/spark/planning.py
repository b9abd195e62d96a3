"""How windows become micro-batches: polled through an index, or from a change stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from watcher.captures import Look
from watcher.captures.balance import plan_balanced
from watcher.captures.change_stream import ChangeStreamCapture
from watcher.captures.poll_tables import PolledTables
from watcher.errors import VersionExpiredError
from watcher.runners.spark.reading import Reading
from watcher.window import Slice, Window


class Planning(Protocol):
    """What the driver of a query asks, of the tables of one schema."""

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """A timestamp at which a strong read is served now (or ``at``), and the tables that have
        changed since where they start."""
        ...

    def first_change(self, windows: Mapping[str, Window]) -> int:
        """A timestamp before which nothing in the windows changed."""
        ...

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """An end at which the windows hold about so many rows."""
        ...

    def slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """What the tasks of a batch read."""
        ...


def planning(reading: Reading) -> Planning:
    """That of the query's capture."""
    if reading.stream is not None:
        return StreamPlanning(reading, reading.stream)
    return PollPlanning(reading)


class PollPlanning:
    """Through the indexes of the tables."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._tables = PolledTables(reading.captures)

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Planning.look``: one call for every 50 tables."""
        return self._tables.look(starts, at)

    def first_change(self, windows: Mapping[str, Window]) -> int:
        """As ``Planning.first_change``."""
        return min(self._tables.capture(name).find_cut(w, 1) for name, w in windows.items())

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """As ``Planning.cut``, by an index-only count."""
        return self._tables.cut(windows, max_rows)

    def slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """As ``Planning.slices``: of about the same size, by one query of the indexes."""
        options = self._reading.options
        captures = [c for c in self._reading.captures if c.table.name in windows]
        try:
            return plan_balanced(captures, windows, options.shard_groups, options.rows_per_slice)
        except VersionExpiredError:
            # Each slice is read strongly then, and says so.
            return [part for c in captures for part in c.plan(windows[c.table.name])]


class StreamPlanning:
    """From a change stream, which cannot be counted without being read."""

    def __init__(self, reading: Reading, stream: ChangeStreamCapture) -> None:
        self._reading = reading
        self._stream = stream

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Planning.look``: a call, and one a partition until one has a change."""
        begin = min(starts.values())
        if at is None:
            at = self._reading.queries.stream.fetch_read_timestamp()
        window = Window(begin, max(begin, at))
        # At the start of a query the position may not be one that the stream keeps yet.
        changed = begin > 0 and not window.empty and self._stream.has_changes(window)
        return Look(window.end, frozenset(starts if changed else ()))

    def first_change(self, windows: Mapping[str, Window]) -> int:
        """As ``Planning.first_change``: not known, so the start."""
        return min(window.start for window in windows.values())

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:  # noqa: ARG002
        """As ``Planning.cut``: not known, so the whole."""
        return max(window.end for window in windows.values())

    def slices(self, windows: Mapping[str, Window]) -> Sequence[Slice]:
        """As ``Planning.slices``: the partitions that are active when the window begins."""
        begin = min(window.start for window in windows.values())
        end = max(window.end for window in windows.values())
        return self._stream.plan(Window(begin, end))
