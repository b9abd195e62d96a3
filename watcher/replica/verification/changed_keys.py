"""The keys of the rows in which two versions of a copy differ."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import CHANGED_KEYS_UNKNOWN
from watcher.replica.copies import ComparableCopy, StoredCopy, VersionRows
from watcher.replica.keys.ranges import NOWHERE, RangeIndex
from watcher.replica.verification.replicas import OpenTable
from watcher.replica.verification.row_hashes import add_hashes
from watcher.spanner.key_values import Parts

LOG = logging.getLogger("watcher.verify")
KEYS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """The ``keys`` that have changed; None: they are more than are compared one by one. ``ranges``
    are the numbers of the ranges that have one."""

    keys: frozenset[Parts] | None
    ranges: tuple[int, ...]


def find_changed(
    table: OpenTable, before: int, after: int, index: RangeIndex
) -> ChangedKeys | None:
    """The keys of the rows that only one of two versions has; None where the copy cannot say it, or
    a version is gone. Reads the files in which they differ twice."""
    copy = table.replica.copy
    if not isinstance(copy, ComparableCopy):
        return None
    try:
        hashes = sum_hashes(table, copy.compare_versions(before, after, table.names))
        rows = copy.compare_versions(before, after, table.names)
        return collect_keys(table, rows, hashes, index)
    except ReplicaError as error:
        name = table.replica.table.name
        CHANGED_KEYS_UNKNOWN.log(LOG, table=name, error=error)
        return None


def sum_hashes(table: OpenTable, rows: Iterator[VersionRows]) -> NDArray[np.int64]:
    """The hashes of rows that are not as often on one side as on the other, sorted."""
    hashes, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in rows:
        found = hash_rows(table, each.batch)
        hashes.append(found)
        counts.append(np.full(len(found), 1 if each.came else -1))
    values, indexes = np.unique(np.concatenate(hashes), return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, indexes, np.concatenate(counts))
    unmatched: NDArray[np.int64] = values[sums != 0]
    return unmatched


def collect_keys(
    table: OpenTable, rows: Iterator[VersionRows], hashes: NDArray[np.int64], index: RangeIndex
) -> ChangedKeys:
    """The keys of the rows that have one of some hashes."""
    keys: set[Parts] | None = set()
    ranges: set[int] = set()
    for each in rows:
        found = hash_rows(table, each.batch)
        changed = each.batch.filter(pa.array(np.isin(found, hashes)))
        ranges.update(np.unique(index.locate(changed)).tolist())
        if keys is not None:
            keys.update(table.order.read_batch(changed))
            keys = None if len(keys) > KEYS_MAX else keys
    chosen = None if keys is None else frozenset(keys)
    return ChangedKeys(chosen, tuple(sorted(ranges - {NOWHERE})))


def hash_rows(table: OpenTable, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """One hash of each row, of all its columns."""
    names: Sequence[str] = [group.name for group in table.groups]
    combined = np.zeros(batch.num_rows, np.int64)
    for hashed in add_hashes([batch], table.groups):
        for name in names:
            combined = combined * np.int64(31) + hashed.column(name).to_numpy()
    return combined


def has_same_rows(copy: StoredCopy, version: int, end: int) -> bool:
    """Whether a version is still the one that it was: of a copy that was loaded again, versions
    begin anew."""
    return copy.find_end(version) == end
