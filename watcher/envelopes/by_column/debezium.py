"""Debezium's events of whole batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from watcher.envelopes.by_column.cells import COMPACT_CELLS, NotByColumnError
from watcher.envelopes.by_column.changes import ChangeColumns, keep_cells, merge_cells
from watcher.envelopes.by_column.messages import (
    MessageColumns,
    choose_if,
    choose_texts,
    dump_fields,
    find_captured,
    find_deleted_rows,
    merge_new_row,
    print_values,
    quote_or_null,
    refuse_any,
    render_key_nulls,
    select_key,
)
from watcher.envelopes.connect_schema import event_schema, key_schema
from watcher.envelopes.debezium import OPS, Debezium, read_times
from watcher.envelopes.debezium_source import SOURCE, Alike, OfChange, SharedSource, SourceField
from watcher.envelopes.images import OLD, ROWS
from watcher.envelopes.message import Json, json_text
from watcher.json_columns.objects import COMPACT, NULL, Cells, join_object
from watcher.json_columns.strings import wrap
from watcher.model.change import Operation

STYLE = COMPACT_CELLS
EXISTED = (Operation.UPDATE, Operation.DELETE, Operation.UPSERT)
"""The operations on a row that was there before."""
Texts: TypeAlias = pa.Array | str
"""JSON texts of a field: one a change, or one for all."""


def encode_debezium(changes: ChangeColumns, database: str, chosen: Debezium) -> MessageColumns:
    """As ``Debezium.encode``. Raises NotByColumnError for what columns cannot do or the envelope
    refuses."""
    shared = chosen.share(database, changes.shape.table, changes.window)
    keys = join_object(select_key(changes), changes.rows, COMPACT)
    fields: Cells = {
        "before": render_before(changes, chosen),
        "after": render_after(changes, chosen),
        "source": render_source(changes, shared),
        "op": choose_texts(changes.operations, {op: f'"{name}"' for op, name in OPS.items()}),
        **dump_fields(read_times(changes.window)),
    }
    values = join_object(fields, changes.rows, COMPACT)
    if chosen.with_schema:
        keys, values = add_schemas(changes, chosen, keys, values)
    tombstones = find_deleted_rows(changes) if chosen.tombstones else None
    return MessageColumns(keys, values, tombstones)


def render_after(changes: ChangeColumns, chosen: Debezium) -> pa.Array:
    """The row afterwards; ``null`` of a delete."""
    deleted = find_deleted_rows(changes)
    if chosen.partial == "refuse":
        part = pc.and_not(
            pc.equal(changes.operations, str(Operation.UPDATE)), find_captured(changes, ROWS)
        )
        refuse_any(part)
    row = join_object(merge_new_row(changes), changes.rows, COMPACT)
    return pc.if_else(deleted, NULL, row) if pc.any(deleted).as_py() else row


def render_before(changes: ChangeColumns, chosen: Debezium) -> pa.Array | str:
    """The row before, as ``images.old_row``; ``null`` where it is not known."""
    if chosen.before == "never":
        return NULL
    update = pc.equal(changes.operations, str(Operation.UPDATE))
    known = pc.and_(find_captured(changes, OLD), changes.knows_old)
    known = pc.and_(known, pc.or_(update, find_deleted_rows(changes)))
    if chosen.before == "required":
        names = pa.array([str(each) for each in EXISTED])
        existed = pc.is_in(changes.operations, value_set=names)
        refuse_any(pc.and_not(existed, known))
    if not pc.any(known).as_py():
        return NULL
    unchanged = keep_cells(changes.new, pc.and_(update, find_captured(changes, ROWS)))
    cells = merge_cells(changes.shape, changes.old, unchanged, changes.key)
    return pc.if_else(known, join_object(cells, changes.rows, COMPACT), NULL)


def render_source(changes: ChangeColumns, shared: SharedSource) -> Cells:
    """The fields of ``source``, as ``SourceBlock.make`` of each change."""
    return {each.name: render_field(each, changes, shared) for each in SOURCE.fields}


def render_field(field: SourceField, changes: ChangeColumns, shared: SharedSource) -> Texts:
    """One field: a text for all changes, or a column."""
    value = field.value
    if isinstance(value, Alike):
        return json_text(value.read(shared))
    if isinstance(value, OfChange):
        return COLUMNS[field.name](changes)
    if changes.origin is None:
        return NULL
    column = changes.origin.column(value.attribute)
    return quote_or_null(column) if pa.types.is_string(column.type) else print_values(column)


def print_nanoseconds(micros: pa.Array) -> pa.Array:
    """Microseconds as nanoseconds, which may be more than 64 bits hold."""
    return pc.if_else(pc.equal(micros, 0), "0", wrap(print_values(micros), "", "000"))


def divide_floor(values: pa.Array, divisor: int) -> pa.Array:
    """Integers divided as Python's ``//`` does; Arrow's division truncates."""
    remainders = pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))
    below = pc.less(remainders, 0).cast(pa.int64())
    return pc.subtract(pc.divide(values, divisor), below)


def render_sequence(changes: ChangeColumns) -> Texts:
    """Record sequences without leading zeros."""
    if changes.origin is None:
        return NULL
    sequences = changes.origin.column("record_sequence")
    if not pc.all(pc.match_substring_regex(sequences, "^[0-9]{1,18}$")).as_py():
        raise NotByColumnError("a record sequence is not a number of up to 18 digits")
    return quote_or_null(sequences.cast(pa.int64()).cast(pa.string()))


def render_snapshot(changes: ChangeColumns) -> Texts:
    """Which changes are rows of a backfill."""
    return choose_if(pc.equal(changes.operations, str(Operation.READ)), '"true"', '"false"')


COLUMNS: Mapping[str, Callable[[ChangeColumns], Texts]] = {
    "ts_ms": lambda changes: print_values(divide_floor(changes.commits, 1000)),
    "ts_us": lambda changes: print_values(changes.commits),
    "ts_ns": lambda changes: print_nanoseconds(changes.commits),
    "snapshot": render_snapshot,
    "sequence": render_sequence,
    "value_capture_type": lambda changes: quote_or_null(changes.captured),
}
"""The fields of ``source`` that are of each change."""


def add_schemas(
    changes: ChangeColumns, chosen: Debezium, keys: pa.Array, values: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """Keys and values with Kafka Connect's schemas, which depend on the NULLs of the key."""
    shape = changes.shape
    nulls, which = render_key_nulls(shape, changes.key, changes.rows)
    of_keys = [json_text(cast("Json", key_schema(shape, each))) for each in nulls]
    of_events = [json_text(cast("Json", event_schema(chosen.name, shape, each))) for each in nulls]
    with_schema = (
        {"schema": pa.array(texts).take(which), "payload": payload}
        for texts, payload in ((of_keys, keys), (of_events, values))
    )
    key, value = (join_object(fields, changes.rows, COMPACT) for fields in with_schema)
    return key, value
