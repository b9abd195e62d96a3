"""Primary keys as values that compare as Spanner's do, from Spanner's JSON and from Arrow.

Spanner: NULL is the least value, then NaN, which is the greatest in the PostgreSQL dialect;
descending columns are the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

import pyarrow as pa

from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect, Table
from watcher.spanner.dialects import DIALECTS, SqlDialect
from watcher.spanner.key_values import NAN, Part, Parts, identify_key, normalize
from watcher.spanner.keys import Key
from watcher.tables.values import WatchedTable

GREATEST: Part = (3,)
"""NaN where it is above all numbers."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key."""

    name: str
    type: Type
    descending: bool = False
    not_null: bool = False


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

    @classmethod
    def of_table(cls, table: Table, dialect: Dialect) -> KeyOrder:
        """That of a table of a schema."""
        columns = {column.name.casefold(): column for column in table.columns}
        parts = ((columns[each.column.casefold()], each) for each in table.primary_key)
        key = (
            KeyColumn(column.name, column.type, part.descending, column.not_null)
            for column, part in parts
        )
        return cls(tuple(key), dialect)

    @classmethod
    def of_watched(cls, table: WatchedTable) -> KeyOrder:
        """That of a table that is watched."""
        key = (
            KeyColumn(name, table.column_type(name), name in table.descending)
            for name in table.primary_key
        )
        return cls(tuple(key), table.dialect)

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
