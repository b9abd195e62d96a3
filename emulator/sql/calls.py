"""Function calls: which function a name means, and the SAFE. forms."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql import (
    array_calls,
    conditional_calls,
    distance_calls,
    format_calls,
    interval_calls,
    json_calls,
    operators,
    proto_calls,
    sequences,
    time_calls,
    token_calls,
    windows,
    with_calls,
)
from emulator.sql.aggregates import AGGREGATE_CALLS, aggregate
from emulator.sql.compiler import Call, Compiler, Handler
from emulator.sql.parsed import PLUS_FUNCTION
from emulator.sql.scope import Context, Scope
from emulator.sql.signatures import SIGNATURES, overload, place_arguments
from emulator.sql.types import Typed
from emulator.sql.user_functions import call_function
from emulator.sql.window_functions import WINDOW_FUNCTIONS
from spanner_schema.syntax.functions import find_function

SPECIAL: dict[str, Call] = {
    **conditional_calls.CALLS,
    **array_calls.CALLS,
    **distance_calls.CALLS,
    **time_calls.CALLS,
    **json_calls.CALLS,
    **sequences.FUNCTIONS,
    **format_calls.CALLS,
    **interval_calls.CALLS,
    **with_calls.CALLS,
    **token_calls.CALLS,
    PLUS_FUNCTION: operators.plus,
    **proto_calls.CALLS,
}
OWN_FUNCTION = re.compile(r"(fn_|int64_|numeric_|float64_|cast_|to_float32|farm_)\w*\(")
UNSUPPORTED = """
DEBUG_TOKENLIST DESTINATION_NODE_ID EDGES ELEMENT_DEFINITION_NAME ELEMENT_ID
IS_ACYCLIC IS_FIRST IS_SIMPLE IS_TRAIL LABELS NODES PATH PATH_FIRST PATH_LAST
PATH_LENGTH PROPERTY_NAMES SCORE SCORE_NGRAMS SEARCH SEARCH_NGRAMS
SEARCH_SUBSTRING SNIPPET SOURCE_NODE_ID
"""
"""Functions that Spanner has and this server has not."""


def compile_call(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """A function call; names are without regard to case."""
    name = node.name.upper()
    if name in AGGREGATE_CALLS:
        return aggregate(compiler, node, scope, context)
    special = SPECIAL.get(name)
    if special is not None:
        return special(compiler, node, scope, context)
    if name in UNSUPPORTED.split():
        raise errors.unimplemented(f"the function {name}")
    if name in WINDOW_FUNCTIONS:
        raise errors.invalid_argument(
            f"Analytic function {name} cannot be called without an OVER clause"
        )
    if name not in SIGNATURES:
        called = call_function(compiler, node.name, node, scope, context)
        if called is not None:
            return called
        raise errors.invalid_argument(f"Function not found: {node.name}")
    arguments = place_arguments(name, node.expressions)
    items = [compiler.compile(each, scope, context) for each in arguments]
    return overload(name, items, context)


def compile_safe_call(
    compiler: Compiler, node: exp.SafeFunc, scope: Scope, context: Context
) -> Typed:
    """SAFE.f(...): NULL where f is an error; errors of the arguments stay errors."""
    called = node.this
    if isinstance(called, exp.Anonymous) and find_function(context.schema, called.name):
        raise errors.unimplemented(f"SAFE. before the user-defined function {called.name}")
    inner = compiler.compile(called, scope, context)
    if isinstance(called, exp.Window | exp.Cast):
        raise errors.unimplemented(f"SAFE. before {node.this.sql('bigquery')[:40]!r}")
    if not OWN_FUNCTION.match(inner.sql):
        # Made of nothing that could fail but its arguments.
        return replace(inner, literal=None, parts=None)
    return Typed("safe_" + inner.sql, inner.type, column=inner.column)


def net_call(compiler: Compiler, node: exp.Func, scope: Scope, context: Context) -> Typed:
    """NET. functions."""
    called = node.this
    name = f"NET.{called.name.upper()}"
    if name not in SIGNATURES:
        raise errors.invalid_argument(f"Function not found: {name}")
    items = [compiler.compile(each, scope, context) for each in called.expressions]
    return overload(name, items, context)


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Anonymous: compile_call,
    exp.SafeFunc: compile_safe_call,
    exp.NetFunc: net_call,
    exp.Extract: time_calls.extract,
    exp.Window: windows.window,
    exp.Interval: interval_calls.interval,
}
