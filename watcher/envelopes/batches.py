"""Batches of captures -> the messages of an envelope, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.captures.changes import iterate_changes
from watcher.envelopes.by_column.changes import ChangeColumns, render_parts
from watcher.envelopes.kinds import LackingError
from watcher.envelopes.message import Envelope
from watcher.envelopes.templates import Messages
from watcher.envelopes.values import CellStyle
from watcher.model.change import Change
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


@runtime_checkable
class ColumnWriter(Protocol):
    """An ``Envelope`` that writes changes of one shape and kind at once."""

    @property
    def style(self) -> CellStyle:
        """How the cells of the changes are to be written."""
        ...

    def render(self, changes: ChangeColumns, database: str) -> Messages[pa.Array]:
        """The keys and the values of the changes. Raises LackingError where the envelope refuses
        them, and EnvelopeError."""
        ...


def encode_batch(rows: Changed, database: str, chosen: Envelope) -> pa.RecordBatch:
    """The messages of a batch, as rows of ``MESSAGE``. Raises EnvelopeError."""
    messages = try_by_column(rows, database, chosen)
    if messages is not None:
        return messages
    return encode_by_change(iterate_changes(rows, database), chosen)


def try_by_column(rows: Changed, database: str, chosen: Envelope) -> pa.RecordBatch | None:
    """As ``encode_batch``; None for a format that is not written by column, and where a change is
    refused or cannot be read: written change by change, the error is of the first."""
    if isinstance(chosen, ColumnWriter):
        with suppress(EnvelopeError, LackingError, ValueError):
            return encode_by_column(rows, database, chosen)
    return None


def encode_by_column(rows: Changed, database: str, chosen: ColumnWriter) -> pa.RecordBatch:
    """The messages of a batch. Raises as ``ColumnWriter.render``."""

    def list_columns(changes: ChangeColumns) -> list[pa.Array]:
        messages = chosen.render(changes, database)
        return [
            pa.repeat(changes.shape.table, changes.rows),
            changes.commits.cast(TIMESTAMP),
            messages.key.cast(pa.binary()),
            messages.value.cast(pa.binary()),
            changes.ids,
            pa.repeat(messages.tombstone, changes.rows),
        ]

    return add_tombstones(render_parts(rows, chosen.style, EVENT, list_columns))


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
    return pa.RecordBatch.from_pylist(list(list_messages(changes, chosen)), MESSAGE)


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
