"""Operators of the PostgreSQL dialect, and what is written like one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.limits import IN_ITEMS_MAX
from emulator.sql.compiler import Call, Compiler, Handler
from emulator.sql.composites import element_value, elements, wrap_one_column
from emulator.sql.postgres import casts
from emulator.sql.postgres.arithmetic import (
    ARITHMETIC,
    BITWISE,
    compile_arithmetic,
    compile_bitwise,
    compile_complement,
    compile_negative_number,
    compile_power,
    compile_sign,
    number_literal,
)
from emulator.sql.postgres.expression_trees import TYPE
from emulator.sql.postgres.matching import (
    comparable,
    compare,
    match,
    match_type,
    no_operator,
    two,
)
from emulator.sql.postgres.operator_trees import COMPARISONS, OPERATOR
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import (
    BOOL,
    BYTES,
    INT64,
    PG_JSONB,
    STRING,
    array,
)

SIGNS = {kind: sign for sign, kind in COMPARISONS.items()}
NUMBERS = casts.NUMBERS


def compile_comparison(
    compiler: Compiler, node: exp.Binary, scope: Scope, context: Context
) -> Typed:
    """= <> < <= > >=."""
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    (left, right), type_ = match(items, SIGNS[type(node)], context)
    return Typed(compare(left, SIGNS[type(node)], right, type_), BOOL)


def compile_between(compiler: Compiler, node: exp.Between, scope: Scope, context: Context) -> Typed:
    """x BETWEEN low AND high: two comparisons."""
    item, low, high = (
        compiler.compile(each, scope, context)
        for each in (node.this, node.args["low"], node.args["high"])
    )
    (first, low), low_type = match([item, low], ">=", context)
    (second, high), high_type = match([item, high], "<=", context)
    tests = compare(first, ">=", low, low_type), compare(second, "<=", high, high_type)
    return Typed(f"({' AND '.join(tests)})", BOOL)


def compile_not(compiler: Compiler, node: exp.Not, scope: Scope, context: Context) -> Typed:
    """NOT, of NULL too."""
    inner = compiler.boolean(node.this, scope, context, "argument of NOT")
    if isinstance(node.this, exp.Is) and inner.sql.endswith(" IS NULL)"):
        # As SQLite must see it to use an index of rows that are not NULL.
        return Typed(inner.sql.removesuffix(" IS NULL)") + " IS NOT NULL)", BOOL)
    return Typed(f"(NOT {inner.sql})", BOOL)


def compile_in(compiler: Compiler, node: exp.In, scope: Scope, context: Context) -> Typed:
    """x IN (a, b), x IN (SELECT ...), x = ANY(array)."""
    item = compiler.compile(node.this, scope, context)
    if node.args.get("unnest"):
        return compile_any(compiler, item, node.args["unnest"].expressions[0], scope, context)
    if node.args.get("query"):
        sql, columns = compiler.subquery(node.args["query"], scope, context)
        text, column = wrap_one_column(sql, columns, "Subquery of type IN")
        (left, right), type_ = match([item, column], "=", context)
        compare(left, "=", right, type_)
        chosen = f'SELECT {comparable(right)} AS "v" FROM ({text})'
        return Typed(f"({comparable(left)} IN ({chosen}))", BOOL)
    choices = [compiler.compile(each, scope, context) for each in node.expressions]
    if len(choices) > IN_ITEMS_MAX:
        raise errors.invalid_argument(
            f"An IN list exceeds the maximum allowed length of {IN_ITEMS_MAX}."
        )
    (left, *others), type_ = match([item, *choices], "=", context)
    compare(left, "=", left, type_)
    return Typed(f"({comparable(left)} IN ({', '.join(map(comparable, others))}))", BOOL)


def compile_any(
    compiler: Compiler, item: Typed, node: exp.Expr, scope: Scope, context: Context
) -> Typed:
    """x = ANY(array): NULL of a NULL array."""
    values = compiler.compile(node, scope, context)
    if values.type is None or casts.is_unknown(values):
        element = STRING if item.type is None else item.type
        values = casts.coerce(values, array(element), context) or values
    if values.type is None or values.type.element is None:
        raise errors.invalid_argument("op ANY/ALL (array) requires array on right side")
    (left, right), type_ = match([item, Typed('"value"', values.type.element)], "=", context)
    compare(left, "=", right, type_)
    # A NULL array is one NULL: within a CASE an index would not be sought.
    chosen = f"SELECT {comparable(right)} FROM {elements(values)}"
    missing = f"SELECT NULL WHERE {values.sql} IS NULL"
    return Typed(f"({comparable(left)} IN ({chosen} UNION ALL {missing}))", BOOL)


def compile_case(compiler: Compiler, node: exp.Case, scope: Scope, context: Context) -> Typed:
    """CASE with and without an operand."""
    operand = None if node.this is None else compiler.compile(node.this, scope, context)
    tests, results = [], []
    for branch in node.args["ifs"]:
        results.append(compiler.compile(branch.args["true"], scope, context))
        if operand is None:
            tests.append(compiler.boolean(branch.this, scope, context, "argument of CASE/WHEN").sql)
            continue
        (left, right), type_ = match(
            [operand, compiler.compile(branch.this, scope, context)], "=", context
        )
        tests.append(compare(left, "=", right, type_))
    default = node.args.get("default")
    if default is not None:
        results.append(compiler.compile(default, scope, context))
    unified, type_ = casts.unify(results, context, "CASE")
    pairs = zip(tests, unified, strict=False)
    text = " ".join(f"WHEN {test} THEN {result.sql}" for test, result in pairs)
    otherwise = f" ELSE {unified[-1].sql}" if default is not None else ""
    return Typed(f"CASE {text}{otherwise} END", type_)


def compile_cast(compiler: Compiler, node: exp.Cast, scope: Scope, context: Context) -> Typed:
    """CAST(x AS type), x::type, type 'text'."""
    type_, modifiers = node.meta[TYPE]
    written = node.args.get("to")
    assert written is not None
    for name in ("this", "kind"):
        written.args.get(name)
    return casts.cast(compiler.compile(node.this, scope, context), type_, modifiers, context)


def compile_literal(compiler: Compiler, node: exp.Literal, scope: Scope, context: Context) -> Typed:
    """A number, or a text that is of no type yet."""
    text = str(node.this)
    if node.is_string:
        return Typed(casts.write_stored(text), STRING, literal=text)
    return number_literal(text)


def compile_concatenation(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """|| of text, bytea and arrays; one text makes a text of the other operand."""
    items = two(compiler, node, scope, context)
    types = [item.type for item in items if item.type is not None and not casts.is_unknown(item)]
    if types and all(type_ == PG_JSONB for type_ in types):
        operands, _ = match(items, "||", context)
        return Typed(f"pg_jsonb_concat({', '.join(each.sql for each in operands)})", PG_JSONB)
    if any(type_.element is not None for type_ in types):
        operands, type_ = match(items, "||", context)
        return Typed(f"fn_concat_arrays({', '.join(each.sql for each in operands)})", type_)
    if types and all(type_ == BYTES for type_ in types):
        operands, _ = match(items, "||", context)
        return Typed(f"pg_concat_bytea({', '.join(each.sql for each in operands)})", BYTES)
    if types and STRING not in types and not any(map(casts.is_unknown, items)):
        raise no_operator("||", items)
    texts = [casts.assign(item, STRING, context) for item in items]
    return Typed(f"({' || '.join(each.sql for each in texts if each is not None)})", STRING)


def compile_like(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """LIKE and ILIKE."""
    word = node.name.removeprefix(OPERATOR)
    items = two(compiler, node, scope, context)
    operands = match_type(items, STRING, "~~" if word == "LIKE" else "~~*", context)
    return Typed(f"(pg_{word.lower()}({', '.join(operands)}))", BOOL)


def compile_pattern(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """~, ~*, !~ and !~*: regular expressions."""
    sign = node.name.removeprefix(OPERATOR)
    items = two(compiler, node, scope, context)
    operands = match_type(items, STRING, sign, context)
    test = f"pg_regexp_matches({', '.join(operands)}, '{'i' if sign.endswith('*') else ''}')"
    return Typed(f"(NOT {test})" if sign.startswith("!") else f"({test})", BOOL)


def compile_json_operator(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """-> ->> ? @> <@ of jsonb."""
    sign = node.name.removeprefix(OPERATOR)
    left, right = two(compiler, node, scope, context)
    if sign == "<@":
        left, right = right, left
    document = casts.coerce(left, PG_JSONB, context)
    if document is None:
        raise no_operator(sign, [left, right])
    if sign in {"@>", "<@"}:
        other = casts.coerce(right, PG_JSONB, context)
        if other is None:
            raise no_operator(sign, [left, right])
        return Typed(f"pg_json_contains({document.sql}, {other.sql})", BOOL)
    key = right if right.type == INT64 else casts.coerce(right, STRING, context)
    if key is None or (sign == "?" and key.type == INT64):
        raise no_operator(sign, [left, right])
    if sign == "?":
        return Typed(f"pg_json_exists({document.sql}, {key.sql})", BOOL)
    if sign == "->":
        return Typed(f"pg_json_get({document.sql}, {key.sql})", PG_JSONB)
    return Typed(f"pg_json_get_text({document.sql}, {key.sql})", STRING)


def compile_distinct_from(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """IS [NOT] DISTINCT FROM: NULL is a value like any other."""
    (left, right), type_ = match(two(compiler, node, scope, context), "=", context)
    compare(left, "=", right, type_)
    word = "IS NOT" if node.name == "IS DISTINCT FROM" else "IS"
    return Typed(f"({comparable(left)} {word} {comparable(right)})", BOOL)


def compile_boolean_test(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """IS [NOT] TRUE, FALSE, UNKNOWN."""
    words = node.name
    item = compiler.boolean(node.expressions[0], scope, context, f"argument of {words}")
    value = "NULL" if "UNKNOWN" in words else "1" if "TRUE" in words else "0"
    word = "IS NOT" if "NOT" in words else "IS"
    return Typed(f"({item.sql} {word} {value})", BOOL)


def compile_subscript(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """array[n], from 1: NULL where there is no element."""
    values, place = two(compiler, node, scope, context)
    position = casts.coerce(place, INT64, context)
    if values.type == PG_JSONB:
        raise errors.unimplemented("a subscript of jsonb")
    if values.type is None or values.type.element is None or position is None:
        raise errors.invalid_argument(
            f"cannot subscript type {show_type(values.type)} because it does not support"
            " subscripting"
        )
    found = (
        f"CASE WHEN {position.sql} >= 1 THEN fn_element({values.sql}, {position.sql} - 1, 1) END"
    )
    return replace(element_value(found, values.type.element), column=values.column)


def compile_slice(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """array[a:b], from 1; as far as the array goes."""
    values, *ends = two(compiler, node, scope, context)
    bounds = [casts.coerce(each, INT64, context) for each in ends]
    if values.type is None or values.type.element is None or None in bounds:
        raise errors.invalid_argument(f"cannot slice type {show_type(values.type)}")
    listed = ", ".join([values.sql, *(each.sql for each in bounds if each is not None)])
    return Typed(f"pg_array_slice({listed})", values.type, column=values.column)


JSON_OPERATORS = ("->", "->>", "?", "@>", "<@")
OPERATORS: dict[str, Callable[..., Typed]] = {
    **dict.fromkeys(ARITHMETIC, compile_arithmetic),
    **dict.fromkeys(("unary -", "unary +"), compile_sign),
    "unary ~": compile_complement,
    **dict.fromkeys(BITWISE, compile_bitwise),
    "^": compile_power,
    "||": compile_concatenation,
    **dict.fromkeys(("LIKE", "ILIKE"), compile_like),
    **dict.fromkeys(("~", "~*", "!~", "!~*"), compile_pattern),
    **dict.fromkeys(JSON_OPERATORS, compile_json_operator),
}
CALLS: dict[str, Call] = {
    **{OPERATOR + sign: function for sign, function in OPERATORS.items()},
    "IS DISTINCT FROM": compile_distinct_from,
    "IS NOT DISTINCT FROM": compile_distinct_from,
    **{
        f"IS {negation}{word}": compile_boolean_test
        for word in ("TRUE", "FALSE", "UNKNOWN")
        for negation in ("", "NOT ")
    },
    "SUBSCRIPT": compile_subscript,
    "SLICE": compile_slice,
}
HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Literal: compile_literal,
    exp.Neg: compile_negative_number,
    exp.Not: compile_not,
    exp.Between: compile_between,
    exp.In: compile_in,
    exp.Case: compile_case,
    exp.Cast: compile_cast,
    **dict.fromkeys(SIGNS, compile_comparison),
}
