"""Aggregate functions: their arguments with DISTINCT, ORDER BY, LIMIT and the like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import Compiler
from emulator.sql.composites import refuse_array_of_arrays
from emulator.sql.ordering import order_terms
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.types import (
    BOOL,
    BYTES,
    FLOAT64,
    FLOATS,
    INT64,
    INTERVAL,
    NUMBERS,
    NUMERIC,
    STRING,
    array,
)
from spanner_schema.model.column_types import TypeCode

UNGROUPABLE = {
    *(TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON, TypeCode.PROTO),
    TypeCode.PG_JSONB,
}


@dataclass(frozen=True, slots=True)
class AggregateArgument:
    """The argument of an aggregate and the clauses beside it.

    ``rows`` is what to say behind the call: which rows count. ``limit`` is SQLite text or "".
    ``extreme`` is the value of HAVING MAX | MIN, with the word. ``over`` is OVER (...) or "".
    """

    item: Typed
    more: tuple[Typed, ...] = ()
    distinct: str = ""
    order: str = ""
    rows: str = ""
    limit: str = ""
    extreme: tuple[str, Typed] | None = None
    over: str = ""


Aggregate = Callable[[str, AggregateArgument, Context], Typed]


def aggregate(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """An aggregate function; its arguments may name any column."""
    name = node.name.upper()
    if scope.grouped is None:
        raise errors.invalid_argument(f"Aggregate function {name} not allowed here")
    if scope.in_aggregate:
        raise errors.invalid_argument("Aggregations of aggregations are not allowed")
    scope.in_aggregate = True
    try:
        return aggregate_call(compiler, node, scope, context)
    finally:
        scope.in_aggregate = False


def aggregate_call(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context, over: str = ""
) -> Typed:
    """The call itself, as an aggregate or over a window."""
    name = node.name.upper()
    first = node.expressions[0] if node.expressions else None
    if name == "COUNT" and isinstance(first, exp.Star):
        return Typed(f"COUNT(*){over}", INT64)
    if name == "COUNT" and isinstance(first, exp.HavingMax) and isinstance(first.this, exp.Star):
        first.this.replace(exp.Literal.number(1))
    if not node.expressions:
        raise errors.invalid_argument(f"No matching signature for aggregate function {name}")
    argument = read_argument(compiler, node, scope, context)
    if over:
        refuse_over_window(name, argument)
    called = AGGREGATE_CALLS[name](name, replace(argument, over=over), context)
    return replace(called, may_be_null=not over and not scope.grouped)


def refuse_over_window(name: str, argument: AggregateArgument) -> None:
    """What an aggregate may not say, or cannot do here, over a window."""
    if argument.order or argument.limit:
        raise errors.invalid_argument(f"ORDER BY and LIMIT are not allowed in {name} with OVER")
    if argument.distinct:
        raise errors.unimplemented(f"DISTINCT in {name} with OVER")
    if argument.extreme is not None:
        raise errors.unimplemented(f"HAVING MAX and MIN in {name} with OVER")


def refuse_no_arguments(name: str, distinct: exp.Distinct) -> None:
    """COUNT(DISTINCT)"""
    if not distinct.expressions:
        raise errors.invalid_argument(
            f"No matching signature for aggregate function {name} with no arguments"
        )


def read_argument(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> AggregateArgument:
    """Reads the arguments; the clauses are wrapped around the last one."""
    name = node.name.upper()
    first, others = node.expressions[0], list(node.expressions[1:])
    last = others[-1] if others else first
    limit, order, rows = "", "", ""
    sorted_by: list[Typed] = []
    extreme = None
    if isinstance(last, exp.Limit):
        row_limit = require(
            compiler.compile(last.expression, scope, context), INT64, context, "LIMIT"
        )
        limit, last = f"fn_not_negative({row_limit.sql}, 'LIMIT')", last.this
    if isinstance(last, exp.Order):
        sorted_by = [compiler.compile(each.this, scope, context) for each in last.expressions]
        terms = [
            order_terms(key, each) for key, each in zip(sorted_by, last.expressions, strict=True)
        ]
        order, last = f" ORDER BY {', '.join(terms)}", last.this
    if isinstance(last, exp.HavingMax):
        word = "max" if last.args.get("max") else "min"
        extreme = (word, to_comparable(compiler.compile(last.expression, scope, context)))
        last = last.this
    ignoring = isinstance(last, exp.IgnoreNulls)
    if isinstance(last, exp.IgnoreNulls | exp.RespectNulls):
        refuse_null_handling(name)
        last = last.this
    if others:
        others[-1] = last
    else:
        first = last
    distinct = ""
    if isinstance(first, exp.Distinct):
        distinct = "DISTINCT "
        refuse_no_arguments(name, first)
        first, others = first.expressions[0], [*first.expressions[1:], *others]
    item = scope.bind_to_own_rows(compiler.compile(first, scope, context))
    if distinct:
        item = comparable_argument(name, item)
    if distinct and item.type is not None and item.type.code in UNGROUPABLE:
        raise errors.invalid_argument(
            f"Aggregate functions with DISTINCT cannot be used with arguments of type"
            f" {name_of(item.type)}"
        )
    refuse_more_arguments(name, others)
    if ignoring:
        rows = f" FILTER (WHERE {item.sql} IS NOT NULL)"
    check_distinct_order(distinct, sorted_by, item)
    more = tuple(compiler.compile(each, scope, context) for each in others)
    check_delimiter(name, others)
    if extreme is not None:
        check_extreme_key(extreme[1])
    if (limit or order) and name not in {"ARRAY_AGG", "STRING_AGG", "ARRAY_CONCAT_AGG"}:
        raise errors.invalid_argument(f"ORDER BY and LIMIT are not supported in {name}")
    return AggregateArgument(item, more, distinct, order, rows, limit, extreme)


def refuse_null_handling(name: str) -> None:
    """ARRAY_CONCAT_AGG passes over NULL anyway."""
    if name == "ARRAY_CONCAT_AGG":
        raise errors.invalid_argument(
            f"IGNORE NULLS and RESPECT NULLS are not allowed for aggregate function {name}"
        )


def refuse_more_arguments(name: str, others: list[exp.Expr]) -> None:
    """STRING_AGG alone has a second argument."""
    if others and name != "STRING_AGG":
        raise errors.invalid_argument(f"No matching signature for aggregate function {name}")


def check_distinct_order(distinct: str, sorted_by: list[Typed], item: Typed) -> None:
    """With DISTINCT only what is aggregated can be sorted by."""
    if distinct and any(key.sql not in item.sql for key in sorted_by):
        raise errors.invalid_argument(
            "An aggregate function that has both DISTINCT and ORDER BY arguments can only ORDER BY"
            " expressions that are arguments to the function"
        )


def check_delimiter(name: str, others: list[exp.Expr]) -> None:
    """STRING_AGG's second argument is the same for every row, and not NULL."""
    if name != "STRING_AGG" or not others:
        return
    node = others[0]
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Null):
        raise errors.invalid_argument("Argument 2 to STRING_AGG must be non-NULL")
    constants = (exp.Literal, exp.Parameter, exp.ByteString)
    if not isinstance(node, constants):
        raise errors.invalid_argument(
            "Argument 2 to STRING_AGG must be a literal or query parameter"
        )


