"""The messages of a batch as columns: of each change one, of some also a tombstone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.envelopes.by_column.cells import NotByColumnError
from watcher.envelopes.by_column.changes import CellColumns, ChangeColumns, merge_cells
from watcher.envelopes.message import Json, json_text
from watcher.json_columns.objects import NULL
from watcher.json_columns.strings import quote_strings
from watcher.model.change import Operation, Shape, ValueCapture
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

FOLLOWED = pa.field("followed", pa.bool_())
"""Whether a tombstone follows an event, until it is made."""


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Keys and values of events, and which of them a tombstone follows."""

    keys: pa.Array
    values: pa.Array
    tombstones: pa.Array | None = None


def dump_fields(fields: Mapping[str, Json]) -> dict[str, str]:
    """Fields that all changes have alike, as JSON texts."""
    return {name: json_text(value) for name, value in fields.items()}


def list_messages(changes: ChangeColumns, messages: MessageColumns) -> pa.RecordBatch:
    """Events as rows of ``MESSAGE``, and of which one a tombstone follows."""
    columns = [
        pa.repeat(changes.shape.table, changes.rows),
        changes.commits.cast(TIMESTAMP),
        messages.keys.cast(pa.binary()),
        messages.values.cast(pa.binary()),
        changes.ids,
        pa.repeat(False, changes.rows) if messages.tombstones is None else messages.tombstones,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGE.append(FOLLOWED))


def add_tombstones(events: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of ``MESSAGE`` of events, each tombstone after its event."""
    followed = events.column(FOLLOWED.name).to_numpy(zero_copy_only=False)
    batch = events.drop_columns([FOLLOWED.name])
    if not followed.any():
        return batch
    places = np.repeat(np.arange(len(followed)), 1 + followed)
    again = np.concatenate(([False], places[1:] == places[:-1]))
    longer = batch.take(pa.array(places))
    place = MESSAGE.get_field_index("value")
    values = pc.if_else(pa.array(again), None, longer.column(place))
    return longer.set_column(place, MESSAGE.field(place), values)


def find_deleted_rows(changes: ChangeColumns) -> pa.Array:
    """Which changes are deletes."""
    return pc.equal(changes.operations, str(Operation.DELETE))


def find_captured(changes: ChangeColumns, kinds: tuple[ValueCapture, ...]) -> pa.Array:
    """Which changes carry values of some kinds."""
    names = pa.array([str(kind) for kind in kinds])
    return pc.is_in(changes.captured, value_set=names)


def merge_new_row(changes: ChangeColumns) -> CellColumns:
    """The row afterwards. Raises NotByColumnError for one without new values: its envelope says
    what is wrong."""
    if changes.origin is not None:
        lost = changes.origin.column("new_values").is_null()
        if pc.any(pc.and_not(lost, find_deleted_rows(changes))).as_py():
            raise NotByColumnError("a change has no new values")
    return merge_cells(changes.shape, changes.new, changes.key)


def select_key(changes: ChangeColumns) -> CellColumns:
    """The cells of the key, in the order of the table's columns."""
    return merge_cells(changes.shape, changes.key)


def refuse_any(refused: pa.Array) -> None:
    """Raises NotByColumnError where a change is one that its envelope refuses."""
    if pc.any(refused).as_py():
        raise NotByColumnError("an envelope refuses a change")


def choose_texts(operations: pa.Array, texts: Mapping[Operation, str]) -> pa.Array:
    """A text for the operation of each change."""
    names = pa.array([str(operation) for operation in texts])
    return pa.array(list(texts.values())).take(pc.index_in(operations, value_set=names))


def choose_if(chosen: pa.Array, text: str, other: str) -> pa.Array:
    """One of two texts a row."""
    return pc.if_else(chosen, pa.scalar(text), pa.scalar(other))


def quote_or_null(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings; of NULL, ``null``."""
    return pc.fill_null(quote_strings(texts), NULL)


def print_values(column: pa.Array) -> pa.Array:
    """Integers and booleans as JSON."""
    return column.cast(pa.string())


def render_key_nulls(
    shape: Shape, key: CellColumns, rows: int
) -> tuple[list[frozenset[str]], pa.Array]:
    """The distinct sets of key columns that are NULL, and which of them each row has."""
    codes = np.zeros(rows, np.int64)
    for place, name in enumerate(shape.primary_key):
        codes += pc.equal(key[name], NULL).to_numpy(zero_copy_only=False).astype(np.int64) << place
    distinct, which = np.unique(codes, return_inverse=True)
    sets = [
        frozenset(n for place, n in enumerate(shape.primary_key) if int(code) >> place & 1)
        for code in distinct
    ]
    return sets, pa.array(which)
