"""Batches of captures -> messages of the envelopes that are written by column."""

from __future__ import annotations

import pyarrow as pa

from watcher.captures import Changed
from watcher.envelopes import AnyEnvelope
from watcher.envelopes.by_column import datastream, debezium
from watcher.envelopes.by_column.cells import CellStyle, NotByColumnError
from watcher.envelopes.by_column.messages import (
    MESSAGE,
    MessageColumns,
    add_tombstones,
    list_messages,
)
from watcher.envelopes.by_column.parts import Part, merge_parts, split_by_shape
from watcher.envelopes.datastream import Datastream
from watcher.envelopes.debezium import Debezium
from watcher.json_columns.objects import COMPACT


def encode_batch(rows: Changed, database: str, chosen: AnyEnvelope) -> pa.RecordBatch:
    """The messages of a batch, as rows of ``MESSAGE``.

    Raises NotByColumnError for other envelopes, and for changes that columns cannot do or that the
    envelope refuses.
    """
    parts = [
        (list_messages(part.changes, encode_part(part, database, chosen)), part.places)
        for part in split_by_shape(rows, choose_style(chosen))
    ]
    return add_tombstones(merge_parts(parts)) if parts else pa.RecordBatch.from_pylist([], MESSAGE)


def choose_style(chosen: AnyEnvelope) -> CellStyle:
    """How an envelope writes cells."""
    if isinstance(chosen, Debezium):
        return debezium.STYLE
    if isinstance(chosen, Datastream):
        return CellStyle(COMPACT, chosen.format)
    raise NotByColumnError(f"the envelope {type(chosen).__name__} is written change by change")


def encode_part(part: Part, database: str, chosen: AnyEnvelope) -> MessageColumns:
    """Keys and values of the changes of one table."""
    if isinstance(chosen, Debezium):
        return debezium.encode_debezium(part.changes, database, chosen)
    assert isinstance(chosen, Datastream)
    return datastream.encode_datastream(part.changes, database, chosen)
