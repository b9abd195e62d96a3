"""Which columns of its table an expression names."""

from __future__ import annotations

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Column, Dialect, Table
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


def find_sources(
    column: Column, table: Table, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[str, ...]:
    """The columns that a generated column is computed from, also through other generated ones."""
    sources: dict[str, None] = {}
    waiting = [column]
    while waiting:
        expression = waiting.pop().generated or ""
        for name in find_referenced_columns(expression, table, dialect):
            found = table.column(name)
            if found is not None and name not in sources:
                sources[name] = None
                waiting.append(found)
    return tuple(sources)


DEFAULTS = ("COALESCE", "IFNULL")


def find_nulls(
    expression: str, table: Table, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[str, ...]:
    """The columns that an expression names and that may be NULL, but for those inside of COALESCE
    or IFNULL, and BOOLs, which are conditions."""
    found: dict[str, None] = {}
    around: list[str] = []
    before = ""
    for token in tokenize(expression, dialect):
        if token.text == "(":
            around.append(before)
        elif token.text == ")" and around:
            around.pop()
        elif token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            column = table.column(token.value)
            may_be_null = column is not None and not column.not_null
            if column is not None and may_be_null and column.type.code is not TypeCode.BOOL:
                guarded = any(name in DEFAULTS for name in around)
                found |= {} if guarded else {column.name: None}
        before = token.text.upper()
    return tuple(found)
