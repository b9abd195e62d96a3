"""A batch in parts of one shape each, and what was made of the parts as one batch again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from watcher.captures import Changed, StreamRows, TableRows
from watcher.envelopes.by_column.cells import CellStyle
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.by_column.polled import PolledChanges
from watcher.envelopes.by_column.sent import SentChanges


@dataclass(frozen=True, slots=True)
class Part:
    """The changes of one shape in a batch by column, and where they are in the batch; None where
    they are all."""

    changes: ChangeColumns
    places: pa.Array | None = None


def split_by_shape(rows: Changed, style: CellStyle) -> Iterator[Part]:
    """The changes of a batch by their columns; nothing of an empty one."""
    if not rows.batch.num_rows:
        return
    if isinstance(rows, TableRows):
        yield Part(PolledChanges(rows, style))
    elif len(rows.shapes) == 1:
        yield Part(SentChanges(rows.batch, rows.shapes[0], rows.window, style))
    else:
        yield from split_stream(rows, style)


def split_stream(rows: StreamRows, style: CellStyle) -> Iterator[Part]:
    """The changes of each shape in a batch of a change stream."""
    numbers = rows.batch.column("shape").to_numpy()
    for number, shape in enumerate(rows.shapes):
        places = pa.array(np.flatnonzero(numbers == number))
        if len(places):
            some = rows.batch.take(places)
            yield Part(SentChanges(some, shape, rows.window, style), places)


def merge_parts(parts: list[tuple[pa.RecordBatch, pa.Array | None]]) -> pa.RecordBatch:
    """What was made of each part, in the order of the batch."""
    if len(parts) == 1:
        return parts[0][0]
    places = np.concatenate([places.to_numpy() for _, places in parts if places is not None])
    together = pa.Table.from_batches([batch for batch, _ in parts]).combine_chunks()
    (batch,) = together.to_batches()
    return batch.take(pa.array(np.argsort(places, kind="stable")))
