"""Which columns of its table an expression speaks of."""

from __future__ import annotations

from ddl.schema import Table
from ddl.tokens import Kind, tokenize


def columns_in(expression: str, table: Table) -> tuple[str, ...]:
    """The columns of the table that the expression names, each once, in order."""
    found: dict[str, None] = {}
    for token in tokenize(expression):
        if token.kind in {Kind.WORD, Kind.QUOTED}:
            column = table.column(token.value)
            if column is not None:
                found[column.name] = None
    return tuple(found)
