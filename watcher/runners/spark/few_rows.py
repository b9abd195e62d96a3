"""Few rows are read on the driver, and travel with their task, which then asks Spanner nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from watcher.model.window import ShardSlice
from watcher.runners.spark.slices import PlannedSlice

FEW_ROWS = 1_000
FEW_BYTES = 1 << 20
"""As Arrow columns, of all slices together."""


@dataclass(slots=True)
class Room:
    """What the driver may still read for one plan."""

    rows: int = FEW_ROWS
    size: int = FEW_BYTES

    def take(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...] | None:
        """The batches, where there is room for all of them; else None, and the room stays."""
        taken, rows, size = [], self.rows, self.size
        for batch in batches:
            rows, size = rows - batch.num_rows, size - batch.nbytes
            if rows < 0 or size < 0:
                return None
            taken.append(batch)
        self.rows, self.size = rows, size
        return tuple(taken)


def read_few(
    slices: list[PlannedSlice], read: Callable[[PlannedSlice], Iterable[pa.RecordBatch]]
) -> list[PlannedSlice]:
    """The slices with their rows; as they were where these are not few, or large."""
    if not has_few_rows(slices):
        return slices
    room, few = Room(), []
    for each in slices:
        if (rows := room.take(read(each))) is None:
            return slices
        few.append(replace(each, rows=rows))
    return few


def has_few_rows(slices: Sequence[PlannedSlice]) -> bool:
    """Whether all were counted, and are few together."""
    counts = [each.part.rows if isinstance(each.part, ShardSlice) else None for each in slices]
    return sum(FEW_ROWS + 1 if count is None else count for count in counts) <= FEW_ROWS
