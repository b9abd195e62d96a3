"""What a merge on read does: the rows that come, and the rows of each data file that go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.replica.copies import DELETED_COLUMN, find_stamp
from watcher.replica.keys.hashes import Words
from watcher.replica.writing.key_index import NEVER
from watcher.replica.writing.live_rows import LiveRows, to_micros


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does: the rows that it adds, with their hashes and timestamps, and the rows of
    each file that go."""

    rows: pa.Table
    hashes: tuple[Words, Words]
    stamps: NDArray[np.int64]
    gone: Mapping[str, BitMap]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.rows.num_rows and not self.gone


def plan_merge(
    live: LiveRows[Any, Any], schema: pa.Schema, rows: pa.Table, key: Sequence[str], path: str
) -> MergePlan:
    """The merge of rows, as ``TableCopy.merge``, into the version that ``live`` follows, which has
    the columns of a ``schema``. A row is newer than those of its key, of which others may have
    added several: docs, rule 4. Of a key that the copy does not have, every row is."""
    stamp = find_stamp(rows.column_names)
    hashes = live.hash(take_columns(rows, schema, key, path))
    keys, there = live.find(hashes)
    stamps = to_micros(rows.column(stamp).combine_chunks())
    newest = np.full(rows.num_rows, NEVER)
    np.maximum.at(newest, keys, there.stamps)
    newer = (newest == NEVER) | (stamps > newest)
    kept = newer & ~rows.column(DELETED_COLUMN).to_numpy()
    chosen = take_columns(rows, schema, schema.names, path).filter(pa.array(kept))
    gone = live.group(there.take(newer[keys]))
    return MergePlan(chosen, (hashes[0][kept], hashes[1][kept]), stamps[kept], gone)


def take_columns(rows: pa.Table, schema: pa.Schema, names: Sequence[str], path: str) -> pa.Table:
    """Columns of rows with the types of the table. Raises ReplicaError where it has others."""
    try:
        return rows.select(list(names)).cast(pa.schema([schema.field(name) for name in names]))
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ReplicaError(f"{path} has other columns than the rows for it: {error}") from error


def cast_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str
) -> Iterable[pa.RecordBatch]:
    """Rows with the columns of a table. Raises ReplicaError where they have others."""
    for batch in batches:
        rows = take_columns(pa.Table.from_batches([batch]), schema, schema.names, path)
        yield from rows.to_batches()
