"""The rows of copies that keep more than the latest ones: what a load, and what the changes of a
window make of them. Arrow tables in, Arrow tables out; the rules are H1 to H7 of
docs/replica-protocol.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.replica.copies import DELETED_COLUMN
from watcher.replica.cuts.modes import (
    COLUMNS,
    DELETED_AT,
    ENDS,
    HISTORY,
    LOADED,
    OPERATION,
    OWN_COLUMNS,
    TRANSACTION,
    VALID_FROM,
    VALID_TO,
    Mode,
    find_mode,
)

UTC_MICROS = pa.timestamp("us", "UTC")
TYPES = {
    DELETED_AT: UTC_MICROS,
    VALID_FROM: UTC_MICROS,
    VALID_TO: UTC_MICROS,
    OPERATION: pa.string(),
    TRANSACTION: pa.string(),
}
KEY_ONLY = "$key_only"
"""In rows that are merged: true for a deletion that does not say what was deleted."""
AT = "$at"
"""In rows that are merged: when they changed, where that is not when they were written."""
NONE = -1
Numbers = NDArray[np.int64]


def extend_schema(schema: pa.Schema, mode: Mode) -> pa.Schema:
    """The columns of a table with those of a mode."""
    for name in COLUMNS[mode]:
        schema = schema.append(pa.field(name, TYPES[name]))
    return schema


def strip_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a copy without those of its mode."""
    return pa.schema([field for field in schema if field.name not in OWN_COLUMNS])


def complete_batch(batch: pa.RecordBatch, mode: Mode, at: int) -> pa.RecordBatch:
    """Rows that were read at a timestamp, with the columns of a mode."""
    for name, value in list_loaded(mode, at).items():
        batch = batch.append_column(pa.field(name, value.type), pa.repeat(value, batch.num_rows))
    return batch


def list_loaded(mode: Mode, at: int) -> dict[str, pa.Scalar]:
    """What rows that were read at a timestamp have in the columns of a mode."""
    values = {VALID_FROM: at, OPERATION: LOADED}
    return {name: pa.scalar(values.get(name), TYPES[name]) for name in COLUMNS[mode]}


def keep_current(batch: pa.RecordBatch, mode: Mode) -> pa.RecordBatch:
    """The rows of a batch that the table has, of one with the column that tells."""
    return batch.filter(pc.is_null(batch.column(ENDS[mode])))


def keep_valid(rows: pa.Table, at: int) -> pa.Table:
    """The versions that were current at a timestamp."""
    moment = pa.scalar(at, pa.int64()).cast(UTC_MICROS)
    begun = pc.less_equal(rows.column(VALID_FROM), moment)
    ended = pc.fill_null(pc.less_equal(rows.column(VALID_TO), moment), False)
    return rows.filter(pc.and_(begun, pc.invert(ended)))


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows, and for each the number of its key. The rows of a key follow one another, the oldest
    first; ``times`` says when each became what it is, in microseconds."""

    rows: pa.Table
    keys: Numbers
    times: Numbers

    @property
    def deleted(self) -> NDArray[np.bool_]:
        """Which of them say that their row is gone."""
        return np.asarray(self.rows.column(DELETED_COLUMN).to_numpy(), np.bool_)

    @property
    def first(self) -> NDArray[np.bool_]:
        """Which are the first ones of their keys."""
        return np.append(True, self.keys[1:] != self.keys[:-1])[: len(self.keys)]

    def filter(self, kept: NDArray[np.bool_]) -> KeyedRows:
        """Some of them."""
        return KeyedRows(self.rows.filter(pa.array(kept)), self.keys[kept], self.times[kept])


def arrange_changes(rows: pa.Table, keys: Numbers, times: Numbers) -> KeyedRows:
    """Changes in the order of their keys and times. Of those of one key and time the last one
    counts: a change stream gives those of a transaction in their order."""
    order = np.lexsort((np.arange(len(keys)), times, keys))
    keys, times = keys[order], times[order]
    last = np.append((keys[1:] != keys[:-1]) | (times[1:] != times[:-1]), True)[: len(keys)]
    return KeyedRows(rows.take(pa.array(order)), keys, times).filter(last)


def make_changes(rows: pa.Table, gone: Sequence[pa.RecordBatch], at: int) -> pa.Table:
    """Changes at a timestamp: ``rows`` come, and those of the keys ``gone`` go unless they come."""
    deletions = [pa.Table.from_batches([keys]) for keys in gone]
    marked = [mark_rows(keys, True, at) for keys in deletions]
    return pa.concat_tables([*marked, mark_rows(rows, False, at)], promote_options="default")


def mark_rows(rows: pa.Table, gone: bool, at: int) -> pa.Table:
    """Rows that come, or keys that go, at a timestamp."""
    moment = pa.scalar(at, pa.int64()).cast(UTC_MICROS)
    for name, value in ((DELETED_COLUMN, gone), (KEY_ONLY, gone), (AT, moment)):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What a merge writes, with the numbers of the keys; ``replaced`` are the numbers of the old
    rows that it replaces."""

    rows: pa.Table
    keys: Numbers
    replaced: Numbers


def merge_changes(changes: KeyedRows, old: KeyedRows, schema: pa.Schema) -> MergedRows:
    """What changes make of the newest rows of their keys, in the columns of a copy."""
    merge = merge_versions if find_mode(schema.names) == HISTORY else merge_marks
    return merge(changes, old, schema)


