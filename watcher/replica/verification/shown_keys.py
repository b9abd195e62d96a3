"""Primary keys for people and for JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from spanner_schema.model.column_types import Type, TypeCode
from watcher.replica.keys.order import KeyOrder
from watcher.replica.verification.row_hashes import format_units
from watcher.spanner.key_values import NAN, NULL, Part, Parts, write_nanos


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
        return write_nanos(value)
    return value if isinstance(value, bool | int | str | float) else str(value)