def comparable_argument(name: str, item: Typed) -> Typed:
    """An argument with DISTINCT: intervals count by their length, and ARRAY_AGG keeps the first."""
    if item.type != INTERVAL or name == "ARRAY_AGG":
        return item
    if name != "COUNT":
        raise errors.unimplemented(f"INTERVAL in {name}(DISTINCT ...)")
    return to_comparable(item)


def check_extreme_key(key: Typed) -> None:
    """INVALID_ARGUMENT where the key of HAVING MAX | MIN has no order."""
    if key.type is not None and key.type.code in UNGROUPABLE:
        raise errors.invalid_argument(
            f"HAVING modifier does not support expressions of type {name_of(key.type)}"
        )


def call_aggregate(function: str, argument: AggregateArgument, sql: str, order: str = "") -> str:
    """The call as SQLite text; ``function`` is SQLite's, or one of ours."""
    if argument.extreme is None:
        return f"{function}({argument.distinct}{sql}{order}){argument.rows}{argument.over}"
    word, key = argument.extreme
    listed = f"{sql}, {key.sql}, {1 if argument.distinct else 0}{order}"
    return f"{word}_rows_{function}({listed}){argument.rows}"


def count(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """COUNT([DISTINCT] x)."""
    return Typed(call_aggregate("count", argument, argument.item.sql), INT64)


def count_if(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """COUNTIF(condition)."""
    test = require(argument.item, BOOL, context, "The argument of COUNTIF")
    counted = f"CASE WHEN {test.sql} THEN 1 END"
    return Typed(call_aggregate("count", argument, counted), INT64)


def sum_or_avg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """SUM and AVG of numbers; an INT64 sum that overflows is OUT_OF_RANGE."""
    type_ = argument.item.type or INT64
    if type_ == INTERVAL:
        interval_function = f"agg_{name.lower()}_interval"
        return Typed(call_aggregate(interval_function, argument, argument.item.sql), INTERVAL)
    if type_.code not in NUMBERS:
        raise errors.invalid_argument(
            f"No matching signature for aggregate function {name}"
            f" for argument types: {name_of(type_)}"
        )
    if argument.item.type is None:
        require(argument.item, INT64, context, name)
    function = name.lower()
    if type_.code is TypeCode.INT64:
        kind, result = "int64", INT64 if function == "sum" else FLOAT64
    elif type_.code is TypeCode.NUMERIC:
        kind, result = "numeric", NUMERIC
    else:
        kind, result = "float64", FLOAT64
    if argument.over:
        return Typed(f"win_{function}_{kind}({argument.item.sql}){argument.over}", result)
    sqlite = function if kind == "int64" else f"agg_{function}_{kind}"
    return Typed(call_aggregate(sqlite, argument, argument.item.sql), result)


def min_or_max(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """MIN and MAX: storage forms sort as their values, NaN apart."""
    type_ = argument.item.type or INT64
    if type_.code in UNGROUPABLE:
        raise errors.invalid_argument(f"{name} is not defined for {name_of(type_)}")
    function = name.lower()
    if type_ == INTERVAL:
        function = f"agg_{function}_interval"
    elif type_.code in FLOATS:
        function = f"agg_{function}_float64"
    return Typed(call_aggregate(function, argument, argument.item.sql), type_)


def any_value(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ANY_VALUE(x [HAVING MAX | MIN y])."""
    function = "any_value" if argument.extreme is not None else "max"
    return Typed(call_aggregate(function, argument, argument.item.sql), argument.item.type)


def logical_and_or(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """LOGICAL_AND, LOGICAL_OR."""
    test = require(argument.item, BOOL, context, f"The argument of {name}")
    function = "min" if name == "LOGICAL_AND" else "max"
    return Typed(call_aggregate(function, argument, test.sql), BOOL)


def bit_aggregate(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """BIT_AND, BIT_OR, BIT_XOR."""
    item = require(argument.item, INT64, context, f"The argument of {name}")
    return Typed(call_aggregate(f"agg_{name.lower()}", argument, item.sql), INT64)


def stddev_or_variance(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """STDDEV and VARIANCE of a sample: NULL of fewer than two values."""
    function = "agg_deviation" if name.startswith("STDDEV") else "agg_variance"
    item = argument.item
    if item.type == NUMERIC:
        function += "_numeric"
    else:
        item = require(item, FLOAT64, context, f"The argument of {name}")
    return Typed(call_aggregate(function, argument, item.sql), FLOAT64)


def limit_elements(sql: str, argument: AggregateArgument) -> str:
    """The first elements of an array, where LIMIT says so."""
    return f"fn_first_elements({sql}, {argument.limit})" if argument.limit else sql


def array_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ARRAY_AGG(x): NULL of no rows."""
    type_ = argument.item.type or INT64
    refuse_array_of_arrays(type_)
    if argument.distinct and type_ == INTERVAL:
        sql = f"agg_distinct_intervals({argument.item.sql}{argument.order}){argument.rows}"
    else:
        sql = call_aggregate("agg_array_or_null", argument, argument.item.sql, argument.order)
    return Typed(limit_elements(sql, argument), array(type_))


def array_concat_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ARRAY_CONCAT_AGG(array): NULL arrays add nothing, NULL of no array at all."""
    if argument.item.type is None or argument.item.type.code is not TypeCode.ARRAY:
        raise errors.invalid_argument(f"{name} is not defined for {name_of(argument.item.type)}")
    present = replace(argument, rows=f" FILTER (WHERE {argument.item.sql} IS NOT NULL)")
    sql = call_aggregate("agg_array_or_null", present, argument.item.sql, argument.order)
    return Typed(f"fn_flatten({limit_elements(sql, argument)})", argument.item.type)


def string_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """STRING_AGG(x [, delimiter]): NULLs add nothing, NULL of nothing."""
    text_type = BYTES if argument.item.type == BYTES else STRING
    item = require(argument.item, text_type, context, f"The argument of {name}")
    delimiter = "','" if text_type is STRING else "x'2c'"
    if argument.more:
        delimiter = require(argument.more[0], text_type, context, "The delimiter").sql
    present = replace(argument, rows=f" FILTER (WHERE {item.sql} IS NOT NULL)")
    texts = call_aggregate("agg_array_or_null", present, item.sql, argument.order)
    gathered = limit_elements(texts, argument)
    suffix = "" if text_type is STRING else "_bytes"
    return Typed(f"fn_array_to_string{suffix}({gathered}, {delimiter})", text_type)


AGGREGATE_CALLS: dict[str, Aggregate] = {
    "COUNT": count,
    "COUNTIF": count_if,
    "SUM": sum_or_avg,
    "AVG": sum_or_avg,
    "MIN": min_or_max,
    "MAX": min_or_max,
    "ANY_VALUE": any_value,
    "LOGICAL_AND": logical_and_or,
    "LOGICAL_OR": logical_and_or,
    "BIT_AND": bit_aggregate,
    "BIT_OR": bit_aggregate,
    "BIT_XOR": bit_aggregate,
    "ARRAY_AGG": array_agg,
    "ARRAY_CONCAT_AGG": array_concat_agg,
    "STRING_AGG": string_agg,
    "STDDEV": stddev_or_variance,
    "STDDEV_SAMP": stddev_or_variance,
    "VARIANCE": stddev_or_variance,
    "VAR_SAMP": stddev_or_variance,
}


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate function outside of subqueries.

    One with OVER does not count, but its arguments may contain some.
    """
    waiting = [node]
    while waiting:
        each = waiting.pop()
        over = isinstance(each.parent, exp.Window) and each.arg_key == "this"
        if isinstance(each, exp.Anonymous) and each.name.upper() in AGGREGATE_CALLS and not over:
            return True
        if not isinstance(each, exp.Query):
            waiting.extend(each.iter_expressions())
    return False
