"""Aggregate functions: their arguments with DISTINCT, ORDER BY, LIMIT and the like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from ddl.schema import TypeCode
from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.compiler import Compiler
from emulator.sql.composites import refuse_array_of_arrays
from emulator.sql.ordering import order_terms
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of, refuse_interval
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

UNGROUPABLE = {TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.JSON}


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
    if name == "COUNT" and node.expressions and isinstance(node.expressions[0], exp.Star):
        return Typed(f"COUNT(*){over}", INT64)
    if not node.expressions:
        raise errors.invalid_argument(f"No matching signature for aggregate function {name}")
    argument = read_argument(compiler, node, scope, context)
    if over:
        refuse_over_window(name, argument)
    return AGGREGATE_CALLS[name](name, replace(argument, over=over), context)


def refuse_over_window(name: str, argument: AggregateArgument) -> None:
    """What an aggregate may not say, or cannot do here, over a window."""
    if argument.order or argument.limit:
        raise errors.invalid_argument(f"ORDER BY and LIMIT are not allowed in {name} with OVER")
    if argument.distinct:
        raise errors.unimplemented(f"DISTINCT in {name} with OVER")
    if argument.extreme is not None:
        raise errors.unimplemented(f"HAVING MAX and MIN in {name} with OVER")


def read_argument(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> AggregateArgument:
    """Reads the arguments; the clauses are wrapped around the last one."""
    name = node.name.upper()
    first, others = node.expressions[0], list(node.expressions[1:])
    last = others[-1] if others else first
    limit, order, rows = "", "", ""
    extreme = None
    if isinstance(last, exp.Limit):
        row_limit = require(
            compiler.compile(last.expression, scope, context), INT64, context, "LIMIT"
        )
        limit, last = f"fn_not_negative({row_limit.sql}, 'LIMIT')", last.this
    if isinstance(last, exp.Order):
        terms = [
            order_terms(compiler.compile(each.this, scope, context), each)
            for each in last.expressions
        ]
        order, last = f" ORDER BY {', '.join(terms)}", last.this
    if isinstance(last, exp.HavingMax):
        word = "max" if last.args.get("max") else "min"
        extreme = (word, compiler.compile(last.expression, scope, context))
        last = last.this
    ignoring = isinstance(last, exp.IgnoreNulls)
    if isinstance(last, exp.IgnoreNulls | exp.RespectNulls):
        last = last.this
    if others:
        others[-1] = last
    else:
        first = last
    distinct = ""
    if isinstance(first, exp.Distinct):
        distinct = "DISTINCT "
        first, others = first.expressions[0], [*first.expressions[1:], *others]
    item = compiler.compile(first, scope, context)
    if distinct:
        refuse_interval(item.type, f"{name}(DISTINCT ...)")
    if distinct and item.type is not None and item.type.code in UNGROUPABLE:
        raise errors.invalid_argument(
            f"Aggregate functions with DISTINCT cannot be used with arguments of type"
            f" {name_of(item.type)}"
        )
    if ignoring:
        rows = f" FILTER (WHERE {item.sql} IS NOT NULL)"
    more = tuple(compiler.compile(each, scope, context) for each in others)
    if extreme is not None and name != "ANY_VALUE":
        raise errors.unimplemented(f"HAVING MAX and MIN in {name}")
    if (limit or order) and name not in {"ARRAY_AGG", "STRING_AGG", "ARRAY_CONCAT_AGG"}:
        raise errors.invalid_argument(f"ORDER BY and LIMIT are not supported in {name}")
    return AggregateArgument(item, more, distinct, order, rows, limit, extreme)


def count(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """COUNT([DISTINCT] x)."""
    return Typed(
        f"COUNT({argument.distinct}{argument.item.sql}){argument.rows}{argument.over}", INT64
    )


def count_if(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """COUNTIF(condition)."""
    test = require(argument.item, BOOL, context, "The argument of COUNTIF")
    return Typed(f"COUNT({argument.distinct}CASE WHEN {test.sql} THEN 1 END){argument.over}", INT64)


def sum_or_avg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """SUM and AVG of numbers; an INT64 sum that overflows is OUT_OF_RANGE."""
    type_ = argument.item.type or INT64
    if type_ == INTERVAL:
        return Typed(f"agg_{name.lower()}_interval({argument.item.sql}){argument.over}", INTERVAL)
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
    return Typed(f"{sqlite}({argument.distinct}{argument.item.sql})", result)


def min_or_max(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """MIN and MAX: storage forms sort as their values, NaN apart."""
    type_ = argument.item.type or INT64
    if type_.code in UNGROUPABLE:
        raise errors.invalid_argument(f"{name} is not defined for {name_of(type_)}")
    function = name.lower()
    if type_ == INTERVAL:
        return Typed(f"agg_{function}_interval({argument.item.sql}){argument.over}", INTERVAL)
    if type_.code in FLOATS:
        return Typed(f"agg_{function}_float64({argument.item.sql}){argument.over}", type_)
    return Typed(f"{function}({argument.distinct}{argument.item.sql}){argument.over}", type_)


def any_value(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ANY_VALUE(x [HAVING MAX | MIN y])."""
    if argument.extreme is None:
        return Typed(f"max({argument.item.sql}){argument.over}", argument.item.type)
    word, by = argument.extreme
    if by.type is not None and by.type.code in UNGROUPABLE | FLOATS:
        raise errors.unimplemented(f"HAVING {word.upper()} of {name_of(by.type)}")
    return Typed(f"agg_at_{word}({argument.item.sql}, {by.sql})", argument.item.type)


