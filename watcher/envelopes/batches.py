"""Batches of captures -> the messages of an envelope, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.captures.changes import iterate_changes
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.by_column.parts import render_parts
from watcher.envelopes.kinds import LackingError
from watcher.envelopes.message import Envelope
from watcher.envelopes.templates import JsonEnvelope, compile_messages
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


FindHead: TypeAlias = Callable[[Shape], bytes]
"""What stands before each value of a table."""


@runtime_checkable
class ColumnEnvelope(Protocol):
    """An ``Envelope`` around another one that can be written by column."""

    def encode_columns(self, rows: Changed, database: str) -> pa.RecordBatch | None:
        """As ``try_by_column``."""
        ...


def no_head(_: Shape) -> bytes:
    """Nothing stands there."""
    return b""


def encode_batch(rows: Changed, database: str, chosen: Envelope) -> pa.RecordBatch:
    """The messages of a batch, as rows of ``MESSAGE``. Raises EnvelopeError."""
    messages = try_by_column(rows, database, chosen)
    if messages is not None:
        return messages
    return encode_by_change(iterate_changes(rows, database), chosen)


def try_by_column(
    rows: Changed, database: str, chosen: Envelope, find_head: FindHead = no_head
) -> pa.RecordBatch | None:
    """As ``encode_batch``; None for a format that is not written by column, and where a change is
    refused or cannot be read: written change by change, the error is of the first."""
    if isinstance(chosen, ColumnEnvelope):
        return chosen.encode_columns(rows, database)
    if isinstance(chosen, JsonEnvelope):
        with suppress(EnvelopeError, LackingError, ValueError):
            return encode_by_column(rows, database, chosen, find_head)
    return None


def encode_by_column(
    rows: Changed, database: str, chosen: JsonEnvelope, find_head: FindHead = no_head
) -> pa.RecordBatch:
    """The messages of a batch. Raises LackingError where the envelope refuses a change, and
    EnvelopeError."""
    encode = partial(encode_part, database, chosen, find_head)
    return add_tombstones(render_parts(rows, chosen.style, EVENT, encode))


def encode_part(
    database: str, chosen: JsonEnvelope, find_head: FindHead, changes: ChangeColumns
) -> list[pa.Array]:
    """The events of changes that are alike, and whether a tombstone follows them."""
    compiled = compile_messages(chosen, database, changes.shape, changes.kind)
    head, values = find_head(changes.shape), compiled.value.render(changes).cast(pa.binary())
    return [
        pa.repeat(changes.shape.table, changes.rows),
        changes.commits.cast(TIMESTAMP),
        compiled.key.render(changes).cast(pa.binary()),
        pc.binary_join_element_wise(head, values, b"") if head else values,
        changes.ids,
        pa.repeat(compiled.tombstone, changes.rows),
    ]


def add_tombstones(events: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of ``MESSAGE`` of events, each tombstone after its event."""
    followed = events.column(FOLLOWED).to_numpy(zero_copy_only=False)
    batch = events.drop_columns([FOLLOWED])
    if not followed.any():
        return batch
    places = np.repeat(np.arange(len(followed)), 1 + followed)
    again = np.concatenate(([False], places[1:] == places[:-1]))
    longer = batch.take(pa.array(places))
    place = MESSAGE.get_field_index("value")
    values = pc.if_else(pa.array(again), None, longer.column(place))
    return longer.set_column(place, MESSAGE.field(place), values)


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
