"""Arrays of the PostgreSQL dialect: ANY and ALL, containment, text, series."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Call, Compiler
from emulator.sql.composites import elements
from emulator.sql.postgres import casts, matching, operators
from emulator.sql.postgres.operator_trees import COMPARISONS, OPERATOR
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import BOOL, INT64, PG_NUMERIC, STRING, array
from spanner_schema.model.column_types import Type


def operands(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> list[Typed]:
    """The arguments of a call."""
    return [compiler.compile(each, scope, context) for each in node.expressions]


def no_function(name: str, items: list[Typed]) -> errors.SpannerError:
    """PostgreSQL's words for arguments that a function does not take."""
    shown = ", ".join("unknown" if casts.is_unknown(i) else show_type(i.type) for i in items)
    return errors.invalid_argument(f"function {name.lower()}({shown}) does not exist")


def element_type(name: str, items: list[Typed]) -> Type:
    """The type of the elements of the first argument that is an array."""
    for item in items:
        if item.type is not None and item.type.element is not None:
            return item.type.element
    raise no_function(name, items)


def compile_quantified(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """x < ANY(array), x >= ALL(array): NULL where it depends on a NULL."""
    word, sign = node.name.split()
    item, values = operands(compiler, node, scope, context)
    if values.type is None or casts.is_unknown(values):
        values = casts.coerce(values, array(item.type or STRING), context) or values
    if values.type is None or values.type.element is None:
        raise errors.invalid_argument("op ANY/ALL (array) requires array on right side")
    (left, right), type_ = matching.match(
        [item, Typed('"value"', values.type.element)], sign, context
    )
    test = matching.compare(left, sign, right, type_)
    found, other, function = ("1", "0", "max") if word == "ANY" else ("0", "1", "min")
    chosen = (
        f'(SELECT CASE WHEN {function}("t") = {found} THEN {found}'
        f' WHEN count(*) = count("t") THEN {other} END'
        f' FROM (SELECT {test} AS "t" FROM {elements(values)}))'
    )
    return Typed(f"CASE WHEN {values.sql} IS NOT NULL THEN {chosen} END", BOOL)


def compare_arrays(sign: str, items: list[Typed], context: Context) -> Typed:
    """@>, <@ and && of two arrays."""
    both, type_ = matching.match(items, sign, context)
    left, right = both if sign != "<@" else both[::-1]
    assert type_.element is not None
    function = "pg_array_overlaps" if sign == "&&" else "pg_array_contains"
    kind = type_.element.code.value
    return Typed(f"{function}({left.sql}, {right.sql}, '{kind}')", BOOL)


def compile_array_cat(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """array_cat: NULL of a NULL, as Spanner has it."""
    items = operands(compiler, node, scope, context)
    if len(items) != 2:
        raise no_function("array_cat", items)
    type_ = array(element_type("array_cat", items))
    both = casts.coerce_all(items, type_, context)
    if both is None:
        raise no_function("array_cat", items)
    return Typed(f"pg_array_cat({', '.join(each.sql for each in both)})", type_)


def compile_array_to_string(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """array_to_string(array, delimiter [, text of NULL])."""
    items = operands(compiler, node, scope, context)
    if len(items) not in {2, 3}:
        raise no_function("array_to_string", items)
    kind = element_type("array_to_string", items[:1]).code.value
    texts = casts.coerce_all(items[1:], STRING, context)
    if texts is None:
        raise no_function("array_to_string", items)
    others = ", ".join(each.sql for each in texts)
    return Typed(f"pg_array_to_string({items[0].sql}, '{kind}', {others})", STRING)


def compile_array_length(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """array_length and array_upper: arrays begin at 1."""
    items = operands(compiler, node, scope, context)
    if len(items) != 2:
        raise no_function(node.name, items)
    element_type(node.name, items[:1])
    dimension = casts.coerce(items[1], INT64, context)
    if dimension is None:
        raise no_function(node.name, items)
    return Typed(f"pg_array_length({items[0].sql}, {dimension.sql})", INT64)


def compile_series(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """generate_series of bigint, as an array."""
    items = operands(compiler, node, scope, context)
    if any(item.type == PG_NUMERIC for item in items):
        raise errors.unimplemented("generate_series of numeric")
    numbers = casts.coerce_all(items, INT64, context)
    if numbers is None or len(items) not in {2, 3}:
        raise no_function("generate_series", items)
    return Typed(f"pg_generate_series({', '.join(each.sql for each in numbers)})", array(INT64))


def compile_overlap(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """&&."""
    items = operands(compiler, node, scope, context)
    if not any(item.type is not None and item.type.element is not None for item in items):
        raise matching.no_operator("&&", items)
    return compare_arrays("&&", items, context)


def compile_containment(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """@> and <@, of arrays or of jsonb."""
    items = operands(compiler, node, scope, context)
    if any(item.type is not None and item.type.element is not None for item in items):
        return compare_arrays(node.name.removeprefix(OPERATOR), items, context)
    return operators.compile_json_operator(compiler, node, scope, context)


CALLS: dict[str, Call] = {
    **{f"{word} {sign}": compile_quantified for word in ("ANY", "ALL") for sign in COMPARISONS},
    "ARRAY_CAT": compile_array_cat,
    "ARRAY_TO_STRING": compile_array_to_string,
    **dict.fromkeys(("ARRAY_LENGTH", "ARRAY_UPPER"), compile_array_length),
    "GENERATE_SERIES": compile_series,
    f"{OPERATOR}&&": compile_overlap,
    **dict.fromkeys((f"{OPERATOR}@>", f"{OPERATOR}<@"), compile_containment),
}
