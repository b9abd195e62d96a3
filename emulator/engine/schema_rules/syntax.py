"""Syntax errors of statements in Spanner's words."""

from __future__ import annotations

from emulator.errors import SpannerError, invalid_argument
from spanner_schema.model.errors import DdlError, DdlSyntaxError
from spanner_schema.syntax.tokens import TokenKind

QUOTES = "'\""


def refuse_syntax(text: str, error: DdlError) -> SpannerError:
    """A syntax error in Spanner's words; blank lines before the statement count."""
    if not isinstance(error, DdlSyntaxError):
        return invalid_argument(f"Error parsing Spanner DDL statement: {text} : {error}")
    before = text[: len(text) - len(text.lstrip())]
    line = error.line + before.count("\n")
    column = error.column
    actual = error.actual
    if actual == TokenKind.END.value:
        actual, column = "'EOF'", max(column - 1, 1)
    if error.expected.startswith(("a ", "an ", "the name")):
        words = "identifier" if "name" in error.expected else error.expected
        words = f"Encountered {actual} while parsing: {words}"
    else:
        words = f"Expecting '{error.expected.strip(QUOTES)}' but found {actual}"
    return invalid_argument(
        f"Error parsing Spanner DDL statement: {text} : Syntax error on line {line}, column"
        f" {column}: {words}"
    )
