"""A batch in parts of one shape and one kind each, and what was made of the parts as one batch
again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.captures import Changed, TableRows
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.by_column.polled import find_deleted, list_polled
from watcher.envelopes.by_column.sent import KINDS, list_sent
from watcher.envelopes.values import CellStyle


def render_parts(
    rows: Changed,
    style: CellStyle,
    schema: pa.Schema,
    make_columns: Callable[[ChangeColumns], Sequence[pa.Array]],
) -> pa.RecordBatch:
    """What is made of each part of a batch, as columns of a schema, in the order of the batch."""
    parts = list(split_by_kind(rows, style))
    batches = [pa.RecordBatch.from_arrays(make_columns(part), schema=schema) for part in parts]
    if not parts:
        return pa.RecordBatch.from_pylist([], schema)
    if len(parts) == 1 or not len(schema):
        return batches[0]
    indexes = np.concatenate([part.indexes for part in parts if part.indexes is not None])
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch.take(pa.array(np.argsort(indexes, kind="stable")))


def split_by_kind(rows: Changed, style: CellStyle) -> Iterator[ChangeColumns]:
    """The changes of a batch in parts; none of an empty one."""
    if not rows.batch.num_rows:
        return
    groups = group_rows(list_distinctions(rows))
    for group in groups:
        indexes = group if len(groups) > 1 else None
        batch = rows.batch if indexes is None else rows.batch.take(pa.array(indexes))
        if isinstance(rows, TableRows):
            yield list_polled(replace(rows, batch=batch), style, indexes)
        else:
            yield list_sent(replace(rows, batch=batch), style, indexes)


def list_distinctions(rows: Changed) -> Sequence[pa.Array]:
    """The columns that tell the parts apart."""
    if isinstance(rows, TableRows):
        return [find_deleted(rows)]
    columns = [rows.batch.column(name) for name in KINDS]
    return [*columns[:-2], *(each.is_valid() for each in columns[-2:])]


def group_rows(columns: Sequence[pa.Array]) -> list[NDArray[np.int64]]:
    """The indexes of the rows that are the same in all columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(counts)[:-1])
