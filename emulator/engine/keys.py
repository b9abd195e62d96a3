"""Key sets as SQLite conditions, in key order, with NULL as the smallest value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddl.schema import Index, KeyPart, Table
from emulator.engine.refusals import wrong_key_size
from emulator.engine.requests import KeyRange, KeySet, Stored
from emulator.storage.sqlite import quote


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition and the values for its question marks."""

    sql: str
    values: tuple[Stored, ...] = ()


EVERYTHING = Clause("TRUE")


def key_parts(table: Table, index: Index | None) -> tuple[KeyPart, ...]:
    """The key of a table, or of an index: its columns and then those of the table's key."""
    if index is None:
        return table.primary_key
    named = {part.column.casefold() for part in index.parts}
    rest = (part for part in table.primary_key if part.column.casefold() not in named)
    return (*index.parts, *rest)


def clauses(parts: Sequence[KeyPart], keys: KeySet, full_keys: int) -> list[Clause]:
    """One condition for each key and range; ``full_keys`` is the number of parts of a key."""
    if keys.all:
        return [EVERYTHING]
    points = [point(parts, key, full_keys) for key in dict.fromkeys(keys.keys)]
    return points + [between(parts, r) for r in keys.ranges]


def point(parts: Sequence[KeyPart], key: tuple[Stored, ...], full_keys: int) -> Clause:
    """Rows with one key."""
    if len(key) != full_keys:
        raise wrong_key_size(full_keys, len(key))
    return Clause(equal(parts, len(key)), key)


def equal(parts: Sequence[KeyPart], count: int) -> str:
    """The first parts have given values; NULL equals NULL."""
    return " AND ".join(f"{quote(p.column)} IS ?" for p in parts[:count]) or "TRUE"


def between(parts: Sequence[KeyPart], key_range: KeyRange) -> Clause:
    """Rows between two prefixes. What both have in common is looked up by equality."""
    start, end = key_range.start, key_range.end
    for prefix in (start, end):
        if len(prefix) > len(parts):
            raise wrong_key_size(len(parts), len(prefix))
    common = 0
    while common < min(len(start), len(end)) and start[common] == end[common]:
        common += 1
    rest = parts[common:]
    return conjunction(
        Clause(equal(parts, common), start[:common]),
        enclosing(rest, start[common:], end[common:]),
        bound(rest, start[common:], key_range.start_closed, upwards=True),
        bound(rest, end[common:], key_range.end_closed, upwards=False),
    )


def enclosing(
    parts: Sequence[KeyPart], start: tuple[Stored, ...], end: tuple[Stored, ...]
) -> Clause:
    """A plain range of the first column that contains all rows, so that an index can be used."""
    low, high = (end, start) if parts and parts[0].descending else (start, end)
    if not low or low[0] is None:
        return EVERYTHING
    name = quote(parts[0].column)
    if not high or high[0] is None:
        return Clause(f"{name} >= ?", low[:1])
    return Clause(f"{name} BETWEEN ? AND ?", (low[0], high[0]))


def conjunction(*items: Clause) -> Clause:
    """All conditions at once."""
    sql = " AND ".join(f"({item.sql})" for item in items if item.sql != "TRUE") or "TRUE"
    return Clause(sql, tuple(value for item in items for value in item.values))


def bound(
    parts: Sequence[KeyPart], prefix: tuple[Stored, ...], closed: bool, *, upwards: bool
) -> Clause:
    """Rows on one side of a prefix, in key order: lexicographic, spelt out."""
    if not prefix:
        return EVERYTHING if closed else Clause("FALSE")
    alternatives: list[Clause] = []
    for depth, value in enumerate(prefix):
        beyond = compare(parts[depth], value, upwards)
        before = Clause(equal(parts, depth), prefix[:depth])
        alternatives.append(conjunction(before, beyond))
    if closed:
        alternatives.append(Clause(equal(parts, len(prefix)), prefix))
    return Clause(
        " OR ".join(f"({a.sql})" for a in alternatives),
        tuple(value for a in alternatives for value in a.values),
    )


def compare(part: KeyPart, value: Stored, upwards: bool) -> Clause:
    """Strictly beyond a value in the order of this part; NULL is below everything."""
    name = quote(part.column)
    if upwards != part.descending:
        return Clause(f"{name} IS NOT NULL") if value is None else Clause(f"{name} > ?", (value,))
    return Clause("FALSE") if value is None else Clause(f"({name} < ? OR {name} IS NULL)", (value,))
