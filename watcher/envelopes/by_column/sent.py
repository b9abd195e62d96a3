"""The records of a change stream as columns of changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanner_schema.model.column_types import Type
from watcher.captures import StreamRows
from watcher.envelopes.by_column.cells import render_member
from watcher.envelopes.by_column.changes import CellColumns, ChangeColumns, merge_zeros
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.kinds import Kind, Layer
from watcher.envelopes.values import CellStyle
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.spanner.results.sent_values import UnexpectedValueError

OBJECTS = {Layer.KEY: "key", Layer.NEW: "new_values", Layer.OLD: "old_values"}
"""The columns of ``CHANGES`` that are JSON."""
KINDS = ("shape", "operation", "captured", "new_values", "old_values")
"""Those that tell kinds apart, the last two by whether they are NULL."""


def list_sent(
    rows: StreamRows, style: CellStyle, indexes: NDArray[np.int64] | None
) -> ChangeColumns:
    """Changes of one shape and kind: ``iterate_stream_changes`` by column."""
    (first,) = rows.batch.slice(0, 1).select(KINDS).to_pylist()
    number, operation, captured, new, old = (first[name] for name in KINDS)
    shape = rows.shapes[number]
    return ChangeColumns(
        kind=Kind(
            Operation(operation),
            ValueCapture(captured),
            has_new=new is not None,
            has_old=old is not None,
            streamed=True,
        ),
        shape=shape,
        window=rows.window,
        commits=rows.batch.column("commit_timestamp").cast(pa.int64()),
        shards=pa.nulls(rows.batch.num_rows, pa.int64()),
        origin=rows.batch,
        indexes=indexes,
        make_ids=partial(rows.batch.column, "id"),
        render=partial(render_layer, rows.batch, shape, style),
    )


def render_layer(
    batch: pa.RecordBatch, shape: Shape, style: CellStyle, layer: Layer
) -> CellColumns:
    """The cells of a layer. Raises UnexpectedValueError."""
    texts, key = batch.column(OBJECTS[layer]), shape.primary_key
    if layer is not Layer.KEY:
        others = sorted(each for each in shape.columns if each[0] not in key)
        return render_objects(texts, others, style)
    cells = render_objects(texts, [each for each in shape.columns if each[0] in key], style)
    if len(cells) < len(key) or any(each.null_count for each in cells.values()):
        raise UnexpectedValueError("Spanner sent a change with a part of its key")
    return merge_zeros(shape, {name: cells[name] for name in key})


def render_objects(
    texts: pa.Array, columns: Sequence[tuple[str, Type]], style: CellStyle
) -> CellColumns:
    """The cells of objects in the order of columns; of those that some object has."""
    objects = SentObjects(texts, columns)
    if not objects.names <= dict(columns).keys():
        raise UnexpectedValueError("Spanner sent a change with columns without a type")
    cells = {name: render_member(objects, name, type_, style) for name, type_ in columns}
    return {name: each for name, each in cells.items() if each is not None}
