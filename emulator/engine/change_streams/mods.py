"""The net effect of a transaction on each row, from the changes that the triggers noted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import apsw

from emulator.engine.change_streams.values import Json
from emulator.storage.change_streams import key_columns
from spanner_schema.model.schema import Schema, Table


class ModType(Enum):
    """The kind of a change, as ``mod_type`` names it."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row's change. ``written`` are the positions of the columns that were set.

    ``old`` and ``new`` are images: values in the order of the table's columns. Keys of one row are
    equal.
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
    shapes: dict[str, TableShape] = {}
    for name, kind, written, old, new in noted:
        shape = shapes.get(str(name))
        if shape is None:
            table = schema.table(str(name))
            if table is None:
                continue
            shape = shapes[str(name)] = TableShape.of(table)
        mod = read_noted_change(shape, ModType(kind), written, old, new)
        row = (shape.table.name, json.dumps(mod.key))
        before = changes.get(row)
        after = mod if before is None else combine(before, mod)
        if after is None:
            del changes[row]
        else:
            changes[row] = after
    return list(changes.values())


@dataclass(frozen=True, slots=True)
class TableShape:
    """Where the values of a row are in its image; worked out once for many changes."""

    table: Table
    keys: tuple[int, ...]
    everything: frozenset[int]

    @classmethod
    def of(cls, table: Table) -> TableShape:
        """The shape of a table."""
        names = [column.name for column in table.columns]
        keys = tuple(names.index(column.name) for column in key_columns(table))
        return cls(table, keys, frozenset(range(len(names))))


def read_noted_change(
    shape: TableShape,
    kind: ModType,
    written: apsw.SQLiteValue,
    old: apsw.SQLiteValue,
    new: apsw.SQLiteValue,
) -> RowChange:
    """A change as a trigger noted it."""
    positions = shape.everything
    if kind is ModType.UPDATE:
        positions = frozenset(json.loads(str(written)))
    before, after = read_image(old), read_image(new)
    row = after or before
    key = tuple(merge_zeros(row[position]) for position in shape.keys)
    return RowChange(shape.table, kind, positions, before, after, key)


def merge_zeros(value: Json) -> Json:
    """A value of a key: -0.0 is the same as 0.0."""
    return value + 0.0 if isinstance(value, float) else value


def read_image(text: apsw.SQLiteValue) -> tuple[Json, ...]:
    """The values of a row; none for a row that is not there."""
    return () if text is None else tuple(json.loads(str(text)))


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
