"""What a lock covers: ranges of rows that were read, and rows that were changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from emulator.engine.write_plans import PENDING_TEXT
from emulator.storage.sqlite import PENDING
from emulator.values.requests import Stored

Image = Mapping[str, Stored]
"""The values of a row in the columns that ranges may name, which are in lower case."""

Key = tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Among:
    """A column has one of these values; NULL equals NULL."""

    values: frozenset[Stored]

    def admits(self, value: Stored) -> bool:
        """Whether a row with this value may be in the range."""
        return value in self.values


@dataclass(frozen=True, slots=True)
class Between:
    """A column lies between two values, both included; None is no bound. All are of one type.

    ``nulls`` says whether rows with NULL are in the range, too.
    """

    low: Stored = None
    high: Stored = None
    nulls: bool = False

    def admits(self, value: Stored) -> bool:
        """Whether a row with this value may be in the range."""
        if value is None:
            return self.nulls
        above = self.low is None or is_ordered(self.low, value)
        return above and (self.high is None or is_ordered(value, self.high))


Condition = Among | Between


def is_ordered(low: Stored, high: Stored) -> bool:
    """Whether two values are in ascending order; those of different types may be."""
    if isinstance(low, str) and isinstance(high, str):
        return low <= high
    if isinstance(low, bytes) and isinstance(high, bytes):
        return low <= high
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low <= high
    return True


def is_pending(value: Stored) -> bool:
    """Whether a value is a commit timestamp that is not known yet: any range may hold it."""
    return value in (PENDING_TEXT, PENDING)


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of a table (in lower case) that fit every condition; without any it is all rows.

    ``existence`` says that only whether there is such a row was read, not what is in it. ``point``
    is the primary key when the range is the row with this key.
    """

    table: str
    conditions: tuple[tuple[str, Condition], ...] = ()
    existence: bool = False
    point: Key | None = None

    def holds(self, image: Image | None) -> bool:
        """Whether a row may be in the range; None is a row that is not there."""
        return image is not None and all(
            column not in image or is_pending(image[column]) or condition.admits(image[column])
            for column, condition in self.conditions
        )

    def is_changed_by(self, change: RowChange) -> bool:
        """Whether a reader of the range would see the change."""
        before, after = self.holds(change.old), self.holds(change.new)
        if not self.existence:
            return before or after
        return before != after or (after and self._may_move(change))

    def _may_move(self, change: RowChange) -> bool:
        """Whether a change that leaves a row in the range may still take it out at the commit."""
        new = change.new or {}
        return any(is_pending(new.get(column)) for column, _ in self.conditions)


class RowChange(NamedTuple):
    """A row that a transaction has changed: as others see it, and as it will be. None is no row."""

    key: Key
    old: Image | None
    new: Image | None


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """Many new rows of one table, in less than a change for each: their values in ``columns``, by
    primary key."""

    columns: tuple[str, ...]
    rows: Mapping[Key, Sequence[Stored]]

    def images(self) -> Iterator[Image]:
        """The rows as they will be."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows.values())

    def changes(self) -> list[RowChange]:
        """A change for each row."""
        pairs = zip(self.rows, self.images(), strict=True)
        return [RowChange(key, None, image) for key, image in pairs]


@dataclass(slots=True)
class Footprint:
    """The locks that one step of a transaction needs.

    ``ranges`` are shared, ``changes`` and ``inserted`` (by table, in lower case) are exclusive.
    """

    ranges: set[RowRange] = field(default_factory=set)
    changes: dict[str, list[RowChange]] = field(default_factory=dict)
    inserted: dict[str, InsertedRows] = field(default_factory=dict)

    def table_names(self) -> set[str]:
        """The tables in which it locks something."""
        return {each.table for each in self.ranges} | set(self.changes) | set(self.inserted)

    def changes_of(self, table: str) -> list[RowChange]:
        """The changed rows of a table, new ones among them."""
        inserted = self.inserted.get(table)
        return self.changes.get(table, []) + ([] if inserted is None else inserted.changes())

    def ranges_of(self, table: str) -> list[RowRange]:
        """The shared ranges of a table."""
        return [each for each in self.ranges if each.table == table]


def point_range(
    table: str, columns: Iterable[str], key: Key, *, existence: bool = False
) -> RowRange:
    """The row with a primary key."""
    conditions = tuple(
        (column, Among(frozenset((value,)))) for column, value in zip(columns, key, strict=True)
    )
    return RowRange(table, conditions, existence, None if existence else key)
