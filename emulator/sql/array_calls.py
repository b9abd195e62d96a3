"""Functions of arrays; some take a lambda."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require, unify
from emulator.sql.comparison import test_row_membership
from emulator.sql.compiler import Call, Compiler
from emulator.sql.composites import element_value, elements, refuse_array_of_arrays
from emulator.sql.conditional_calls import compile_arguments
from emulator.sql.ordering import order_terms
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, common_type, name_of
from emulator.values.sqlite_text import quote_name
from emulator.values.types import BOOL, BYTES, FLOAT64, INT64, INTERVAL, NUMERIC, STRING, array
from spanner_schema.model.column_types import Type, TypeCode


def array_of_argument(item: Typed, name: str) -> tuple[Typed, Type]:
    """An argument that must be an array, and the type of its elements; NULL is one of INT64."""
    if item.type is None and item.parameter is None:
        item = replace(item, type=array(INT64))
    if item.type is None or item.type.element is None:
        raise errors.invalid_argument(
            f"No matching signature for function {name} for argument types: {name_of(item.type)}"
        )
    return item, item.type.element


def array_length(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_LENGTH(array)."""
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    values, _ = array_of_argument(item, "ARRAY_LENGTH")
    return Typed(f"json_array_length({values.sql})", INT64)


def array_reverse(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_REVERSE(array)."""
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    values, _ = array_of_argument(item, "ARRAY_REVERSE")
    return Typed(f"fn_array_reverse({values.sql})", values.type)


def array_concat(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_CONCAT(a, b, ...)."""
    items = compile_arguments(compiler, node, scope, context, 1, 10_000)
    if any(item.type is None and item.parameter is None for item in items):
        raise errors.invalid_argument(
            "The argument to ARRAY_CONCAT (or ARRAY_CONCAT_AGG) must be an array type but was NULL"
        )
    unified, type_ = unify(items, context, "function ARRAY_CONCAT")
    if type_.code is not TypeCode.ARRAY:
        raise errors.invalid_argument("The arguments of ARRAY_CONCAT must be arrays")
    return Typed(f"fn_concat_arrays({', '.join(each.sql for each in unified)})", type_)


def generate_array(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GENERATE_ARRAY(first, last [, step])."""
    items = compile_arguments(compiler, node, scope, context, 2, 3)
    type_ = common_type([item.type for item in items if item.type is not None]) or INT64
    kinds = {INT64: "", FLOAT64: "_float64", NUMERIC: "_numeric"}
    if type_ not in kinds:
        raise errors.invalid_argument(f"GENERATE_ARRAY is not defined for {name_of(type_)}")
    bounds = [require(item, type_, context, "An argument of GENERATE_ARRAY").sql for item in items]
    return Typed(f"fn_generate_array{kinds[type_]}({', '.join(bounds)})", array(type_))


def first_or_last(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_FIRST, ARRAY_LAST: an error of an empty array."""
    name = node.name.upper()
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    values, element = array_of_argument(item, name)
    return element_value(f"fn_{name.lower()}({values.sql})", element)


def array_min_or_max(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_MIN, ARRAY_MAX: NULL elements do not count."""
    name = node.name.upper()
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    values, element = array_of_argument(item, name)
    down = exp.Ordered(this=exp.Null(), desc=name == "ARRAY_MAX", nulls_first=name == "ARRAY_MIN")
    terms = order_terms(Typed('"value"', element), down)
    if element.code in {TypeCode.FLOAT32, TypeCode.FLOAT64}:
        terms = f"\"value\" = 'NaN' DESC, {terms}"
    source = elements(values)
    sql = f'(SELECT "value" FROM {source} WHERE "value" IS NOT NULL ORDER BY {terms} LIMIT 1)'
    return Typed(sql, element)


def array_slice(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_SLICE(array, first, last): both ends are in; negative ones count from the end."""
    item, *ends = compile_arguments(compiler, node, scope, context, 3, 3)
    values, _ = array_of_argument(item, "ARRAY_SLICE")
    low, high = (require(end, INT64, context, "A position") for end in ends)
    return Typed(f"fn_array_slice({values.sql}, {low.sql}, {high.sql})", values.type)


def array_includes(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_INCLUDES(array, value | lambda)."""
    if len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Lambda):
        values = compiler.compile(node.expressions[0], scope, context)
        source, test, _ = compile_lambda(compiler, values, node, scope, context)
        condition = require(test, BOOL, context, "The lambda of ARRAY_INCLUDES")
        sql = f"EXISTS (SELECT 1 FROM {source} WHERE {condition.sql})"
        return Typed(f"CASE WHEN {values.sql} IS NOT NULL THEN {sql} END", BOOL)
    values, target = compile_arguments(compiler, node, scope, context, 2, 2)
    values, element = array_of_argument(values, "ARRAY_INCLUDES")
    item = require(target, element, context, "The value of ARRAY_INCLUDES")
    test_sql = test_row_membership(item, '"value"', elements(values), element)
    sql = f"coalesce({test_sql}, 0)"
    both = f"{values.sql} IS NOT NULL AND {item.sql} IS NOT NULL"
    return Typed(f"CASE WHEN {both} THEN {sql} END", BOOL)


def array_includes_any_or_all(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_INCLUDES_ANY, ARRAY_INCLUDES_ALL (array, array)."""
    name = node.name.upper()
    items = compile_arguments(compiler, node, scope, context, 2, 2)
    (values, targets), type_ = unify(items, context, f"function {name}")
    _, element = array_of_argument(Typed(values.sql, type_), name)
    listed = f"{comparable_elements(values, element)}, {comparable_elements(targets, element)}"
    return Typed(f"fn_{name.lower()}({listed})", BOOL)


def comparable_elements(values: Typed, element: Type) -> str:
    """An array whose elements are equal where SQL says so."""
    return f"fn_interval_orders({values.sql})" if element == INTERVAL else values.sql


def array_is_distinct(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_IS_DISTINCT(array)."""
    (item,) = compile_arguments(compiler, node, scope, context, 1, 1)
    if item.type is None:
        item = require(item, array(INT64), context, "The argument of ARRAY_IS_DISTINCT")
    values, element = array_of_argument(item, "ARRAY_IS_DISTINCT")
    if element.code is TypeCode.PROTO:
        raise errors.invalid_argument(
            f"ARRAY_IS_DISTINCT is not defined for {name_of(values.type)}"
        )
    return Typed(f"fn_array_is_distinct({comparable_elements(values, element)})", BOOL)


def array_to_string(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_TO_STRING(array, delimiter [, text for NULL])."""
    item, *texts = compile_arguments(compiler, node, scope, context, 2, 3)
    values, element = array_of_argument(item, "ARRAY_TO_STRING")
    if item.parts == () and element == INT64:
        element = STRING
    if element not in {STRING, BYTES}:
        raise errors.invalid_argument(f"ARRAY_TO_STRING is not defined for {name_of(values.type)}")
    suffix = "" if element == STRING else "_bytes"
    listed = [require(t, element, context, "A text of ARRAY_TO_STRING").sql for t in texts]
    return Typed(f"fn_array_to_string{suffix}({values.sql}, {', '.join(listed)})", element)


def compile_lambda(
    compiler: Compiler, values: Typed, node: exp.Anonymous, scope: Scope, context: Context
) -> tuple[str, Typed, str]:
    """The elements as a table, the lambda's body over a row of it, and the table's alias."""
    _, element = array_of_argument(values, node.name.upper())
    function = node.expressions[1]
    if not isinstance(function, exp.Lambda) or not 1 <= len(function.expressions) <= 2:
        raise errors.invalid_argument(f"{node.name.upper()} takes a lambda such as e -> e > 1")
    alias = context.alias()
    row = (
        Typed(f'{quote_name(alias)}."value"', element),
        Typed(f'{quote_name(alias)}."offset"', INT64),
    )
    names = [each.name.casefold() for each in function.expressions]
    inner = Scope(parent=scope, locals=dict(zip(names, row, strict=False)))
    body = compiler.compile(function.this, inner, context)
    return f"{elements(values)} AS {quote_name(alias)}", body, alias


def array_filter(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_FILTER(array, lambda)."""
    require_two_arguments(node)
    values = compiler.compile(node.expressions[0], scope, context)
    source, test, alias = compile_lambda(compiler, values, node, scope, context)
    condition = require(test, BOOL, context, "The lambda of ARRAY_FILTER")
    item = f'{quote_name(alias)}."value"'
    sql = f"(SELECT agg_array({item}) FROM {source} WHERE {condition.sql})"
    return Typed(f"CASE WHEN {values.sql} IS NOT NULL THEN {sql} END", values.type)


def array_transform(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """ARRAY_TRANSFORM(array, lambda)."""
    require_two_arguments(node)
    values = compiler.compile(node.expressions[0], scope, context)
    source, body, _ = compile_lambda(compiler, values, node, scope, context)
    refuse_array_of_arrays(body.type)
    sql = f"(SELECT agg_array({body.sql}) FROM {source})"
    result = array(body.type or INT64)
    return Typed(f"CASE WHEN {values.sql} IS NOT NULL THEN {sql} END", result)


def require_two_arguments(node: exp.Anonymous) -> None:
    """INVALID_ARGUMENT unless there are two."""
    if len(node.expressions) != 2:
        raise errors.invalid_argument(
            f"Number of arguments does not match for function {node.name.upper()}"
        )


CALLS: dict[str, Call] = {
    "ARRAY_LENGTH": array_length,
    "ARRAY_REVERSE": array_reverse,
    "ARRAY_CONCAT": array_concat,
    "GENERATE_ARRAY": generate_array,
    "ARRAY_FIRST": first_or_last,
    "ARRAY_LAST": first_or_last,
    "ARRAY_MIN": array_min_or_max,
    "ARRAY_MAX": array_min_or_max,
    "ARRAY_SLICE": array_slice,
    "ARRAY_INCLUDES": array_includes,
    "ARRAY_INCLUDES_ANY": array_includes_any_or_all,
    "ARRAY_INCLUDES_ALL": array_includes_any_or_all,
    "ARRAY_IS_DISTINCT": array_is_distinct,
    "ARRAY_TO_STRING": array_to_string,
    "ARRAY_FILTER": array_filter,
    "ARRAY_TRANSFORM": array_transform,
}
