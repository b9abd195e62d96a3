"""Literals in storage form."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Compiler, Handler
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.parsed import PLUS_FUNCTION
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values import forms
from emulator.values.sqlite_text import quote_text
from emulator.values.types import BOOL, BYTES, FLOAT64, INT64, JSON, STRING

WRITTEN = (exp.Literal, exp.HexString, exp.ByteString, exp.Boolean, exp.Null)
"""What is written as it is, without the name of a type."""


def number_of_item(node: exp.Expr, clause: str, count: int) -> int | None:
    """Which of ``count`` items a literal names in ORDER BY or GROUP BY, from zero.

    None for what is no literal. Raises INVALID_ARGUMENT for a literal that names none.
    """
    inner, sign = without_sign(node)
    if not isinstance(inner, WRITTEN):
        return None
    text = str(inner.this)
    digits = isinstance(inner, exp.HexString) or (not inner.is_string and text.isdigit())
    if not digits:
        raise errors.invalid_argument(f"Cannot {clause} literal values")
    number = sign * int(text, 16 if isinstance(inner, exp.HexString) else 10)
    if not 1 <= number <= count:
        raise errors.invalid_argument(
            f"{clause} column number {number} is out of range: there are {count} columns"
        )
    return number - 1


def without_sign(node: exp.Expr) -> tuple[exp.Expr, int]:
    """What stands behind signs and in parentheses, and its sign: 1 or -1."""
    inner, sign = node.unnest(), 1
    while True:
        if isinstance(inner, exp.Neg):
            inner, sign = inner.this.unnest(), -sign
        elif isinstance(inner, exp.Anonymous) and inner.name == PLUS_FUNCTION:
            inner = inner.expressions[0].unnest()
        else:
            return inner, sign


def number_or_text(compiler: Compiler, node: exp.Literal, scope: Scope, context: Context) -> Typed:
    """A string, an integer or a float."""
    text = str(node.this)
    if node.is_string:
        return Typed(quote_text(text), STRING, literal=text)
    if text.isdigit():
        if int(text) > INT64_MAX:
            raise errors.invalid_argument(f"Invalid integer literal: {text}")
        return Typed(text.lstrip("0") or "0", INT64, literal=text)
    value = float(text)
    return Typed("9e999" if value == float("inf") else repr(value), FLOAT64, literal=text)


def hexadecimal(compiler: Compiler, node: exp.HexString, scope: Scope, context: Context) -> Typed:
    """0xFF."""
    number = int(str(node.this), 16)
    if number > INT64_MAX:
        raise errors.invalid_argument(f"Invalid integer literal: 0x{node.this}")
    return Typed(str(number), INT64, literal=str(number))


def octets(compiler: Compiler, node: exp.ByteString, scope: Scope, context: Context) -> Typed:
    """b'...': each character of the tree is a byte."""
    text = str(node.this)
    return Typed(f"x'{text.encode('latin-1').hex()}'", BYTES, literal=text)


def null(compiler: Compiler, node: exp.Null, scope: Scope, context: Context) -> Typed:
    """NULL."""
    return Typed("NULL", None, may_be_null=True)


def boolean_literal(compiler: Compiler, node: exp.Boolean, scope: Scope, context: Context) -> Typed:
    """TRUE, FALSE."""
    return Typed("1" if node.this else "0", BOOL)


def json_literal(compiler: Compiler, node: exp.ParseJSON, scope: Scope, context: Context) -> Typed:
    """JSON '...'"""
    try:
        return Typed(quote_text(forms.json_form(str(node.this.this), exact=True)), JSON)
    except ValueError as error:
        raise errors.invalid_argument(f"Invalid JSON literal: {error}") from error


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Literal: number_or_text,
    exp.HexString: hexadecimal,
    exp.ByteString: octets,
    exp.Null: null,
    exp.Boolean: boolean_literal,
    exp.ParseJSON: json_literal,
}
