"""Reads by key, from a table or through an index, as SQLite text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from emulator.engine.keys import EVERYTHING, Clause, KeyColumn, key_clauses, key_parts, range_clause
from emulator.engine.refusals import (
    column_not_in_index,
    unknown_column,
    unknown_index,
    unknown_table,
)
from emulator.sql.statements import TableSource
from emulator.sql.token_calls import refuse_token_lists
from emulator.storage.layout import filter_columns
from emulator.values.requests import KeyRange, KeySet, ResultColumn, Stored
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Index, Schema, Table

CONDITIONS_AT_ONCE = 200

Row = tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read whose names are resolved. ``conditions`` are alternatives; no row fits two points."""

    table: Table
    index: Index | None
    columns: tuple[ResultColumn, ...]
    order: tuple[KeyColumn, ...]
    conditions: tuple[Clause, ...]
    limit: int
    within: Clause = EVERYTHING

    def statements(self, source: TableSource) -> list[tuple[str, Row]]:
        """One statement; more only when there are very many keys: those must be merged."""
        groups = [
            self.conditions[start : start + CONDITIONS_AT_ONCE]
            for start in range(0, len(self.conditions), CONDITIONS_AT_ONCE)
        ]
        return [self.statement(source, group) for group in groups]

    def statement(self, source: TableSource, conditions: Sequence[Clause]) -> tuple[str, Row]:
        """Rows that fit one of the conditions, in key order."""
        either = " OR ".join(f"({c.sql})" for c in conditions) or "FALSE"
        values = tuple(value for c in conditions for value in c.values)
        values += self.within.values
        wheres = [f"({either})", f"({self.within.sql})"]
        if self.index is not None:
            wheres += [f"{quote_name(name)} IS NOT NULL" for name in filter_columns(self.index)]
        order = ", ".join(part.order for part in self.order)
        names = [*(c.name for c in self.columns), *(part.column for part in self.order)]
        selected = ", ".join(map(quote_name, names))
        sql = (
            f"SELECT {selected} FROM {source(self.table, self.index, self.table.name)} "
            f"WHERE {' AND '.join(wheres)}{f' ORDER BY {order}' if order else ''}"
        )
        return (f"{sql} LIMIT {self.limit}" if self.limit else sql), values

    @property
    def single(self) -> bool:
        """Whether one statement reads all its keys."""
        return len(self.conditions) <= CONDITIONS_AT_ONCE


def plan_read(
    schema: Schema,
    table_name: str,
    index_name: str | None,
    columns: Sequence[str],
    keys: KeySet,
    limit: int,
    within: KeyRange | None = None,
) -> ReadPlan:
    """Resolves the names of a read; ``within`` is its partition. Raises for unknown names."""
    table = schema.find_table(table_name)
    if table is None:
        raise unknown_table(table_name)
    index = None
    if index_name:
        index = schema.index(index_name)
        if index is None or index.table.casefold() != table.name.casefold():
            raise unknown_index(index_name, table.name)
    order = key_parts(table, index, schema.dialect)
    return ReadPlan(
        table,
        index,
        tuple(result_column(table, index, name) for name in columns),
        order,
        tuple(key_clauses(order, keys)),
        limit,
        EVERYTHING if within is None else range_clause(order, within),
    )


def result_column(table: Table, index: Index | None, name: str) -> ResultColumn:
    """A column of the result, which the index must keep if the read goes through one."""
    column = table.column(name)
    if column is None:
        raise unknown_column(table.name, name)
    if index is not None:
        kept = {p.column.casefold() for p in key_parts(table, index)}
        kept |= {c.casefold() for c in index.storing}
        if column.name.casefold() not in kept:
            raise column_not_in_index(index.name, column.name)
    refuse_token_lists([column.type])
    return ResultColumn(column.name, column.type)


def merge_rows(
    plan: ReadPlan, fetch: Callable[[str, Row], Iterator[Row]], source: TableSource
) -> list[Row]:
    """The rows of several statements: each once, in key order, up to the limit."""
    width = len(plan.columns)
    rows_by_key: dict[Row, Row] = {}
    for sql, values in plan.statements(source):
        for row in fetch(sql, values):
            rows_by_key[row[width:]] = row[:width]
    keys = list(rows_by_key)
    for place, part in reversed(list(enumerate(plan.order))):
        keys.sort(key=lambda key: part.sortable(key[place]), reverse=part.descending)
    rows = [rows_by_key[key] for key in keys]
    return rows[: plan.limit] if plan.limit else rows
