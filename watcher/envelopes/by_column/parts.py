"""A batch in parts of one shape and one kind each, and what was made of the parts as one batch
again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.changes import choose_operation
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.by_column.polled import PolledChanges, find_deleted
from watcher.envelopes.by_column.sent import SentChanges
from watcher.envelopes.kinds import Kind
from watcher.envelopes.values import CellStyle
from watcher.model.change import Operation, ValueCapture


@dataclass(frozen=True, slots=True)
class Part:
    """The changes of one shape and kind in a batch by column, and where they are in the batch; None
    where they are all."""

    kind: Kind
    changes: ChangeColumns
    places: NDArray[np.int64] | None


def split_by_kind(rows: Changed, style: CellStyle) -> Iterator[Part]:
    """The changes of a batch in parts; none of an empty one."""
    if not rows.batch.num_rows:
        return
    groups = group_rows(list_distinctions(rows))
    for places in groups:
        some = rows
        if len(groups) > 1:
            some = replace(rows, batch=rows.batch.take(pa.array(places)))
        yield make_part(some, style, places if len(groups) > 1 else None)


def list_distinctions(rows: Changed) -> Sequence[pa.Array]:
    """The columns that tell the parts apart."""
    if isinstance(rows, TableRows):
        return [find_deleted(rows)]
    named = [rows.batch.column(name) for name in ("shape", "operation", "captured")]
    return [*named, *(rows.batch.column(n).is_valid() for n in ("new_values", "old_values"))]


def group_rows(columns: Sequence[pa.Array]) -> list[NDArray[np.int64]]:
    """The places of the rows that are the same in all columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(counts)[:-1])


def make_part(rows: Changed, style: CellStyle, places: NDArray[np.int64] | None) -> Part:
    """The part of rows that are alike."""
    if isinstance(rows, StreamRows):
        (first,) = rows.batch.slice(0, 1).to_pylist()
        changes = SentChanges(rows.batch, rows.shapes[first["shape"]], rows.window, style)
        new, old = (first[name] is not None for name in ("new_values", "old_values"))
        kind = Kind(Operation(first["operation"]), ValueCapture(first["captured"]), new, old, True)
        return Part(kind, changes, places)
    operation = choose_operation(rows, find_deleted(rows)[0].as_py())
    kind = Kind(operation, ValueCapture.NEW_ROW, True, False, False)
    return Part(kind, PolledChanges(rows, style), places)


def merge_parts(parts: Sequence[tuple[Part, pa.RecordBatch]]) -> pa.RecordBatch:
    """What was made of each part, in the order of the batch."""
    if len(parts) == 1 or not parts[0][1].num_columns:
        return parts[0][1]
    places = np.concatenate([part.places for part, _ in parts if part.places is not None])
    together = pa.Table.from_batches([batch for _, batch in parts]).combine_chunks()
    (batch,) = together.to_batches()
    return batch.take(pa.array(np.argsort(places, kind="stable")))
