"""A backfill in micro-batches: tables by name, each in the order of its key."""

from __future__ import annotations

from collections.abc import Sequence

from watcher.captures.key_ranges import KeyRangeCapture, KeyRangePage
from watcher.model.errors import CheckpointError
from watcher.model.window import Slice
from watcher.planning.limits import WindowLimit
from watcher.runners.spark.scan import Scan
from watcher.spanner.keys import Key

BackfillPoint = tuple[str, Key | None]
"""The table in progress, and its last key that was delivered."""


class Pages:
    """Plans the pages of a backfill; the last one planned is remembered for its batch."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._tables = sorted(scan.tables)
        self._planned: list[Slice] = []
        self._known: tuple[str, list[Slice]] | None = None

    @property
    def first(self) -> BackfillPoint:
        """Before anything is delivered."""
        return self._tables[0], None

    def plan(self, at: int, point: BackfillPoint, limit: WindowLimit) -> BackfillPoint | None:
        """Plans the next page of about as much as a limit says; the point after it, None at the
        end."""
        self._planned = []
        names = self._remaining_tables(point[0])
        after, rows, size = point[1], limit.rows, float(limit.bytes)
        for number, name in enumerate(names):
            average = self._capture(name).measure_row(at, after) if limit.bytes else 0.0
            most = WindowLimit(rows, max(1, round(size)) if limit.bytes else 0)
            page = self._plan_one(name, at, after, None, most.limit_rows(average))
            self._planned += page.slices
            rows -= page.rows
            size -= page.rows * average
            if page.last is not None:
                return name, page.last
            full = rows <= 0 or (limit.bytes > 0 and size <= 0)
            if full and number + 1 < len(names):
                return names[number + 1], None
            after = None
        return None

    def plan_between(self, at: int, start: BackfillPoint, end: BackfillPoint | None) -> list[Slice]:
        """The slices of a page that was planned by another process."""
        slices: list[Slice] = []
        after = start[1]
        for name in self._remaining_tables(start[0]):
            if end is not None and name == end[0] and end[1] is None:
                break
            upto = end[1] if end is not None and name == end[0] else None
            slices += self._plan_one(name, at, after, upto, 0).slices
            if upto is not None:
                break
            after = None
        return slices

    def remember(self, key: str) -> None:
        """Keeps the planned slices for the batch that ends at an offset."""
        self._known = (key, self._planned)

    def recall(self, key: str) -> list[Slice] | None:
        """The slices of the batch that ends at an offset, if they were the last planned."""
        return self._known[1] if self._known is not None and self._known[0] == key else None

    def _plan_one(
        self, name: str, at: int, after: Key | None, upto: Key | None, rows: int
    ) -> KeyRangePage:
        per_slice = self._scan.options.rows_per_slice
        return self._capture(name).plan_page(at, after, upto, rows, per_slice)

    def _capture(self, name: str) -> KeyRangeCapture:
        return KeyRangeCapture(self._scan.capture(name))

    def _remaining_tables(self, name: str) -> Sequence[str]:
        if name not in self._tables:
            raise CheckpointError(
                f"table {name} was dropped during its backfill: restart the query with a new"
                " checkpoint"
            )
        return self._tables[self._tables.index(name) :]
