"""The rows of a window -> the newest change of each key, as a copy takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.poll import PollCapture
from watcher.model.change import Change, Operation, Shape
from watcher.replica.copies import (
    DELETED_COLUMN,
    STAMP_COLUMN,
    find_stamp,
    is_dropped,
    same_columns,
)
from watcher.replica.cuts.modes import LATEST, OPERATION, TRANSACTION, Mode
from watcher.replica.row_versions import KEY_ONLY
from watcher.spanner.cell_columns import build_column
from watcher.spanner.key_values import identify_column
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.results.sent_types import name_type

ROW, GROUP = "$row", "$key"
"""No column of Spanner has such a name."""


def copy_schema(capture: PollCapture, stamp: str = STAMP_COLUMN) -> pa.Schema:
    """The columns of a copy: the table's, and ``STAMP_COLUMN``, or how the copy calls it."""
    schema = capture.schema
    schema = schema.remove(schema.get_field_index(SHARD_ID_COLUMN))
    index = schema.get_field_index(COMMIT_TIMESTAMP_COLUMN)
    return schema.set(index, schema.field(index).with_name(stamp))


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """How the columns of a copy differ from those that it is to have: those that it lacks, those
    that it has beyond them, and those of another type or at another index."""

    missing: tuple[str, ...]
    gone: tuple[str, ...]
    other: tuple[str, ...]

    def explain(self) -> str:
        """For people."""
        parts = {"new": self.missing, "dropped": self.gone, "changed": self.other}
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)


def has_copy_columns(stored: pa.Schema, capture: PollCapture) -> bool:
    """Whether a copy has the columns that it is to have, whatever it calls ``STAMP_COLUMN``."""
    current = pa.schema([field for field in stored if not is_dropped(field)])
    return same_columns(current, copy_schema(capture, find_stamp(stored.names)))


def compare_columns(stored: pa.Schema, capture: PollCapture) -> ColumnChanges:
    """How the columns of a copy differ. One that was dropped and is there again differs, too: its
    old values are none of the new column."""
    wanted = copy_schema(capture, find_stamp(stored.names))
    missing = tuple(name for name in wanted.names if name not in stored.names)
    current = [field for field in stored if not is_dropped(field)]
    gone = tuple(field.name for field in current if field.name not in wanted.names)
    there = pa.schema([field for field in current if field.name not in gone])
    rest = pa.schema([field for field in wanted if field.name not in missing])
    if same_columns(there, rest):
        return ColumnChanges(missing, gone, ())
    pairs = zip_longest(there, rest)
    other = [new.name for old, new in pairs if old is None or not same_field(old, new)]
    return ColumnChanges(missing, gone, tuple(other))


def same_field(field: pa.Field, other: pa.Field) -> bool:
    """Whether two columns are the same, as in ``same_columns``."""
    return same_columns(pa.schema([field]), pa.schema([other]))


def arrange_rows(rows: TableRows, mode: Mode = LATEST) -> pa.Table:
    """The rows of a poll or of a snapshot, with ``DELETED_COLUMN``, and what else a copy of a mode
    needs to know of them."""
    batch = rows.batch.drop_columns([SHARD_ID_COLUMN])
    names = [STAMP_COLUMN if n == COMMIT_TIMESTAMP_COLUMN else n for n in batch.schema.names]
    table = pa.Table.from_batches([batch]).rename_columns(names)
    table = table.append_column(DELETED_COLUMN, find_removed(rows))
    if mode == LATEST or rows.outside is None:
        return table
    return table.append_column(KEY_ONLY, rows.outside)


def find_removed(rows: TableRows) -> pa.Array:
    """Which rows are not in a copy: they are softly deleted, or the table's filter leaves them
    out."""
    deleted = find_deleted(rows.batch, rows.table.deleted)
    return deleted if rows.outside is None else pc.or_(deleted, rows.outside)


def find_deleted(batch: pa.RecordBatch, column: str | None) -> pa.Array:
    """Which rows are softly deleted: a BOOL that is true, or a TIMESTAMP that is set."""
    if column is None:
        return pa.repeat(False, batch.num_rows)
    marks = batch.column(column)
    if pa.types.is_boolean(marks.type):
        return pc.fill_null(marks, False)
    return pc.is_valid(marks)