def merge_versions(changes: KeyedRows, old: KeyedRows, schema: pa.Schema) -> MergedRows:
    """A version for each change. The current version of a key, if there is one, ends with the first
    change. To delete what is not there is no change."""
    current = np.asarray(pc.is_null(old.rows.column(VALID_TO)).to_numpy(), np.bool_)
    deleted = changes.deleted
    live = np.append(False, ~deleted[:-1])[: len(deleted)]
    live = np.where(changes.first, np.isin(changes.keys, old.keys[current]), live)
    changes, live = changes.filter(~deleted | live), live[~deleted | live]
    replaced = np.flatnonzero(current & np.isin(old.keys, changes.keys))
    ends = dict(zip(changes.keys[changes.first], changes.times[changes.first], strict=True))
    closed = old.rows.take(pa.array(replaced))
    closed = set_column(closed, VALID_TO, [ends[key] for key in old.keys[replaced]])
    new = make_versions(changes, live, schema)
    rows = pa.concat_tables([closed.select(schema.names), new])
    return MergedRows(rows, np.concatenate([old.keys[replaced], changes.keys]), replaced)


def make_versions(changes: KeyedRows, live: NDArray[np.bool_], schema: pa.Schema) -> pa.Table:
    """The versions that changes make; ``live`` says of each whether its row was there before."""
    deleted, times = changes.deleted, changes.times
    last = np.append(changes.first[1:], True)[: len(times)]
    ends = np.where(deleted, times, np.append(times[1:], 0)[: len(times)])
    open_ = pa.array(last & ~deleted)
    said = changes.rows.column(OPERATION) if OPERATION in changes.rows.column_names else None
    operations = pa.array(
        np.where(deleted, "DELETE", np.where(live, "UPDATE", "INSERT")).astype(str)
    )
    if said is not None:
        operations = pc.if_else(pa.array(deleted), operations, pc.coalesce(said, operations))
    rows = take_fields(changes.rows, schema)
    rows = set_column(rows, VALID_FROM, times)
    rows = set_column(rows, VALID_TO, pc.if_else(open_, pa.scalar(None, pa.int64()), ends))
    rows = set_column(rows, OPERATION, operations)
    return rows.select(schema.names)


def merge_marks(changes: KeyedRows, old: KeyedRows, schema: pa.Schema) -> MergedRows:
    """One row for each key: the newest values that are known of it, with the mark of the deletion
    that has come after them. What nobody knows the values of is nothing."""
    starts = np.flatnonzero(changes.first)
    if not len(starts):
        return MergedRows(take_fields(changes.rows, schema), changes.keys, np.empty(0, np.int64))
    keys, count = changes.keys[starts], len(changes.keys)
    indexes = np.arange(count)
    deleted = changes.deleted
    known = ~read_flags(changes.rows, KEY_ONLY)
    last = np.maximum.reduceat(indexes, starts)
    last_live = np.maximum.reduceat(np.where(deleted, NONE, indexes), starts)
    last_known = np.maximum.reduceat(np.where(known, indexes, NONE), starts)
    before = np.full(int(keys.max()) + 1, NONE)
    before[old.keys] = np.arange(len(old.keys))  # the newest one counts
    old_indexes = before[keys]
    marks = to_numbers(old.rows.column(DELETED_AT))
    old_marks = np.where(old_indexes == NONE, NONE, np.append(marks, NONE)[old_indexes])
    first_mark = np.where(last_live == NONE, starts, last_live + 1)
    times = np.append(changes.times, 0)[first_mark]
    times = np.where((last_live == NONE) & (old_marks != NONE), old_marks, times)
    values = np.where(
        last_known != NONE, last_known, np.where(old_indexes == NONE, NONE, count + old_indexes)
    )
    kept = values != NONE
    both = [take_fields(changes.rows, schema), old.rows.select(schema.names)]
    rows = pa.concat_tables(both).take(pa.array(values[kept]))
    gone = pa.array(deleted[last][kept])
    marked = pc.if_else(gone, pa.array(times[kept]), pa.scalar(None, pa.int64()))
    rows = set_column(rows, DELETED_AT, marked).select(schema.names)
    replaced = np.flatnonzero(np.isin(old.keys, keys[kept]))
    return MergedRows(rows, keys[kept], replaced)


def take_fields(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of a copy; those that they do not have are NULL."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def set_column(rows: pa.Table, name: str, values: object) -> pa.Table:
    """Rows with other values in a column; numbers are microseconds."""
    index, field = rows.schema.get_field_index(name), rows.schema.field(name)
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    if field.type == UTC_MICROS:
        array = array.cast(pa.int64())
    return rows.set_column(index, field, array.cast(field.type))


def read_flags(rows: pa.Table, name: str) -> NDArray[np.bool_]:
    """A column of flags; none is set where there is no such column."""
    if name not in rows.column_names:
        return np.zeros(rows.num_rows, np.bool_)
    return np.asarray(rows.column(name).to_numpy(), np.bool_)


def to_numbers(stamps: pa.ChunkedArray) -> Numbers:
    """Timestamps as microseconds; ``NONE`` for NULL."""
    return np.asarray(stamps.cast(UTC_MICROS).cast(pa.int64()).fill_null(NONE).to_numpy())
