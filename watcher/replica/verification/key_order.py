"""Primary keys as values that compare as Spanner's do, from Spanner's JSON and from Arrow.

Spanner: NULL is the least value, then NaN, which is the greatest in the PostgreSQL dialect;
descending columns are the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering
from typing import Any

import pyarrow as pa

from ddl.model.schema import Dialect, Type, TypeCode
from watcher.replica.verification.row_hashes import format_units
from watcher.spanner.dialects import DIALECTS, SqlDialect
from watcher.spanner.key_values import (
    NAN,
    NANOS,
    NULL,
    Part,
    Parts,
    identify_key,
    normalize,
)
from watcher.spanner.keys import Key
from watcher.spanner.results.timestamp_columns import SECONDS_LENGTH
from watcher.spanner.timestamps import to_datetime

GREATEST: Part = (3,)
"""NaN where it is above all numbers."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key."""

    name: str
    type: Type
    descending: bool = False


@total_ordering
@dataclass(frozen=True, slots=True)
class Reversed:
    """A part of a descending column."""

    part: Part

    def __lt__(self, other: Reversed) -> bool:
        return other.part < self.part


SortKey = tuple[Part | Reversed, ...]


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The columns of a primary key, in order."""

    columns: tuple[KeyColumn, ...]
    dialect: Dialect = Dialect.GOOGLESQL

    @property
    def sql(self) -> SqlDialect:
        """How statements on the table are written."""
        return DIALECTS[self.dialect]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(each.name for each in self.columns)

    def read_wire(self, key: Key) -> Parts:
        """A key in the JSON of Spanner's API."""
        return identify_key(key, [each.type for each in self.columns])

    def read_batch(self, batch: pa.RecordBatch) -> list[Parts]:
        """The keys of rows."""
        columns = [
            [normalize(value, each.type) for value in batch.column(each.name).to_pylist()]
            for each in self.columns
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows

    def sort_key(self, parts: Parts) -> SortKey:
        """What a key is compared by."""
        if self.sql.nan_is_greatest:
            parts = tuple(GREATEST if part == NAN else part for part in parts)
        pairs = zip(self.columns, parts, strict=True)
        return tuple(Reversed(part) if each.descending else part for each, part in pairs)


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
