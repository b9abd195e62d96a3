"""The net effect of a transaction on each row, from the changes that the triggers noted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import apsw

from ddl.schema import Schema, Table
from emulator.engine.change_streams.values import Json
from emulator.storage.change_streams import key_columns


class ModType(Enum):
    """The kind of a change, as ``mod_type`` names it."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row's change. ``written`` are the places of the columns that were set.

    ``old`` and ``new`` are images: values in the order of the table's columns.
    """

    table: Table
    kind: ModType
    written: frozenset[int]
    old: tuple[Json, ...]
    new: tuple[Json, ...]
    key: tuple[Json, ...]


def net_changes(noted: Iterable[tuple[apsw.SQLiteValue, ...]], schema: Schema) -> list[RowChange]:
    """One change a row at most, in the order in which the rows were first touched.

    A row that was inserted and deleted again leaves nothing.
    """
    changes: dict[tuple[str, str], RowChange] = {}
    for name, kind, written, old, new in noted:
        table = schema.table(str(name))
        if table is None:
            continue
        mod = read_noted_change(table, ModType(kind), written, old, new)
        place = (table.name, json.dumps(mod.key))
        before = changes.get(place)
        after = mod if before is None else combine(before, mod)
        if after is None:
            del changes[place]
        else:
            changes[place] = after
    return list(changes.values())


def read_noted_change(
    table: Table,
    kind: ModType,
    written: apsw.SQLiteValue,
    old: apsw.SQLiteValue,
    new: apsw.SQLiteValue,
) -> RowChange:
    """A change as a trigger noted it."""
    places = all_places(table)
    if kind is ModType.UPDATE:
        places = frozenset(json.loads(str(written)))
    before, after = read_image(old), read_image(new)
    names = [column.name for column in table.columns]
    row = after or before
    key = tuple(row[names.index(column.name)] for column in key_columns(table))
    return RowChange(table, kind, places, before, after, key)


def read_image(text: apsw.SQLiteValue) -> tuple[Json, ...]:
    """The values of a row; none for a row that is not there."""
    return () if text is None else tuple(json.loads(str(text)))


def all_places(table: Table) -> frozenset[int]:
    """The places of all columns."""
    return frozenset(range(len(table.columns)))


def combine(first: RowChange, second: RowChange) -> RowChange | None:
    """Two changes of the same row as one; None when they cancel out."""
    kinds = (first.kind, second.kind)
    if kinds == (ModType.INSERT, ModType.DELETE):
        return None
    if first.kind is ModType.INSERT:
        return RowChange(first.table, ModType.INSERT, first.written, (), second.new, first.key)
    if second.kind is ModType.DELETE:
        return RowChange(first.table, ModType.DELETE, second.written, first.old, (), first.key)
    written = first.written | second.written
    return RowChange(first.table, ModType.UPDATE, written, first.old, second.new, first.key)
