"""Primary keys for people and for JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ddl.model.schema import Type, TypeCode
from watcher.replica.key_order import KeyOrder
from watcher.replica.verification.row_hashes import format_units
from watcher.spanner.key_values import NAN, NANOS, NULL, Part, Parts
from watcher.spanner.results.timestamp_columns import SECONDS_LENGTH
from watcher.spanner.timestamps import to_datetime


def show_key(order: KeyOrder, parts: Parts) -> dict[str, Any]:
    """A key for people and for JSON."""
    return {
        each.name: show_part(part, each.type)
        for each, part in zip(order.columns, parts, strict=True)
    }


def show_part(part: Part, type_: Type) -> Any:
    """A value of a key: BYTES in hexadecimal, TIMESTAMP as RFC 3339, NUMERIC as text."""
    if part in (NULL, NAN):
        return None if part == NULL else "NaN"
    value = part[1]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format_units(value)
    if type_.code is TypeCode.TIMESTAMP:
        seconds, nanos = divmod(value, NANOS)
        return f"{to_datetime(seconds * 1_000_000).isoformat()[:SECONDS_LENGTH]}.{nanos:09d}Z"
    return value if isinstance(value, bool | int | str | float) else str(value)
