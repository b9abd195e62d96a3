"""The indexes that Spanner keeps for foreign keys, where no primary key serves as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.catalog.constraint_names import name_managed_index
from spanner_schema.model.schema import ForeignKey, Index, KeyPart, Schema, Table


def all_managed_indexes(schema: Schema) -> Iterator[tuple[Table, Index]]:
    """Each with its table, once: foreign keys of the same columns share them."""
    seen: set[str] = set()
    for table in schema.tables:
        for key in table.foreign_keys:
            for owner, index in managed_indexes(schema, table, key):
                if index.name not in seen:
                    seen.add(index.name)
                    yield owner, index


def managed_indexes(schema: Schema, table: Table, key: ForeignKey) -> Iterator[tuple[Table, Index]]:
    """Those of a foreign key: a unique one of the referenced columns and, where the key is
    enforced, one of its own."""
    target = schema.table(key.referenced_table)
    if target is None:
        return
    unique = find_unique_index(target, key)
    if unique is not None:
        yield target, unique
    own = [key.columns[position] for position in order_columns(target, key.referenced_columns)]
    first = fold(part.column for part in table.primary_key)[: len(own)]
    if key.enforced and (first != fold(own) or has_nullable(table, own)):
        yield table, make_index(table, own, unique=False)


def find_unique_index(target: Table, key: ForeignKey) -> Index | None:
    """The index of what a foreign key refers to, None where that is the primary key."""
    names = [key.referenced_columns[n] for n in order_columns(target, key.referenced_columns)]
    primary = fold(part.column for part in target.primary_key)
    if sorted(primary) == sorted(fold(names)):
        return None
    return make_index(target, names, unique=True)


def make_index(table: Table, names: Sequence[str], *, unique: bool) -> Index:
    """An index that leaves out NULL, in the primary key's directions."""
    downwards = {part.column.casefold() for part in table.primary_key if part.descending}
    parts = tuple(KeyPart(name, descending=name.casefold() in downwards) for name in names)
    nullable = has_nullable(table, names)
    name = name_managed_index(table.name, names, nullable=nullable, unique=unique)
    return Index(name, table.name, parts, unique=unique, null_filtered=nullable)


def order_columns(table: Table, names: Sequence[str]) -> list[int]:
    """The positions of the names in the order of the primary key, then of the table's columns."""
    folded = fold(names)
    order: list[int] = []
    for part in table.primary_key:
        if part.column.casefold() not in folded:
            break
        order.append(folded.index(part.column.casefold()))
    for column in table.columns:
        if column.name.casefold() in folded:
            position = folded.index(column.name.casefold())
            if position not in order:
                order.append(position)
    return order


def has_nullable(table: Table, names: Sequence[str]) -> bool:
    """Whether one of the columns may be NULL."""
    columns = (table.column(name) for name in names)
    return any(column is not None and not column.not_null for column in columns)


def fold(names: Iterator[str] | Sequence[str]) -> list[str]:
    """Names as they are compared."""
    return [name.casefold() for name in names]