def arrange_changes(
    changes: Sequence[Change], capture: PollCapture, mode: Mode = LATEST
) -> pa.Table:
    """Changes of one table that fit its copy as rows, with ``DELETED_COLUMN``, and what else a copy
    of a mode needs to know of them."""
    schema = copy_schema(capture)
    types = dict(capture.table.columns)
    cells = [{**change.key, **(change.new_values or {})} for change in changes]
    columns = [
        build_column([row.get(name) for row in cells], type_, schema.field(name).type)
        for name, type_ in types.items()
    ]
    stamps = pa.array([change.commit_timestamp for change in changes], pa.int64())
    deleted = pa.array([change.operation is Operation.DELETE for change in changes], pa.bool_())
    fields = [*schema, pa.field(DELETED_COLUMN, pa.bool_())]
    arrays = [*columns, stamps.cast(TIMESTAMP), deleted]
    rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return rows if mode == LATEST else add_details(rows, changes)


def add_details(rows: pa.Table, changes: Sequence[Change]) -> pa.Table:
    """Rows with what their changes were, and by which transaction."""
    transactions = [each.origin.transaction_id if each.origin else None for each in changes]
    return (
        rows.append_column(KEY_ONLY, rows.column(DELETED_COLUMN))
        .append_column(OPERATION, pa.array([str(each.operation) for each in changes], pa.string()))
        .append_column(TRANSACTION, pa.array(transactions, pa.string()))
    )


def drop_old(tables: Sequence[pa.Table], end: int) -> pa.Table:
    """The rows of a window that a copy at a window's end does not have: it has all up to there."""
    rows = pa.concat_tables(tables)
    moment = pa.scalar(end, pa.int64()).cast(TIMESTAMP)
    return rows.filter(pc.greater(rows.column(STAMP_COLUMN), moment))


def find_lacking(change: Change, capture: PollCapture) -> frozenset[str] | None:
    """The columns of a table that a change does not have: the table got them afterwards, and the
    values that they have in such a row are announced by no change. None where a copy cannot take
    the change at all: its values have other types, or it does not have every value."""
    if change.operation is Operation.DELETE:
        return frozenset() if set(change.key) == set(capture.table.primary_key) else None
    if not change.captured.whole_row:
        return None
    return find_missing(describe_columns(change.shape), capture.table.columns)


@lru_cache(maxsize=256)
def describe_columns(shape: Shape) -> tuple[tuple[str, str], ...]:
    """The names and types of the columns of a change."""
    return tuple((name, name_type(type_)) for name, type_ in shape.columns)


@lru_cache(maxsize=256)
def find_missing(
    described: tuple[tuple[str, str], ...], columns: tuple[tuple[str, Type], ...]
) -> frozenset[str] | None:
    """The columns of a table that changes with these ones do not have; None where one has another
    type."""
    there, wanted = dict(described), {name: name_type(type_) for name, type_ in columns}
    if any(there.get(name, type_) != type_ for name, type_ in wanted.items()):
        return None
    return frozenset(wanted.keys() - there.keys())


def reduce_changes(tables: Sequence[pa.Table], key: Sequence[str]) -> pa.Table:
    """The newest row of each key, as Spanner compares keys. Of rows of one commit timestamp the
    last one counts: a change stream gives those of a transaction in their order."""
    table = pa.concat_tables(tables)
    key_names = [f"{GROUP}{index}" for index in range(len(key))]
    order = pc.sort_indices(
        table.append_column(ROW, pa.array(np.arange(table.num_rows))),
        [(STAMP_COLUMN, "ascending"), (ROW, "ascending")],
    )
    ordered = table.take(order)
    keys = [identify_column(ordered.column(name)) for name in key]
    rows = pa.table([*keys, np.arange(table.num_rows)], [*key_names, ROW])
    return ordered.take(rows.group_by(key_names).aggregate([(ROW, "max")]).column(f"{ROW}_max"))
