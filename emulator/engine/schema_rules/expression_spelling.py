"""The expressions of a schema of the PostgreSQL dialect, told as Spanner tells them."""

from __future__ import annotations

from dataclasses import replace

from emulator.sql.compile import spell_expression
from spanner_schema.model.schema import Column, Dialect, Schema, Table


def spell_expressions(before: Schema, after: Schema) -> Schema:
    """The schema after a step, with the expressions of new and changed tables spelled."""
    if after.dialect is not Dialect.POSTGRESQL:
        return after
    tables = tuple(
        table if before.table(table.name) is table else spell_table(table, after)
        for table in after.tables
    )
    return replace(after, tables=tables)


def spell_table(table: Table, schema: Schema) -> Table:
    """The expressions of one table."""
    return replace(
        table,
        columns=tuple(spell_column(column, table, schema) for column in table.columns),
        checks=tuple(
            replace(check, expression=spell_expression(check.expression, table, schema))
            for check in table.checks
        ),
    )


def spell_column(column: Column, table: Table, schema: Schema) -> Column:
    """DEFAULT, ON UPDATE and the expression of a generated column."""

    def spell(text: str | None) -> str | None:
        return None if text is None else spell_expression(text, table, schema, column.type)

    if column.default is None and column.on_update is None and column.generated is None:
        return column
    return replace(
        column,
        default=spell(column.default),
        on_update=spell(column.on_update),
        generated=spell(column.generated),
    )
