"""Which columns of its table an expression names."""

from __future__ import annotations

from spanner_schema.model.schema import Dialect, Table
from spanner_schema.syntax.tokens import TokenKind, tokenize


def find_referenced_columns(
    expression: str, table: Table, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[str, ...]:
    """The columns of the table that the expression names, each once, in order."""
    columns: dict[str, None] = {}
    for token in tokenize(expression, dialect):
        if token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            column = table.column(token.value)
            if column is not None:
                columns[column.name] = None
    return tuple(columns)
