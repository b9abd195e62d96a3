"""The order in which statements create tables, so that each one finds what it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ddl.model.schema import ForeignKey, Table
from ddl.model.steps import AddForeignKey


def order_tables(tables: Sequence[Table]) -> tuple[list[Table], list[AddForeignKey]]:
    """Tables in their order, and the foreign keys that are added behind them.

    A foreign key to a later table (of a circle, or added by ALTER TABLE) waits for it. Parents are
    always there first.
    """
    ordered: list[Table] = []
    late: list[AddForeignKey] = []
    seen: set[str] = set()
    for table in tables:
        seen.add(table.name.casefold())
        waiting = [key for key in table.foreign_keys if key.referenced_table.casefold() not in seen]
        late += [AddForeignKey(table.name, key) for key in waiting]
        ordered.append(without_keys(table, waiting))
    return ordered, late


def without_keys(table: Table, keys: Sequence[ForeignKey]) -> Table:
    """A table without some of its foreign keys."""
    kept = tuple(key for key in table.foreign_keys if key not in keys)
    return replace(table, foreign_keys=kept) if keys else table
