"""The key-range capture: pages of a table as it was at one timestamp, each in slices to be read
side by side."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from watcher.captures import statements
from watcher.captures.backfill import raw_key
from watcher.captures.poll import PollCapture
from watcher.captures.progress import Key
from watcher.errors import VersionExpiredError
from watcher.spanner.results.wire import whole_rows
from watcher.window import BEGINNING, Slice, Window

LOG = logging.getLogger("watcher.ranges")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSlice(Slice):
    """The rows whose key is above ``after`` and at most ``upto``; None is the table's own bound."""

    after: Key | None
    upto: Key | None


@dataclass(frozen=True, slots=True)
class Page:
    """The slices of a page, how many rows they had, and the last key; None at the table's end."""

    slices: tuple[RangeSlice, ...]
    rows: int
    last: Key | None


@dataclass(frozen=True)
class RangeCapture:
    """Reads a table in the order of its key. Picklable.

    Past version garbage collection it is read strongly: a row that changed since the timestamp
    comes as it is now, and again with its window.
    """

    poll: PollCapture

    def page(
        self, at: int, after: Key | None, upto: Key | None, limit: int, rows_per_slice: int
    ) -> Page:
        """The rows above ``after``, at most ``limit`` of them (0: all), by reading keys alone."""
        try:
            return self._page(at, at, (after, upto), limit, rows_per_slice)
        except VersionExpiredError as error:
            LOG.warning("%s; reading strongly: rows that changed since come twice", error)
            return self._page(at, None, (after, upto), limit, rows_per_slice)

    def _page(
        self,
        at: int,
        read_timestamp: int | None,
        bounds: tuple[Key | None, Key | None],
        limit: int,
        rows_per_slice: int,
    ) -> Page:
        after, upto = bounds
        key = self.poll.table.primary_key
        results = self.poll.queries.stream.read_range(
            self.poll.table.name, key, (after, False), (upto, True), limit, read_timestamp
        )
        rows, last = 0, after
        ends: list[Key] = []
        for values in whole_rows(results, len(key)):
            count = len(values) // len(key)
            for row in range((-rows - 1) % rows_per_slice, count, rows_per_slice):
                ends.append(raw_key(values[row * len(key) : (row + 1) * len(key)], range(len(key))))
            rows += count
            last = raw_key(values[-len(key) :], range(len(key)))
        whole = not limit or rows < limit
        final = upto if whole else last
        if ends and last == ends[-1]:
            ends.pop()
        slices = self._slices(at, after, ends, final) if rows else ()
        return Page(tuple(slices), rows, None if whole else last)

    def _slices(
        self, at: int, after: Key | None, ends: list[Key], final: Key | None
    ) -> Iterator[RangeSlice]:
        window = Window(BEGINNING, at)
        for end in (*ends, final):
            yield RangeSlice(
                table=self.poll.table.name, window=window, shards=None, after=after, upto=end
            )
            after = end

    def read(self, part: RangeSlice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice. Raises VersionExpiredError when the versions go meanwhile."""
        begun = False
        try:
            for batch in self._read(part, part.window.end):
                begun = True
                yield batch
        except VersionExpiredError as error:
            if begun:
                raise
            LOG.warning("%s; reading strongly: rows that changed since come twice", error)
            yield from self._read(part, None)

    def _read(self, part: RangeSlice, read_timestamp: int | None) -> Iterator[pa.RecordBatch]:
        names = [name for name, _ in statements.selected(self.poll.table)]
        results = self.poll.queries.stream.read_range(
            part.table, names, (part.after, False), (part.upto, True), 0, read_timestamp
        )
        yield from self.poll.batches(results)
