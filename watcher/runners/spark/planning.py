"""How windows become micro-batches: polled through an index, or from a change stream."""

from __future__ import annotations

from typing import Protocol

from watcher.captures.balance import balanced
from watcher.captures.change_stream import ChangeStreamCapture
from watcher.captures.poll_tables import PolledTables
from watcher.errors import VersionExpiredError
from watcher.runners.spark.reading import Reading
from watcher.window import Slice, Window


class Planning(Protocol):
    """What the driver of a query asks."""

    def look(self, begin: int) -> tuple[int, frozenset[str]]:
        """A timestamp at which a strong read is served now, and the tables that changed."""
        ...

    def first_change(self, window: Window, changed: frozenset[str]) -> int:
        """A timestamp before which nothing in the window changed."""
        ...

    def cut(self, window: Window, changed: frozenset[str], max_rows: int) -> int:
        """An end at which the window holds about so many rows."""
        ...

    def slices(self, window: Window, changed: frozenset[str] | None) -> list[Slice]:
        """What the tasks of a batch read. ``changed`` None: all tables may have."""
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

    def look(self, begin: int) -> tuple[int, frozenset[str]]:
        """As ``Planning.look``: one call for every 50 tables."""
        look = self._tables.look(dict.fromkeys(self._tables.tables, begin))
        return look.end, look.changed

    def first_change(self, window: Window, changed: frozenset[str]) -> int:
        """As ``Planning.first_change``."""
        return min(self._tables.capture(name).end_of(window, 1) for name in changed)

    def cut(self, window: Window, changed: frozenset[str], max_rows: int) -> int:
        """As ``Planning.cut``, by an index-only count."""
        return self._tables.cut(dict.fromkeys(changed, window), max_rows)

    def slices(self, window: Window, changed: frozenset[str] | None) -> list[Slice]:
        """As ``Planning.slices``: of about the same size, by one query of the indexes."""
        options = self._reading.options
        captures = self._reading.captures
        if changed is not None:
            captures = tuple(c for c in captures if c.table.name in changed)
        windows = {capture.table.name: window for capture in captures}
        try:
            return balanced(captures, windows, options.shard_groups, options.rows_per_slice)
        except VersionExpiredError:
            # Each slice is read strongly then, and says so.
            return [part for capture in captures for part in capture.plan(window)]


class StreamPlanning:
    """From a change stream, which cannot be counted without being read."""

    def __init__(self, reading: Reading, stream: ChangeStreamCapture) -> None:
        self._reading = reading
        self._stream = stream

    def look(self, begin: int) -> tuple[int, frozenset[str]]:
        """As ``Planning.look``: a call, and one a partition until one has a change."""
        end, _ = self._reading.queries.stream.look("SELECT 1", {}, {})
        window = Window(begin, max(begin, end))
        # At the start of a query the position may not be one that the stream keeps yet.
        found = begin > 0 and not window.empty and self._stream.any_change(window)
        return end, frozenset(self._reading.tables if found else ())

    def first_change(self, window: Window, changed: frozenset[str]) -> int:  # noqa: ARG002
        """As ``Planning.first_change``: not known, so the window's start."""
        return window.start

    def cut(self, window: Window, changed: frozenset[str], max_rows: int) -> int:  # noqa: ARG002
        """As ``Planning.cut``: not known, so the whole."""
        return window.end

    def slices(self, window: Window, changed: frozenset[str] | None) -> list[Slice]:  # noqa: ARG002
        """As ``Planning.slices``: the partitions that are active when the window begins."""
        return list(self._stream.plan(window))
