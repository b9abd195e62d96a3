"""The order in which statements create tables, so that each one finds what it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanner_schema.model.schema import Table


def order_tables(tables: Sequence[Table]) -> list[Table]:
    """Tables in their order, but each behind those that its foreign keys name.

    In a circle of foreign keys they keep their order, as in Google's emulator: no order would do.
    """
    names = needed_by(tables)
    reached = {name: reach(name, names) for name in names} if has_later(tables, names) else {}
    waiting = {table.name.casefold(): table for table in tables}
    ordered: list[Table] = []
    while waiting:
        name = next(each for each in waiting if not is_blocked(each, names, waiting, reached))
        ordered.append(waiting.pop(name))
    return ordered


def needed_by(tables: Sequence[Table]) -> dict[str, list[str]]:
    """The tables that each table names: its parent, and those of its foreign keys."""
    return {
        table.name.casefold(): [
            *([table.interleave.parent.casefold()] if table.interleave else []),
            *(key.referenced_table.casefold() for key in table.foreign_keys),
        ]
        for table in tables
    }


def has_later(tables: Sequence[Table], names: Mapping[str, Sequence[str]]) -> bool:
    """Whether a table names one that comes behind it."""
    numbers = {table.name.casefold(): number for number, table in enumerate(tables)}
    return any(numbers.get(each, -1) > numbers[name] for name in names for each in names[name])


def reach(name: str, names: Mapping[str, Sequence[str]]) -> set[str]:
    """All that a table names, and all that these name."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for each in names.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return found


def is_blocked(
    name: str,
    names: Mapping[str, Sequence[str]],
    waiting: Mapping[str, Table],
    reached: Mapping[str, set[str]],
) -> bool:
    """Whether a table has to wait for another one that does not wait for it."""
    return any(
        each != name and each in waiting and name not in reached.get(each, {name})
        for each in names[name]
    )
