"""Batches of captures -> the messages of an envelope, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, TableRows
from watcher.captures.changes import iterate_changes
from watcher.envelopes.avro_batches import encode_rows
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.by_column.parts import render_parts
from watcher.envelopes.kinds import LackingError
from watcher.envelopes.message import Envelope
from watcher.envelopes.plain_avro import PlainAvro
from watcher.envelopes.templates import JsonEnvelope, compile_messages
from watcher.envelopes.values import COMPACT_CELLS
from watcher.model.change import Change, Shape
from watcher.model.errors import EnvelopeError
from watcher.spanner.results.columns import TIMESTAMP

CHANGE_ID_COLUMN = "_change_id"

MESSAGE = pa.schema(
    [
        ("table", pa.string()),
        (COMMIT_TIMESTAMP_COLUMN, TIMESTAMP),
        ("key", pa.binary()),
        ("value", pa.binary()),
        (CHANGE_ID_COLUMN, pa.string()),
    ]
)
"""``key`` and ``value`` as a Kafka sink takes them; a ``value`` of NULL is a tombstone."""

FOLLOWED = "followed"
EVENT = MESSAGE.append(pa.field(FOLLOWED, pa.bool_()))
"""Until tombstones are made, with whether one follows."""


FindHeads: TypeAlias = Callable[[Shape], tuple[bytes, bytes]]
"""What stands before each key and before each value of a table."""


@runtime_checkable
class ColumnEnvelope(Protocol):
    """An ``Envelope`` around another one that can be written by column."""

    def encode_columns(self, rows: Changed, database: str) -> pa.RecordBatch | None:
        """As ``try_by_column``."""
        ...


def no_heads(_: Shape) -> tuple[bytes, bytes]:
    """Nothing stands there."""
    return b"", b""


def encode_batch(rows: Changed, database: str, chosen: Envelope) -> pa.RecordBatch:
    """The messages of a batch, as rows of ``MESSAGE``. Raises EnvelopeError."""
    messages = try_by_column(rows, database, chosen)
    if messages is not None:
        return messages
    return encode_by_change(iterate_changes(rows, database), chosen)


def try_by_column(
    rows: Changed, database: str, chosen: Envelope, find_heads: FindHeads = no_heads
) -> pa.RecordBatch | None:
    """As ``encode_batch``; None for a format that is not written by column, and where a change is
    refused or cannot be read: written change by change, the error is of the first."""
    if isinstance(chosen, ColumnEnvelope):
        return chosen.encode_columns(rows, database)
    with suppress(EnvelopeError, LackingError, ValueError):
        if isinstance(chosen, JsonEnvelope):
            return encode_by_column(rows, database, chosen, find_heads)
        if isinstance(chosen, PlainAvro) and isinstance(rows, TableRows):
            return encode_avro_by_column(rows, database, chosen, find_heads)
    return None


def encode_by_column(
    rows: Changed, database: str, chosen: JsonEnvelope, find_heads: FindHeads = no_heads
) -> pa.RecordBatch:
    """The messages of a batch. Raises LackingError where the envelope refuses a change, and
    EnvelopeError."""

    def encode(changes: ChangeColumns) -> list[pa.Array]:
        compiled = compile_messages(chosen, database, changes.shape, changes.kind)
        key, value = compiled.key.render(changes), compiled.value.render(changes)
        return list_event(changes, key, value, find_heads, compiled.tombstone)

    return add_tombstones(render_parts(rows, chosen.style, EVENT, encode))


def encode_avro_by_column(
    rows: TableRows, database: str, chosen: PlainAvro, find_heads: FindHeads = no_heads
) -> pa.RecordBatch:
    """As ``encode_by_column``."""

    def encode(changes: ChangeColumns) -> list[pa.Array]:
        key, value = encode_rows(rows, database, chosen, changes)
        return list_event(changes, key, value, find_heads)

    return add_tombstones(render_parts(rows, COMPACT_CELLS, EVENT, encode))


def list_event(
    changes: ChangeColumns,
    key: pa.Array,
    value: pa.Array,
    find_heads: FindHeads,
    tombstone: bool = False,
) -> list[pa.Array]:
    """The columns of ``EVENT`` of changes that are alike; whether a tombstone follows them."""
    parts = zip(find_heads(changes.shape), (key, value), strict=True)
    encoded = [
        pc.binary_join_element_wise(head, part.cast(pa.binary()), b"")
        if head
        else part.cast(pa.binary())
        for head, part in parts
    ]
    return [
        pa.repeat(changes.shape.table, changes.rows),
        changes.commits.cast(TIMESTAMP),
        *encoded,
        changes.ids,
        pa.repeat(tombstone, changes.rows),
    ]


def add_tombstones(events: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of ``MESSAGE`` of events, each tombstone after its event."""
    followed = events.column(FOLLOWED).to_numpy(zero_copy_only=False)
    batch = events.drop_columns([FOLLOWED])
    if not followed.any():
        return batch
    indexes = np.repeat(np.arange(len(followed)), 1 + followed)
    again = np.concatenate(([False], indexes[1:] == indexes[:-1]))
    longer = batch.take(pa.array(indexes))
    index = MESSAGE.get_field_index("value")
    values = pc.if_else(pa.array(again), None, longer.column(index))
    return longer.set_column(index, MESSAGE.field(index), values)


def encode_by_change(changes: Iterable[Change], chosen: Envelope) -> pa.RecordBatch:
    """The messages of changes, one by one. Raises EnvelopeError."""
    return build_batch(list(list_messages(changes, chosen)), MESSAGE)


def list_messages(changes: Iterable[Change], chosen: Envelope) -> Iterator[dict[str, object]]:
    """The messages of changes as rows of ``MESSAGE``."""
    for change in changes:
        for message in chosen.encode(change):
            yield {
                "table": change.table,
                COMMIT_TIMESTAMP_COLUMN: change.commit_timestamp,
                "key": message.key,
                "value": message.value,
                CHANGE_ID_COLUMN: change.id,
            }


def build_batch(rows: Sequence[Mapping[str, object]], shown: pa.Schema) -> pa.RecordBatch:
    """Rows as columns."""
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in shown]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)
