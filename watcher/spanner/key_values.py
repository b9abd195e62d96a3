"""When two primary keys are the same one: their values as Spanner compares them.

Spanner: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; NULL is the least value, then NaN. One
value has several texts in JSON: ``1`` and ``1.0``, a timestamp with zeros at its end and without.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.spanner.json_values import decode_value
from watcher.spanner.keys import Key
from watcher.spanner.results.timestamp_columns import SECONDS_LENGTH
from watcher.spanner.timestamps import to_datetime, to_micros

Part = tuple[Any, ...]
"""A value of a key: ``(0,)`` for NULL, ``(1,)`` for NaN, else ``(2, value)``."""
Parts = tuple[Part, ...]

NULL: Part = (0,)
NAN: Part = (1,)
NANO_DIGITS = 9
NANOS = 1_000_000_000


def identify_key(values: Sequence[Any], types: Sequence[Type]) -> Parts:
    """A key in the JSON of Spanner's API, in the order of its columns: equal for keys that Spanner
    takes for the same."""
    pairs = zip(values, types, strict=True)
    return tuple(normalize(decode_value(value, type_), type_) for value, type_ in pairs)


def write_key(parts: Parts, types: Sequence[Type]) -> Key:
    """A key in the JSON of Spanner's API: what ``identify_key`` reads."""
    return tuple(write_part(part, type_) for part, type_ in zip(parts, types, strict=True))


def write_part(part: Part, type_: Type) -> object:
    """A value of a key in the JSON of Spanner's API."""
    if part in (NULL, NAN):
        return None if part == NULL else "NaN"
    value = part[1]
    match type_.code:
        case TypeCode.TIMESTAMP:
            return write_nanos(value)
        case TypeCode.BYTES:
            return b64encode(value).decode()
        case TypeCode.FLOAT32 | TypeCode.FLOAT64:
            return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
        case TypeCode.NUMERIC | TypeCode.PG_NUMERIC:
            return f"{value:f}"
    return value if isinstance(value, bool) else str(value)


def write_nanos(nanos: int) -> str:
    """Nanoseconds since 1970 as RFC 3339 text, with nine digits."""
    seconds, rest = divmod(nanos, NANOS)
    return f"{to_datetime(seconds * 1_000_000).isoformat()[:SECONDS_LENGTH]}.{rest:09d}Z"


def identify_column(column: pa.Array) -> pa.Array:
    """A column of a key in which values that Spanner takes for the same are the same bits, as
    Arrow's grouping wants them. TIMESTAMPs that are text have one form already: captures see to
    it."""
    if pa.types.is_floating(column.type):
        zero, nan = pa.scalar(0.0, column.type), pa.scalar(math.nan, column.type)
        return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
    return column


def merge_zeros(value: Any) -> Any:
    """A cell of a key: -0.0 is 0.0, any other value is itself."""
    return value + 0.0 if isinstance(value, float) else value


def normalize(value: Any, type_: Type) -> Part:
    """A value of a key, as Arrow or a change has it."""
    if value is None:
        return NULL
    if isinstance(value, float | Decimal) and math.isnan(value):
        return NAN
    match type_.code:
        case TypeCode.TIMESTAMP:
            return (2, read_nanos(value))
        case TypeCode.FLOAT32:
            return (2, float(np.float32(value)))
        case TypeCode.UUID:
            return (2, value.lower())
    return (2, value.isoformat() if isinstance(value, date) else value)


def read_nanos(value: datetime | str) -> int:
    """A time, or RFC 3339 text, as nanoseconds since 1970."""
    if isinstance(value, datetime):
        return to_micros(value) * 1000
    fraction = value[SECONDS_LENGTH:].strip(".Z").ljust(NANO_DIGITS, "0")
    seconds = to_micros(datetime.fromisoformat(f"{value[:SECONDS_LENGTH]}+00:00")) // 1_000_000
    return seconds * NANOS + int(fraction)
