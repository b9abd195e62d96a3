"""Aggregate functions of the PostgreSQL dialect, with FILTER."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import (
    UNGROUPABLE,
    AggregateArgument,
    array_agg,
    bit_aggregate,
    logical_and_or,
    read_argument,
    string_agg,
)
from emulator.sql.compiler import Compiler
from emulator.sql.postgres import casts
from emulator.sql.postgres.expression_trees import FILTER, POSTGRES_AGGREGATES
from emulator.sql.postgres.matching import comparable
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import BOOL, FLOAT32, FLOAT64, INT64, INTERVAL, PG_NUMERIC, STRING
from spanner_schema.model.column_types import TypeCode

CALLED = set(POSTGRES_AGGREGATES.values())


def compile_aggregate(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """An aggregate function; its arguments may name any column."""
    if scope.grouped is None:
        raise errors.invalid_argument(
            f"aggregate functions are not allowed here: {node.name.lower()}"
        )
    if scope.in_aggregate:
        raise errors.invalid_argument("aggregate function calls cannot be nested")
    scope.in_aggregate = True
    try:
        return compile_in_scope(compiler, node, scope, context)
    finally:
        scope.in_aggregate = False


def compile_in_scope(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """The call, with its columns free."""
    condition = node.meta.get(FILTER)
    test = None
    if condition is not None:
        test = compiler.boolean(condition, scope, context, "argument of FILTER").sql
    rows = "" if test is None else f" FILTER (WHERE {test})"
    if not node.expressions:
        raise errors.invalid_argument(f"{node.name.lower()}() needs an argument")
    if isinstance(node.expressions[0], exp.Star):
        if node.name != "COUNT":
            raise errors.invalid_argument(f"function {node.name.lower()}(*) does not exist")
        return Typed(f"COUNT(*){rows}", INT64)
    argument = read_argument(compiler, node, scope, context)
    if node.name == "ARRAY_AGG":
        refuse_keyed(node.name, argument)
        return array_agg(node.name, replace(argument, rows=rows), context)
    if test is not None:
        # NULLs do not count for any of the others.
        kept = f"CASE WHEN {test} THEN {argument.item.sql} END"
        argument = replace(argument, item=replace(argument.item, sql=kept, literal=None))
    return call_aggregate(node.name, argument, context)


def call_aggregate(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """An aggregate that passes NULLs over."""
    if name == "COUNT":
        return Typed(f"count({argument.distinct}{comparable(argument.item)})", INT64)
    if name == "STRING_AGG":
        if not argument.more:
            raise errors.invalid_argument("function string_agg(text) does not exist")
        return string_agg(name, argument, context)
    if name in {"LOGICAL_AND", "LOGICAL_OR"}:
        item = casts.coerce(argument.item, BOOL, context)
        if item is None:
            raise no_aggregate("bool_and", argument.item)
        return logical_and_or(name, replace(argument, item=item), context)
    if name in {"BIT_AND", "BIT_OR"}:
        bits = casts.coerce(argument.item, INT64, context)
        if bits is None:
            raise no_aggregate(name.lower(), argument.item)
        return bit_aggregate(name, replace(argument, item=bits), context)
    if name in {"MIN", "MAX"}:
        return call_extreme(name.lower(), argument)
    return call_sum(name.lower(), argument, context)


def no_aggregate(name: str, item: Typed) -> errors.SpannerError:
    """PostgreSQL's words for an argument that an aggregate does not take."""
    return errors.invalid_argument(f"function {name}({show_type(item.type)}) does not exist")


def refuse_keyed(name: str, argument: AggregateArgument) -> None:
    """DISTINCT of numerics, of which equal ones may be written in several ways."""
    if argument.distinct and argument.item.type == PG_NUMERIC:
        raise errors.unimplemented(f"{name.lower()}(DISTINCT ...) of numeric")


def call_extreme(name: str, argument: AggregateArgument) -> Typed:
    """min and max; NaN is greater than every number, in storage too."""
    type_ = argument.item.type or STRING
    if type_.code in UNGROUPABLE or type_.code is TypeCode.BOOL:
        raise no_aggregate(name, argument.item)
    function = f"agg_pg_{name}_numeric" if type_ == PG_NUMERIC else name
    if type_ == INTERVAL:
        function = f"agg_{name}_interval"
    return Typed(f"{function}({argument.item.sql})", type_)


def call_sum(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """sum and avg: of bigint and numeric a numeric."""
    item = argument.item
    if item.type is None or casts.is_unknown(item):
        item = casts.coerce(item, FLOAT64, context) or item
    refuse_keyed(name, argument)
    if item.type == INTERVAL:
        function = "agg_sum_interval" if name == "sum" else "agg_pg_avg_interval"
        return Typed(f"{function}({argument.distinct}{item.sql})", INTERVAL)
    if item.type in {INT64, PG_NUMERIC}:
        call = f"agg_pg_{name}_numeric({argument.distinct}{item.sql})"
        return Typed(call, PG_NUMERIC)
    if item.type not in {FLOAT32, FLOAT64}:
        raise no_aggregate(name, item)
    call = f"agg_pg_{name}_float8({argument.distinct}{item.sql})"
    if item.type == FLOAT32 and name == "sum":
        return Typed(f"pg_to_float4({call})", FLOAT32)
    return Typed(call, FLOAT64)
