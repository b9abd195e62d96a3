"""APPROX_COSINE_DISTANCE and its like: exact here, as Spanner's are where it scans the table."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.compiler import Call, Compiler
from emulator.sql.json_calls import read_arguments
from emulator.sql.scope import Context, Scope
from emulator.sql.signatures import overload
from emulator.sql.types import Typed
from spanner_schema.model.column_types import Type, TypeCode

PREFIX = "APPROX_"
OPTIONS = {"options": Type(TypeCode.JSON)}
"""The one named argument: how an index is searched, which changes no exact distance."""


def approximate(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """APPROX_f(vector, vector [, options => JSON '...'])."""
    vectors, _ = read_arguments(compiler, node, scope, context, OPTIONS)
    return overload(node.name.upper().removeprefix(PREFIX), vectors, context)


CALLS: dict[str, Call] = dict.fromkeys(
    ("APPROX_COSINE_DISTANCE", "APPROX_EUCLIDEAN_DISTANCE", "APPROX_DOT_PRODUCT"), approximate
)
