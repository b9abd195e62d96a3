"""Ranges of primary keys, and which of them has the key of a row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanner_schema.model.column_types import TypeCode
from watcher.replica.keys.order import KeyOrder, SortKey
from watcher.spanner.key_values import Parts
from watcher.spanner.keys import Key

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """Keys above ``after`` and at most ``upto``, in the JSON of Spanner's API; None: no bound."""

    after: Key | None = None
    upto: Key | None = None


class RangeIndex:
    """Ranges of keys that do not overlap, in order; finds the range of a key."""

    def __init__(self, order: KeyOrder, intervals: Sequence[KeyInterval]) -> None:
        self._order = order
        self._ends = [self._read(each.upto) for each in intervals if each.upto is not None]
        self._starts = [self._read(each.after) if each.after else None for each in intervals]
        self.count = len(intervals)
        self._open_start = not intervals or intervals[0].after is None
        self._numbers = self._read_numbers(intervals)

    def locate(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The number of the range of each row; ``NOWHERE`` for a row in none."""
        if self._numbers is not None and batch.column(self._order.names[0]).null_count == 0:
            return self._locate_numbers(batch.column(self._order.names[0]).to_numpy())
        indexes = (self._find(parts) for parts in self._order.read_batch(batch))
        return np.fromiter(indexes, np.int64, batch.num_rows)

    def has(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Whether each row is in one of the ranges."""
        inside: NDArray[np.bool_] = self.locate(batch) != NOWHERE
        return inside

    def _read(self, key: tuple[object, ...]) -> SortKey:
        return self._order.sort_key(self._order.read_wire(key))

    def _find(self, parts: Parts) -> int:
        key = self._order.sort_key(parts)
        index = bisect_left(self._ends, key)
        if index >= self.count:
            return NOWHERE
        start = self._starts[index]
        return index if start is None or start < key else NOWHERE

    def _read_numbers(
        self, intervals: Sequence[KeyInterval]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Starts and ends of ranges of one ascending INT64, which numpy finds faster."""
        columns = self._order.columns
        if len(columns) != 1 or columns[0].type.code is not TypeCode.INT64 or columns[0].descending:
            return None
        low = str(np.iinfo(np.int64).min)
        starts = [(each.after or (low,))[0] for each in intervals]
        ends = [each.upto[0] for each in intervals if each.upto is not None]
        if None in starts or None in ends:
            return None
        return np.array([*map(int, starts)], np.int64), np.array([*map(int, ends)], np.int64)

    def _locate_numbers(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        assert self._numbers is not None
        starts, ends = self._numbers
        indexes = np.searchsorted(ends, keys, side="left")
        inside = indexes < self.count
        indexes = np.where(inside, indexes, 0)
        above = (keys > starts[indexes]) | ((indexes == 0) & self._open_start)
        return np.where(inside & above, indexes, NOWHERE)
