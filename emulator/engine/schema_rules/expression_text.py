"""Expressions of a schema as text: which functions they call, and how deep they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp

from emulator.errors import failed_precondition, invalid_argument
from emulator.sql.schema_texts import read_schema_expression
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.tokens import Token, TokenKind

DEPTH_MAX = 20
CALLED_VOLATILE = frozenset(
    {"GENERATE_UUID", "NEW_UUID", "RAND", "GET_NEXT_SEQUENCE_VALUE", "NOW", "NEXTVAL"}
)
CURRENT = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_DATETIME", "CURRENT_TIME"})
"""Functions that are called without parentheses, too."""
NOT_COUNTED = (exp.Identifier, exp.Paren, exp.DataType, exp.Var, exp.If)
"""Parts of a syntax tree that are no expressions of their own."""


def list_words(tokens: list[Token]) -> Iterator[str]:
    """The words of an expression that are not quoted, in capitals."""
    return (token.text.upper() for token in tokens if token.kind is TokenKind.WORD)


def refuse_volatile_functions(tokens: list[Token], use: str) -> None:
    """The same row gives the same value each time."""
    for token, following in pairwise(tokens):
        name = token.text.upper()
        called = name in CALLED_VOLATILE and following.text == "("
        if token.kind is TokenKind.WORD and (called or name in CURRENT):
            raise failed_precondition(
                "Expression is non-deterministic due to the use of non-deterministic function"
                f" `{name}`. Expression of {use} must yield the same value for the same dependent"
                " column values. Non-deterministic functions inside the expressions are not"
                " allowed."
            )


def refuse_depth(text: str, schema: Schema) -> None:
    """Expressions are nested so deep and no deeper."""
    depth = measure_depth(read_schema_expression(text, schema))
    if depth > DEPTH_MAX:
        raise invalid_argument(
            f"Expression depth of {depth} exceeds the maximum allowed depth of {DEPTH_MAX}."
        )


def measure_depth(node: exp.Expr) -> int:
    """How many expressions stand in each other; a chain of equal operators counts as one."""
    inner = max((measure_depth(child) for child in node.iter_expressions()), default=0)
    chained = isinstance(node, exp.Connector | exp.DPipe) and isinstance(node.parent, type(node))
    return inner + (0 if chained or isinstance(node, NOT_COUNTED) else 1)
