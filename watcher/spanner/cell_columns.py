"""Cells -> Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.change import Value
from watcher.spanner.results.timestamp_columns import normalize_timestamps


def build_column(values: Sequence[Value], type_: Type, target: pa.DataType) -> pa.Array:
    """Cells as an Arrow column."""
    if type_.code is TypeCode.TIMESTAMP and pa.types.is_string(target):
        return normalize_timestamps(pa.array(values, pa.string()))
    element = type_.element or type_
    if element.code is TypeCode.TIMESTAMP and not pa.types.is_string(
        getattr(target, "value_type", target)
    ):
        return pa.array([parse_timestamps(value) for value in values], target)
    return pa.array(values, target)


def parse_timestamps(value: Value) -> datetime | list[object] | None:
    """RFC 3339 text as a time, truncated to microseconds; of a list, its elements."""
    if isinstance(value, list | tuple):
        return [parse_timestamps(item) for item in value]
    return None if value is None else datetime.fromisoformat(str(value))
