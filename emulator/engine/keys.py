"""Key sets as SQLite conditions, in key order.

In GoogleSQL NULL is least, then NaN. In the PostgreSQL dialect NULL is greatest unless the index
says otherwise, and NaN stands before it, as its stored form does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emulator.values.requests import KeyRange, KeySet, Stored
from emulator.values.sqlite_text import quote_name
from emulator.values.types import FLOATS
from spanner_schema.model.schema import Dialect, Index, KeyPart, Table

NAN = "NaN"
"""The storage form of NaN: a text, which SQLite sorts behind every number."""

OTHERS = 2
"""The rank of all that is neither NULL nor NaN."""

GREATEST = 3
"""The rank of NULL where it is greater than every value."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition and the values for its question marks."""

    sql: str
    values: tuple[Stored, ...] = ()


EVERYTHING = Clause("TRUE")


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key; only one of floats can hold NaN.

    ``floating`` says that NaN is less than every number, ``nulls_greatest`` that NULL is greater.
    """

    column: str
    descending: bool
    floating: bool
    nulls_greatest: bool = False

    @property
    def order(self) -> str:
        """The ORDER BY terms that sort by it."""
        name, down = quote_name(self.column), " DESC" if self.descending else ""
        if self.nulls_greatest:
            down += " NULLS FIRST" if self.descending else " NULLS LAST"
        return f"({name} <> '{NAN}'){down}, {name}{down}" if self.floating else f"{name}{down}"

    def sortable(self, value: Stored) -> tuple[int, Stored]:
        """A value of this column as Python sorts it."""
        if value is None:
            return (GREATEST if self.nulls_greatest else 0, None)
        return (1 if self.floating and value == NAN else OTHERS, value)


def key_parts(
    table: Table, index: Index | None, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[KeyColumn, ...]:
    """The key of a table, or of an index: its columns and then those of the table's key.

    The ``dialect`` says where NULL and NaN stand in it.
    """
    parts = table.primary_key
    if index is not None:
        named = {part.column.casefold() for part in index.parts}
        rest = (part for part in table.primary_key if part.column.casefold() not in named)
        parts = (*index.parts, *rest)
    if dialect is Dialect.POSTGRESQL:
        return tuple(
            KeyColumn(part.column, part.descending, False, has_nulls_last(table, part))
            for part in parts
        )
    return tuple(
        KeyColumn(part.column, part.descending, is_floating(table, part.column)) for part in parts
    )


def has_nulls_last(table: Table, part: KeyPart) -> bool:
    """Whether a column of a key of the PostgreSQL dialect has NULLs, behind all values."""
    column = table.column(part.column)
    return column is not None and not column.not_null and not part.other_nulls


def is_floating(table: Table, name: str) -> bool:
    """Whether a column holds FLOAT32 or FLOAT64."""
    column = table.column(name)
    return column is not None and column.type.code in FLOATS


def key_clauses(parts: Sequence[KeyColumn], keys: KeySet) -> list[Clause]:
    """One condition for each key and range."""
    if keys.all:
        return [EVERYTHING]
    points = [Clause(equality_sql(parts, len(key)), key) for key in dict.fromkeys(keys.keys)]
    return points + [range_clause(parts, r) for r in keys.ranges]


def equality_sql(parts: Sequence[KeyColumn], count: int) -> str:
    """The first parts have given values; NULL equals NULL."""
    return " AND ".join(f"{quote_name(p.column)} IS ?" for p in parts[:count]) or "TRUE"


def range_clause(parts: Sequence[KeyColumn], key_range: KeyRange) -> Clause:
    """Rows between two prefixes. What both have in common is looked up by equality."""
    start, end = key_range.start, key_range.end
    common = 0
    while common < min(len(start), len(end)) and start[common] == end[common]:
        common += 1
    rest = parts[common:]
    return join_clauses(
        Clause(equality_sql(parts, common), start[:common]),
        outer_range(rest, start[common:], end[common:]),
        bound_clause(rest, start[common:], key_range.start_closed, upwards=True),
        bound_clause(rest, end[common:], key_range.end_closed, upwards=False),
    )


def outer_range(
    parts: Sequence[KeyColumn], start: tuple[Stored, ...], end: tuple[Stored, ...]
) -> Clause:
    """A plain range of the first column that contains all rows, so that an index can be used."""
    low, high = (end, start) if parts and parts[0].descending else (start, end)
    if not low or parts[0].sortable(low[0])[0] != OTHERS:
        return EVERYTHING
    name = quote_name(parts[0].column)
    if not high or parts[0].sortable(high[0])[0] != OTHERS:
        return EVERYTHING if parts[0].nulls_greatest else Clause(f"{name} >= ?", low[:1])
    return Clause(f"{name} BETWEEN ? AND ?", (low[0], high[0]))


def join_clauses(*items: Clause) -> Clause:
    """All conditions at once."""
    sql = " AND ".join(f"({item.sql})" for item in items if item.sql != "TRUE") or "TRUE"
    return Clause(sql, tuple(value for item in items for value in item.values))


def bound_clause(
    parts: Sequence[KeyColumn], prefix: tuple[Stored, ...], closed: bool, *, upwards: bool
) -> Clause:
    """Rows on one side of a prefix, in key order: lexicographic, spelt out."""
    if not prefix:
        return EVERYTHING if closed else Clause("FALSE")
    alternatives: list[Clause] = []
    for depth, value in enumerate(prefix):
        beyond = compare(parts[depth], value, upwards)
        before = Clause(equality_sql(parts, depth), prefix[:depth])
        alternatives.append(join_clauses(before, beyond))
    if closed:
        alternatives.append(Clause(equality_sql(parts, len(prefix)), prefix))
    return Clause(
        " OR ".join(f"({a.sql})" for a in alternatives),
        tuple(value for a in alternatives for value in a.values),
    )


def compare(part: KeyColumn, value: Stored, upwards: bool) -> Clause:
    """Strictly beyond a value in the order of this part."""
    name = quote_name(part.column)
    if part.nulls_greatest:
        above = upwards != part.descending
        if value is None:
            return Clause("FALSE" if above else f"{name} IS NOT NULL")
        sign = f"({name} > ? OR {name} IS NULL)" if above else f"{name} < ?"
        return Clause(sign, (value,))
    nan = f"{name} = '{NAN}'"
    if upwards != part.descending:
        if value is None:
            return Clause(f"{name} IS NOT NULL")
        if not part.floating:
            return Clause(f"{name} > ?", (value,))
        if value == NAN:
            return Clause(f"{name} <> '{NAN}'")
        return Clause(f"({name} > ? AND NOT {nan})", (value,))
    if value is None:
        return Clause("FALSE")
    if not part.floating:
        return Clause(f"({name} < ? OR {name} IS NULL)", (value,))
    if value == NAN:
        return Clause(f"{name} IS NULL")
    return Clause(f"({name} < ? OR {name} IS NULL OR {nan})", (value,))
