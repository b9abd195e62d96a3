"""Mutations of one commit that contradict each other where a foreign key is ON DELETE CASCADE.

Spanner refuses a commit that writes a referenced row and deletes it, and one that writes a
reference to a row that it deletes, whatever their order. DML statements are not judged by this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import apsw

from emulator.engine.keys import Clause, key_clauses, key_parts
from emulator.engine.mutations import exists, key_of, resolve_key_timestamps
from emulator.engine.refusals import broken_foreign_key, referenced_row_deleted
from emulator.engine.write_plans import Moment, Row, WritePlan
from emulator.values.requests import KeyDelete, MutationKind, RowWrite
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import ForeignKey, OnDelete, Schema, Table


@dataclass(frozen=True, slots=True)
class CascadingKey:
    """A foreign key with ON DELETE CASCADE, and the two tables that it joins."""

    table: Table
    referenced: Table
    key: ForeignKey


def cascading_keys(schema: Schema) -> tuple[CascadingKey, ...]:
    """Every foreign key that deletes rows."""
    return tuple(
        CascadingKey(table, referenced, key)
        for table in schema.tables
        for key in table.foreign_keys
        if key.on_delete is OnDelete.CASCADE
        and (referenced := schema.table(key.referenced_table)) is not None
    )


@dataclass(slots=True)
class CascadeRules:
    """Judges the mutations of one commit, in their order, before the first is written."""

    connection: apsw.Connection
    keys: Sequence[CascadingKey]
    moment: Moment
    written: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    deleted: dict[str, list[Clause]] = field(default_factory=lambda: defaultdict(list))
    references: list[tuple[CascadingKey, Row]] = field(default_factory=list)

    def note_write(self, write: RowWrite, plan: WritePlan) -> None:
        """Rows are written. Raises when one of them is referenced and deleted."""
        name = plan.table.name.casefold()
        columns = {c.name.casefold() for c in plan.columns}
        self.references += referring_rows(self.keys, write, plan)
        for each in self.keys:
            written = columns & {c.casefold() for c in each.key.referenced_columns}
            if each.referenced.name.casefold() != name or not written or not plan.identified:
                continue
            rows = [key_of(plan, row) for row in write.rows]
            replaces = write.kind is MutationKind.REPLACE
            if any(
                (replaces and exists(self.connection, plan, row))
                or self._is_deleted(plan.table, row)
                for row in rows
            ):
                raise referenced_row_deleted(plan.table.name, each.key.referenced_columns)
            self.written[name] += rows

    def note_delete(self, delete: KeyDelete, table: Table) -> None:
        """Rows are deleted. Raises when one of them is referenced and was written before."""
        name = table.name.casefold()
        keys = resolve_key_timestamps(table, delete.keys, self.moment)
        clauses = key_clauses(key_parts(table, None), keys)
        for each in self.keys:
            if each.referenced.name.casefold() != name:
                continue
            if any(self._fits(table, row, clauses) for row in self.written[name]):
                raise referenced_row_deleted(table.name, each.key.referenced_columns)
        self.deleted[name] += clauses

    def finish(self) -> None:
        """All mutations are noted. Raises when a row that is written refers to a deleted one."""
        for each, row in self.references:
            if self._is_deleted(each.referenced, row):
                raise broken_foreign_key(
                    each.key, each.table.name, removed=False, number=foreign_key_number(each)
                )

    def _is_deleted(self, table: Table, row: Row) -> bool:
        return self._fits(table, row, self.deleted[table.name.casefold()])

    def _fits(self, table: Table, row: Row, clauses: Iterable[Clause]) -> bool:
        """Whether a primary key is among those of a delete; SQLite compares, as for a delete."""
        columns = ", ".join(f"? AS {quote_name(part.column)}" for part in table.primary_key)
        return any(
            self.connection.execute(
                f"SELECT 1 FROM (SELECT {columns}) WHERE {clause.sql}", (*row, *clause.values)
            ).fetchone()
            for clause in clauses
        )


def foreign_key_number(each: CascadingKey) -> int:
    """The place of a foreign key in its table."""
    return each.table.foreign_keys.index(each.key)


def referring_rows(
    keys: Sequence[CascadingKey], write: RowWrite, plan: WritePlan
) -> Iterator[tuple[CascadingKey, Row]]:
    """The primary keys to which written rows refer, where a foreign key names the primary key."""
    places = {c.name.casefold(): place for place, c in enumerate(plan.columns)}
    for each in keys:
        if each.table.name.casefold() != plan.table.name.casefold():
            continue
        named = {
            other.casefold(): places.get(own.casefold(), -1)
            for own, other in zip(each.key.columns, each.key.referenced_columns, strict=True)
        }
        parts = [named.get(p.column.casefold(), -1) for p in each.referenced.primary_key]
        if -1 in parts or len(named) != len(parts):
            continue
        for row in write.rows:
            if all(place < len(row) for place in parts):
                yield each, tuple(row[place] for place in parts)
