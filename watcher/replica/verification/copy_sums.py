"""Sums of ranges of a copy, in one pass over its rows, whatever their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from watcher.replica.keys.ranges import NOWHERE, RangeIndex
from watcher.replica.verification.canonical import LOW_BITS
from watcher.replica.verification.column_groups import ColumnGroup
from watcher.replica.verification.spanner_sums import RangeSum


def sum_ranges(
    batches: Iterable[pa.RecordBatch], index: RangeIndex, groups: Sequence[ColumnGroup]
) -> list[RangeSum]:
    """The sum of each range, of rows with the hashes of some groups."""
    counts = np.zeros(index.count, np.int64)
    sums = np.zeros((len(groups), 2, index.count), np.int64)
    for batch in batches:
        indexes = index.locate(batch)
        inside = indexes != NOWHERE
        counts += np.bincount(indexes[inside], minlength=index.count)
        for (low, high), group in zip(sums, groups, strict=True):
            hashes = batch.column(group.name).to_numpy()[inside]
            np.add.at(low, indexes[inside], hashes & LOW_BITS)
            np.add.at(high, indexes[inside], (hashes >> 32) & LOW_BITS)
    pairs = sums.transpose(2, 0, 1).tolist()
    return [
        RangeSum(rows, tuple((low, high) for low, high in each))
        for rows, each in zip(counts.tolist(), pairs, strict=True)
    ]
