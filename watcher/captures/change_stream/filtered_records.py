"""``where`` of a table that is copied, in the records of a change stream: a row that does not
satisfy it is none of the copy's rows, so that its change is a delete there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from spanner_schema.model.column_types import Type
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.row_filters import select_rows
from watcher.model.change import Operation
from watcher.spanner.cell_columns import build_column
from watcher.spanner.json_values import decode_value
from watcher.spanner.results.columns import convert_type
from watcher.tables.bound_predicates import is_comparable
from watcher.tables.predicates import RowFilter


def filter_record(record: DataRecord, row_filter: RowFilter) -> Iterator[DataRecord]:
    """A completed record in parts: changes of rows that the filter keeps, and, in place of the
    others, deletes. A record that lacks a column of the filter is passed on as a part of its rows,
    which no copy takes."""
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
