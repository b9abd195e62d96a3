"""One statement as the rules see it: the schema before it, the step, and the schema after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spanner_schema.model.schema import Column, Index, Schema, Table
from spanner_schema.model.steps import Step


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """``before`` and ``after`` share what the step leaves alone."""

    before: Schema
    step: Step
    after: Schema

    def tables(self) -> Iterator[tuple[Table | None, Table]]:
        """The tables that are new or changed, each with what it was before."""
        same = set(map(id, self.before.tables))
        for table in self.after.tables:
            if id(table) not in same:
                yield self.before.table(table.name), table

    def indexes(self) -> Iterator[Index]:
        """The indexes that are new or changed."""
        same = set(map(id, self.before.indexes))
        return (index for index in self.after.indexes if id(index) not in same)

    def altered_columns(self) -> Iterator[tuple[Table, Column, Table, Column]]:
        """The columns that were there before and are not the same now: table and column before,
        table and column after."""
        for old_table, table in self.tables():
            for column in table.columns:
                old = old_table.column(column.name) if old_table is not None else None
                if old_table is not None and old is not None and old != column:
                    yield old_table, old, table, column

    def dropped_columns(self) -> Iterator[tuple[Table, Column]]:
        """The columns that are gone from tables that stay."""
        for old_table, table in self.tables():
            for column in old_table.columns if old_table is not None else ():
                if old_table is not None and table.column(column.name) is None:
                    yield old_table, column
