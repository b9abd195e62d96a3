"""What is delivered of the records of a change stream: the columns that were chosen, with their
masks, and of a table that is copied the rows that its ``where`` keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa

from spanner_schema.model.column_types import Type
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.masked_values import mask_cell
from watcher.captures.row_filters import select_rows
from watcher.model.change import Operation
from watcher.model.errors import ConfigurationError
from watcher.spanner.cell_columns import build_column
from watcher.spanner.json_values import decode_value
from watcher.spanner.results.columns import convert_type
from watcher.tables.bound_predicates import is_comparable
from watcher.tables.column_choice import ColumnChoice
from watcher.tables.masks import Mask, fits
from watcher.tables.predicates import RowFilter

Values: TypeAlias = dict[str, Any]
"""The object of a row in the JSON of Spanner's API, in which BYTES are base64."""


def change_values(record: DataRecord, change: Callable[[Values], Values]) -> DataRecord:
    """A record whose values, new and old, were changed."""

    def rewrite(text: str | None) -> str | None:
        return None if text is None else json.dumps(change(json.loads(text)))

    mods = tuple(replace(mod, new=rewrite(mod.new), old=rewrite(mod.old)) for mod in record.mods)
    return replace(record, mods=mods)


def choose_columns(record: DataRecord, choice: ColumnChoice) -> DataRecord:
    """A record of the chosen columns, and of its key."""
    columns, key = record.shape.columns, record.shape.primary_key
    kept = [choice.includes(name) or name in key for name, _ in columns]
    if all(kept):
        return record
    narrow = replace(
        record.shape,
        columns=tuple(compress(columns, kept)),
        positions=tuple(compress(record.shape.positions, kept)),
    )
    names = frozenset(name for name, _ in narrow.columns)
    return change_values(
        replace(record, shape=narrow),
        lambda values: {name: value for name, value in values.items() if name in names},
    )


def mask_record(record: DataRecord, masks: Sequence[Mask]) -> DataRecord:
    """A record whose values, new and old, are masked. Raises ConfigurationError for a column that
    had another type, or was of the key, when it changed: its values must not be delivered."""
    by_name = {mask.column.casefold(): mask for mask in masks}
    masked = {
        name: (by_name[name.casefold()], type_.code)
        for name, type_ in record.shape.columns
        if name.casefold() in by_name
    }
    if not masked:
        return record
    types = dict(record.shape.columns)
    for name, (mask, _) in masked.items():
        if name in record.shape.primary_key or not fits(mask.kind, types[name]):
            raise ConfigurationError(
                f"column {record.shape.table}.{name} cannot be masked by '{mask.kind}' as it was"
                " when its row changed: use exclude_columns for it, or for a column of the key"
                " exclude the table"
            )

    def mask_values(values: Values) -> Values:
        for name in values.keys() & masked.keys():
            mask, code = masked[name]
            values[name] = mask_cell(mask, code, values[name])
        return values

    return change_values(record, mask_values)


def filter_record(record: DataRecord, row_filter: RowFilter) -> Iterator[DataRecord]:
    """A completed record in parts: changes of rows that the filter keeps, and deletes in place of
    the others, which are none of the copy's rows. A record that lacks a column of the filter is
    passed on as a part of its rows, which no copy takes."""
    if record.operation is Operation.DELETE:
        yield record
        return
    values = [{**json.loads(mod.key), **json.loads(mod.new or "{}")} for mod in record.mods]
    if not all(name in row for row in values for name, _ in row_filter.columns):
        mods = tuple(replace(mod, captured=None) for mod in record.mods)
        yield replace(record, mods=mods, captured=record.captured.part_form)
        return
    columns = {
        name: build_filtered([row[name] for row in values], type_)
        for name, type_ in row_filter.columns
    }
    kept = select_rows(row_filter, columns).to_pylist()
    for keeps, pairs in groupby(zip(kept, record.mods, strict=True), key=itemgetter(0)):
        mods = tuple(mod for _, mod in pairs)
        yield replace(record, mods=mods) if keeps else delete_rows(record, mods)


def build_filtered(values: list[Any], type_: Type) -> pa.Array:
    """Values in the JSON of Spanner's API as a column that a filter looks at. Of types that cannot
    be compared it asks for NULL alone."""
    if not is_comparable(type_):
        return pa.array([None if value is None else True for value in values], pa.bool_())
    return build_column(
        [decode_value(value, type_) for value in values], type_, convert_type(type_)
    )


def delete_rows(record: DataRecord, mods: tuple[StreamMod, ...]) -> DataRecord:
    """A record that says of some rows of another one that they are deleted."""
    gone = tuple(StreamMod(mod.key, None, None) for mod in mods)
    captured = record.captured.whole_row_form
    return replace(record, operation=Operation.DELETE, mods=gone, captured=captured)
