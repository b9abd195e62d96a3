"""FORMAT, NORMALIZE and NORMALIZE_AND_CASEFOLD."""

from __future__ import annotations

import json

from sqlglot import exp

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.coerce import require
from emulator.sql.compiler import Call, Compiler
from emulator.sql.conditional_calls import compile_arguments
from emulator.sql.functions.format_patterns import check_types
from emulator.sql.json_calls import describe_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import INT64, STRING

FORMS = {"NFC", "NFKC", "NFD", "NFKD"}


def format_(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """FORMAT(pattern, value, ...): each value goes with its type."""
    pattern, *items = compile_arguments(compiler, node, scope, context, 1, 10_000)
    listed = [require(pattern, STRING, context, "The pattern of FORMAT").sql]
    types = [item.type or (STRING if item.parameter else INT64) for item in items]
    described = [describe_type(type_) for type_ in types]
    if pattern.literal is not None:
        check_literal_pattern(pattern.literal, described)
    for item, type_, description in zip(items, types, described, strict=True):
        listed.append(quote_text(json.dumps(description)))
        listed.append(require(item, type_, context, "A value of FORMAT").sql)
    return Typed(f"fn_format({', '.join(listed)})", STRING)


def check_literal_pattern(pattern: str, types: list[object]) -> None:
    """INVALID_ARGUMENT for a literal pattern that the arguments do not fit: no row is needed."""
    try:
        check_types(pattern, types)
    except SpannerError as error:
        raise errors.invalid_argument(error.message) from error


def normalize(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """NORMALIZE(text [, form])."""
    name = node.name.upper()
    if not 1 <= len(node.expressions) <= 2:
        raise errors.invalid_argument(f"Number of arguments does not match for function {name}")
    item = compiler.compile(node.expressions[0], scope, context)
    item = require(item, STRING, context, f"The argument of {name}")
    mode = node.expressions[1] if len(node.expressions) > 1 else exp.column("NFC")
    form = mode.name.upper()
    if form not in FORMS or not isinstance(mode, exp.Column | exp.Var):
        raise errors.invalid_argument("Argument is not a valid NORMALIZE mode")
    folded = 1 if name.endswith("CASEFOLD") else 0
    return Typed(f"fn_normalize({item.sql}, '{form}', {folded})", STRING)


CALLS: dict[str, Call] = {
    "FORMAT": format_,
    "NORMALIZE": normalize,
    "NORMALIZE_AND_CASEFOLD": normalize,
}
