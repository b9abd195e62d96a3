"""Functions whose arguments share one type, and the conditional ones."""

from __future__ import annotations

import re

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require, unify
from emulator.sql.comparison import compare
from emulator.sql.compiler import Call, Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.types import FLOATS, INTERVAL, STRING, TIMESTAMP
from spanner_schema.model.column_types import TypeCode

DRAWN = re.compile(r"\b(?:fn_generate_uuid|fn_next_value\w*)\(")
"""Functions that must be called once only."""


def compile_arguments(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context, least: int, most: int
) -> list[Typed]:
    """The arguments; INVALID_ARGUMENT when there are too few or too many."""
    if not least <= len(node.expressions) <= most:
        raise errors.invalid_argument(
            f"Number of arguments does not match for function {node.name.upper()}"
        )
    return [compiler.compile(each, scope, context) for each in node.expressions]


def coalesce(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """COALESCE, IFNULL."""
    least, most = (2, 2) if node.name.upper() == "IFNULL" else (1, 10_000)
    items = compile_arguments(compiler, node, scope, context, least, most)
    unified, type_ = unify(items, context, f"function {node.name.upper()}")
    may_be_null = all(each.may_be_null for each in unified)
    if len(unified) == 1:
        return Typed(unified[0].sql, type_, may_be_null=may_be_null)
    listed = ", ".join(each.sql for each in unified)
    return Typed(f"COALESCE({listed})", type_, may_be_null=may_be_null)


def null_if(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """NULLIF(a, b)."""
    items = compile_arguments(compiler, node, scope, context, 2, 2)
    (left, right), type_ = unify(items, context, "function NULLIF")
    test = compare(left, "=", right, type_)
    return Typed(f"CASE WHEN {test} THEN NULL ELSE {left.sql} END", type_)


def greatest_or_least(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GREATEST, LEAST: NULL when any argument is."""
    name = node.name.upper()
    items = compile_arguments(compiler, node, scope, context, 1, 10_000)
    unified, type_ = unify(items, context, f"function {name}")
    if type_.code in {TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON, TypeCode.PROTO}:
        raise errors.invalid_argument(f"{name} is not defined for {name_of(type_)}")
    function = "max" if name == "GREATEST" else "min"
    if type_.code in FLOATS:
        function = f"fn_{name.lower()}_float64"
    if type_ == INTERVAL:
        function = f"fn_{name.lower()}_interval"
    if len(unified) == 1:
        return Typed(unified[0].sql, type_)
    return Typed(f"{function}({', '.join(each.sql for each in unified)})", type_)


def error_call(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ERROR(message): of whatever type its place asks for."""
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    item = require(item, STRING, context, "The argument of ERROR")
    return Typed(f"fn_error({item.sql})", None)


def pending_commit_timestamp(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """PENDING_COMMIT_TIMESTAMP()."""
    compile_arguments(compiler, node, scope, context, 0, 0)
    context.uses_commit = True
    return Typed(":commit_", TIMESTAMP)


CALLS: dict[str, Call] = {
    "COALESCE": coalesce,
    "IFNULL": coalesce,
    "NULLIF": null_if,
    "GREATEST": greatest_or_least,
    "LEAST": greatest_or_least,
    "ERROR": error_call,
    "PENDING_COMMIT_TIMESTAMP": pending_commit_timestamp,
}
