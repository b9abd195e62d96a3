"""A backfill in micro-batches: tables by name, each in the order of its key."""

from __future__ import annotations

from collections.abc import Sequence

from watcher.captures.key_ranges import KeyRangeCapture, KeyRangePage
from watcher.errors import CheckpointError
from watcher.runners.spark.reading import Reading
from watcher.spanner.keys import Key
from watcher.window import Slice

BackfillPlace = tuple[str, Key | None]
"""The table under way, and its last key that was delivered."""


class Pages:
    """Plans the pages of a backfill; the last one planned is remembered for its batch."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._tables = sorted(reading.tables)
        self._planned: list[Slice] = []
        self._known: tuple[str, list[Slice]] | None = None

    @property
    def first(self) -> BackfillPlace:
        """Before anything is delivered."""
        return self._tables[0], None

    def plan(self, at: int, place: BackfillPlace, rows: int) -> BackfillPlace | None:
        """Plans the next page of about ``rows`` rows; the place after it, None at the end."""
        self._planned = []
        names = self._from(place[0])
        after = place[1]
        for number, name in enumerate(names):
            page = self._page(name, at, after, None, rows)
            self._planned += page.slices
            rows -= page.rows
            if page.last is not None:
                return name, page.last
            if rows <= 0 and number + 1 < len(names):
                return names[number + 1], None
            after = None
        return None

    def between(self, at: int, start: BackfillPlace, end: BackfillPlace | None) -> list[Slice]:
        """The slices of a page that was planned by another process."""
        found: list[Slice] = []
        after = start[1]
        for name in self._from(start[0]):
            if end is not None and name == end[0] and end[1] is None:
                break
            upto = end[1] if end is not None and name == end[0] else None
            found += self._page(name, at, after, upto, 0).slices
            if upto is not None:
                break
            after = None
        return found

    def remember(self, key: str) -> None:
        """Keeps the planned slices for the batch that ends at an offset."""
        self._known = (key, self._planned)

    def recall(self, key: str) -> list[Slice] | None:
        """The slices of the batch that ends at an offset, if they were the last planned."""
        return self._known[1] if self._known is not None and self._known[0] == key else None

    def _page(
        self, name: str, at: int, after: Key | None, upto: Key | None, rows: int
    ) -> KeyRangePage:
        capture = KeyRangeCapture(self._reading.capture(name))
        return capture.plan_page(at, after, upto, rows, self._reading.options.rows_per_slice)

    def _from(self, name: str) -> Sequence[str]:
        if name not in self._tables:
            raise CheckpointError(
                f"table {name} is gone in the middle of its backfill; start again with a new"
                " checkpoint"
            )
        return self._tables[self._tables.index(name) :]
