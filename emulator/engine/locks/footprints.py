"""What reads, statements and changed rows lock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from emulator.engine.keys import KeyColumn, key_parts
from emulator.engine.locks.conditions import COMPARED, TableConditions
from emulator.engine.locks.ranges import (
    Among,
    Between,
    Condition,
    Footprint,
    Image,
    InsertedRows,
    Key,
    RowChange,
    RowRange,
    point_range,
)
from emulator.storage.layout import filter_columns
from emulator.storage.sqlite import current_table
from emulator.values.requests import KeyRange, KeySet, Stored
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Index, Schema, Table

Conditions = tuple[tuple[str, Condition], ...]


def statement_ranges(
    schema: Schema, conditions: Iterable[TableConditions], params: Mapping[str, Stored]
) -> set[RowRange]:
    """What a statement may read."""
    values = {name.casefold(): value for name, value in params.items()}
    return {
        range_of(schema.table(each.table), each.table, each.bind(values)) for each in conditions
    }


def range_of(table: Table | None, name: str, conditions: Conditions) -> RowRange:
    """The range of some conditions; one row when they give its primary key."""
    if table is None:
        return RowRange(name, conditions)
    known = dict(conditions)
    key: list[Stored] = []
    for part in table.primary_key:
        condition = known.get(part.column.casefold())
        if not isinstance(condition, Among) or len(condition.values) != 1:
            return RowRange(name, conditions)
        key += condition.values
    return RowRange(name, conditions, point=tuple(key))


def key_set_ranges(table: Table, index: Index | None, keys: KeySet) -> set[RowRange]:
    """What a read by key locks: its keys, and its ranges up to the column where bounds differ."""
    name = table.name.casefold()
    if keys.all:
        return {RowRange(name)}
    parts = key_parts(table, index)
    ranges = {RowRange(name, key_conditions(table, parts, each)) for each in keys.ranges}
    for key in keys.keys:
        equal = tuple(
            (p.column.casefold(), Among(frozenset((v,)))) for p, v in zip(parts, key, strict=False)
        )
        ranges.add(range_of(table, name, equal))
    return ranges


def key_conditions(
    table: Table, parts: Sequence[KeyColumn], keys: KeyRange
) -> tuple[tuple[str, Condition], ...]:
    """Conditions that every row between two keys fits."""
    conditions: list[tuple[str, Condition]] = []
    for place, part in enumerate(parts):
        column = part.column.casefold()
        low = keys.start[place] if place < len(keys.start) else None
        high = keys.end[place] if place < len(keys.end) else None
        given = place < len(keys.start) and place < len(keys.end)
        if given and low == high:
            conditions.append((column, Among(frozenset((low,)))))
            continue
        typed = table.column(part.column)
        if typed is not None and typed.type.code in COMPARED:
            ordered = (high, low) if part.descending else (low, high)
            conditions.append((column, Between(*ordered, nulls=True)))
        break
    return tuple(conditions)


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the constraints of a table look at when a row is new or changed; all in lower case.

    ``unique`` are the columns of unique indexes, each with those that must not be NULL.
    ``referenced`` are the columns to which foreign keys of other tables refer. ``parent`` is the
    table in which the rows are interleaved, and its key. ``references`` are foreign keys: the
    other table, its columns, and those of this table.
    """

    unique: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    referenced: tuple[tuple[str, ...], ...]
    parent: tuple[str, tuple[str, ...]] | None
    references: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]

    def __bool__(self) -> bool:
        return bool(self.unique or self.referenced or self.parent or self.references)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads the rows of a table that a lock must know, by their numbers in SQLite.

    The first ``key_size`` of the columns are the primary key.
    """

    table: str
    columns: tuple[str, ...]
    key_size: int
    sql: str
    constraints: Constraints

    def images(self, connection: apsw.Connection, rows: Iterable[int]) -> dict[int, Image]:
        """The rows that are there, by number."""
        found = self._read(connection, rows)
        return {number: dict(zip(self.columns, row, strict=True)) for number, *row in found}

    def inserted(self, connection: apsw.Connection, rows: Iterable[int]) -> InsertedRows:
        """Rows that are all new."""
        end = self.key_size + 1
        read = self._read(connection, rows).fetchall()
        return InsertedRows(self.columns, {row[1:end]: row[1:] for row in read})

    def key(self, image: Image) -> Key:
        """The primary key of a row."""
        return tuple(image[column] for column in self.columns[: self.key_size])

    def _read(self, connection: apsw.Connection, rows: Iterable[int]) -> apsw.Cursor:
        return connection.execute(self.sql, (json.dumps(list(rows)),))


def row_reader(schema: Schema, table: Table) -> RowReader:
    """Reads the key, and every column that an index or a foreign key names."""
    named: dict[str, None] = dict.fromkeys(part.column.casefold() for part in table.primary_key)
    key_size = len(named)
    for index in schema.indexes_of(table.name):
        named |= dict.fromkeys(part.column.casefold() for part in index.parts)
        named |= dict.fromkeys(column.casefold() for column in filter_columns(index))
    for foreign_key in table.foreign_keys:
        named |= dict.fromkeys(column.casefold() for column in foreign_key.columns)
    named |= dict.fromkeys(column for each in referenced_columns(schema, table) for column in each)
    listed = "".join(f", {quote_name(column)}" for column in named)
    sql = (
        f"SELECT _rowid_{listed} FROM {current_table(table.name)} "
        "WHERE _rowid_ IN (SELECT value FROM json_each(?))"
    )
    constraints = constraints_of(schema, table)
    return RowReader(table.name.casefold(), tuple(named), key_size, sql, constraints)


def constraints_of(schema: Schema, table: Table) -> Constraints:
    """What the constraints of a table look at."""
    parent = schema.table(table.interleave.parent) if table.interleave is not None else None
    return Constraints(
        tuple(
            (
                tuple(part.column.casefold() for part in index.parts),
                tuple(column.casefold() for column in filter_columns(index)),
            )
            for index in schema.indexes_of(table.name)
            if index.unique
        ),
        tuple(referenced_columns(schema, table)),
        None
        if parent is None
        else (parent.name.casefold(), tuple(p.column.casefold() for p in parent.primary_key)),
        tuple(
            (
                key.referenced_table.casefold(),
                tuple(column.casefold() for column in key.referenced_columns),
                tuple(column.casefold() for column in key.columns),
            )
            for key in table.foreign_keys
            if key.enforced
        ),
    )


def referenced_columns(schema: Schema, table: Table) -> list[tuple[str, ...]]:
    """The columns, in lower case, to which the foreign keys of other tables refer."""
    return [
        tuple(column.casefold() for column in key.referenced_columns)
        for other in schema.tables
        for key in other.foreign_keys
        if key.enforced and key.referenced_table.casefold() == table.name.casefold()
    ]


def changed_rows(
    reader: RowReader,
    before: apsw.Connection,
    now: apsw.Connection,
    rows: Mapping[int, bool],
) -> list[RowChange]:
    """The changes of some rows: ``before`` shows what is committed, ``now`` what will be.

    ``rows`` says of each number whether a row had it before. A committed row whose number an
    earlier statement has freed is locked since then. Rows of both that have the same number by
    chance are told apart by their keys.
    """
    earlier = [number for number, was_there in rows.items() if was_there]
    old = reader.images(before, earlier) if earlier else {}
    new = reader.images(now, rows)
    changes: list[RowChange] = []
    for number in rows:
        gone, there = old.get(number), new.get(number)
        if gone is not None and there is not None and reader.key(gone) == reader.key(there):
            changes.append(RowChange(reader.key(there), gone, there))
            continue
        if gone is not None:
            changes.append(RowChange(reader.key(gone), gone, None))
        if there is not None:
            changes.append(RowChange(reader.key(there), None, there))
    return changes


def constraint_ranges(reader: RowReader, changes: Iterable[RowChange]) -> set[RowRange]:
    """What the constraints of a table have read to let new and changed rows in."""
    if not reader.constraints:
        return set()
    ranges: set[RowRange] = set()
    for change in changes:
        if change.new is not None:
            ranges.update(
                row_constraints(reader.table, reader.constraints, change.old or {}, change.new)
            )
    return ranges


def row_constraints(
    table: str, constraints: Constraints, old: Image, new: Image
) -> Iterator[RowRange]:
    """The rows that must not be there (unique indexes), and those that must (parents)."""
    unique = (
        columns
        for columns, filtered in constraints.unique
        if all(new[column] is not None for column in filtered)
    )
    for columns in (*unique, *constraints.referenced):
        if any(old.get(column) != new[column] or not old for column in columns):
            yield equal_range(table, columns, columns, new)
    if constraints.parent is not None and not old:
        parent, keys = constraints.parent
        yield point_range(parent, keys, tuple(new[c] for c in keys), existence=True)
    for other, referenced, columns in constraints.references:
        changed = not old or any(old.get(column) != new[column] for column in columns)
        if changed and all(new[column] is not None for column in columns):
            yield equal_range(other, referenced, columns, new)


def equal_range(
    table: str, columns: Sequence[str], sources: Sequence[str], image: Image
) -> RowRange:
    """Whether there is a row with the values that another row has in some columns."""
    conditions = tuple(
        (column, Among(frozenset((image[source],))))
        for column, source in zip(columns, sources, strict=True)
    )
    return RowRange(table, conditions, existence=True)


def rows_footprint(
    before: apsw.Connection,
    now: apsw.Connection,
    touched: Iterable[tuple[RowReader, Mapping[int, bool]]],
) -> Footprint:
    """The locks of touched rows, and of what their constraints have read.

    ``before``, ``now`` and the numbers of rows are as in ``changed_rows``.
    """
    footprint = Footprint()
    for reader, rows in touched:
        if not reader.constraints and not any(rows.values()):
            footprint.inserted[reader.table] = reader.inserted(now, rows)
            continue
        made = changed_rows(reader, before, now, rows)
        footprint.changes[reader.table] = made
        footprint.ranges |= constraint_ranges(reader, made)
    return footprint