def logical_and_or(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """LOGICAL_AND, LOGICAL_OR."""
    test = require(argument.item, BOOL, context, f"The argument of {name}")
    return Typed(f"{'min' if name == 'LOGICAL_AND' else 'max'}({test.sql}){argument.over}", BOOL)


def bit_aggregate(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """BIT_AND, BIT_OR, BIT_XOR."""
    item = require(argument.item, INT64, context, f"The argument of {name}")
    return Typed(f"agg_{name.lower()}({argument.distinct}{item.sql}){argument.over}", INT64)


def stddev_or_variance(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """STDDEV and VARIANCE of a sample: NULL of fewer than two values."""
    item = argument.item
    if item.type is not None and item.type.code is TypeCode.NUMERIC:
        item = Typed(f"numeric_to_float64({item.sql})", FLOAT64)
    item = require(item, FLOAT64, context, f"The argument of {name}")
    function = "agg_deviation" if name.startswith("STDDEV") else "agg_variance"
    return Typed(f"{function}({argument.distinct}{item.sql}){argument.over}", FLOAT64)


def limit_elements(sql: str, argument: AggregateArgument) -> str:
    """The first elements of an array, where LIMIT says so."""
    return f"fn_first_elements({sql}, {argument.limit})" if argument.limit else sql


def array_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ARRAY_AGG(x): NULL of no rows."""
    type_ = argument.item.type or INT64
    refuse_array_of_arrays(type_)
    values = f"{argument.distinct}{argument.item.sql}{argument.order}"
    sql = f"agg_array_or_null({values}){argument.rows}{argument.over}"
    return Typed(limit_elements(sql, argument), array(type_))


def array_concat_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """ARRAY_CONCAT_AGG(array): NULL arrays add nothing, NULL of no array at all."""
    if argument.item.type is None or argument.item.type.code is not TypeCode.ARRAY:
        raise errors.invalid_argument(f"{name} is not defined for {name_of(argument.item.type)}")
    sql = f"agg_array_or_null({argument.item.sql}{argument.order}){argument.over}"
    return Typed(f"fn_flatten({limit_elements(sql, argument)})", argument.item.type)


def string_agg(name: str, argument: AggregateArgument, context: Context) -> Typed:
    """STRING_AGG(x [, delimiter]): NULLs add nothing, NULL of nothing."""
    text_type = BYTES if argument.item.type == BYTES else STRING
    item = require(argument.item, text_type, context, f"The argument of {name}")
    delimiter = "','" if text_type is STRING else "x'2c'"
    if argument.more:
        delimiter = require(argument.more[0], text_type, context, "The delimiter").sql
    rows = f" FILTER (WHERE {item.sql} IS NOT NULL)"
    values = f"{argument.distinct}{item.sql}{argument.order}"
    gathered = limit_elements(f"agg_array_or_null({values}){rows}{argument.over}", argument)
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
