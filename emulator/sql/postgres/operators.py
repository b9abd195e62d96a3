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
from emulator.sql.postgres.expression_trees import TYPE
from emulator.sql.postgres.operator_trees import COMPARISONS, OPERATOR
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    INTERVAL,
    PG_JSONB,
    PG_NUMERIC,
    STRING,
    TIMESTAMP,
    array,
)
from spanner_schema.model.column_types import Type, TypeCode

SIGNS = {kind: sign for sign, kind in COMPARISONS.items()}
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
KINDS = {TypeCode.INT64: "int8", TypeCode.PG_NUMERIC: "numeric", TypeCode.FLOAT64: "float8"}
BITWISE = {
    "&": "({} & {})",
    "|": "({} | {})",
    "#": "pg_int8_xor({}, {})",
    "<<": "pg_int8_shift_left({}, {})",
    ">>": "pg_int8_shift_right({}, {})",
}
NUMBERS = casts.NUMBERS


def no_operator(sign: str, items: list[Typed]) -> errors.SpannerError:
    """PostgreSQL's words for operands that an operator does not take."""
    shown = f" {sign} ".join(
        "unknown" if casts.is_unknown(each) else show_type(each.type) for each in items
    )
    return errors.invalid_argument(f"operator does not exist: {shown}")


def match(items: list[Typed], sign: str, context: Context) -> tuple[list[Typed], Type]:
    """The operands as one type. Raises INVALID_ARGUMENT where they have none."""
    target = casts.operand_type(items)
    converted = casts.coerce_all(items, target, context)
    if converted is None:
        raise no_operator(sign, items)
    return converted, target


def match_type(items: list[Typed], type_: Type, sign: str, context: Context) -> list[str]:
    """The operands as a type. Raises INVALID_ARGUMENT where one is of another."""
    converted = casts.coerce_all(items, type_, context)
    if converted is None:
        raise no_operator(sign, items)
    return [item.sql for item in converted]


def comparable(item: Typed) -> str:
    """What is compared: numerics by their keys, documents without the scale of numbers."""
    if item.type == PG_NUMERIC:
        return f"pg_numeric_key({item.sql})"
    if item.type == PG_JSONB:
        return f"pg_jsonb_key({item.sql})"
    if item.type == INTERVAL:
        return f"fn_interval_order({item.sql})"
    return item.sql


def compare(left: Typed, sign: str, right: Typed, type_: Type) -> str:
    """A comparison of two of one type. NaN, a text in storage, is greater than every number."""
    ordered = sign not in {"=", "<>"}
    if ordered and type_.code in {TypeCode.ARRAY, TypeCode.PG_JSONB}:
        raise errors.unimplemented(f"{sign} of the type {show_type(type_)}")
    if type_.code is TypeCode.ARRAY and type_.element in {PG_NUMERIC, PG_JSONB}:
        raise errors.unimplemented(f"{sign} of the type {show_type(type_)}")
    return f"({comparable(left)} {sign} {comparable(right)})"


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


def compile_negative_number(
    compiler: Compiler, node: exp.Neg, scope: Scope, context: Context
) -> Typed:
    """A number behind a minus."""
    text = str(node.this.this)
    node.this.args.get("is_string")
    return number_literal(f"-{text}")


def number_literal(text: str) -> Typed:
    """A bigint where the digits fit one, else a numeric."""
    if text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**63:
        number = int(text)
        sql = f"(-{2**63 - 1} - 1)" if number == -(2**63) else str(number)
        return Typed(f"({sql})" if number < 0 else sql, INT64, literal=str(number))
    plain = text if "x" not in text.lower() else str(int(text, 16))
    return Typed(casts.literal_of(plain, PG_NUMERIC), PG_NUMERIC)


def compile_literal(compiler: Compiler, node: exp.Literal, scope: Scope, context: Context) -> Typed:
    """A number, or a text that is of no type yet."""
    text = str(node.this)
    if node.is_string:
        return Typed(casts.write_stored(text), STRING, literal=text)
    return number_literal(text)


def two(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> list[Typed]:
    """The operands."""
    return [compiler.compile(each, scope, context) for each in node.expressions]


def compile_arithmetic(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """+ - * / % of numbers, + and - of a date and days."""
    return arithmetic(
        node.name.removeprefix(OPERATOR), two(compiler, node, scope, context), context
    )


def arithmetic(sign: str, items: list[Typed], context: Context) -> Typed:
    """An operation by the types of its operands."""
    known = [item.type for item in items if item.type is not None and not casts.is_unknown(item)]
    if DATE in known:
        return date_arithmetic(sign, items, context)
    if not known:
        raise errors.invalid_argument(f"operator is not unique: unknown {sign} unknown")
    if INTERVAL in known or TIMESTAMP in known:
        return time_arithmetic(sign, items, context)
    if any(type_.code not in NUMBERS for type_ in known):
        raise no_operator(sign, items)
    return number_arithmetic(sign, items, context)


def number_arithmetic(sign: str, items: list[Typed], context: Context) -> Typed:
    """The operation in the type of both."""
    operands, type_ = match(items, sign, context)
    listed = ", ".join(each.sql for each in operands)
    if type_ == FLOAT32 and sign != "%":
        return Typed(f"pg_to_float4(pg_float8_{ARITHMETIC[sign]}({listed}))", FLOAT32)
    if sign == "%" and type_.code not in {TypeCode.INT64, TypeCode.PG_NUMERIC}:
        raise no_operator(sign, items)
    return Typed(f"pg_{KINDS[type_.code]}_{ARITHMETIC[sign]}({listed})", type_)


def time_arithmetic(sign: str, items: list[Typed], context: Context) -> Typed:
    """+ and - of times and intervals, * and / of an interval and a number."""
    left, right = items
    if sign in {"*", "/"}:
        if sign == "*" and right.type == INTERVAL and left.type != INTERVAL:
            left, right = right, left
        factor = casts.coerce(right, FLOAT64, context)
        if left.type != INTERVAL or factor is None:
            raise no_operator(sign, items)
        word = "mul" if sign == "*" else "div"
        return Typed(f"pg_interval_{word}({left.sql}, {factor.sql})", INTERVAL)
    if sign == "+" and right.type == TIMESTAMP and left.type != TIMESTAMP:
        left, right = right, left
    if sign == "-" and left.type != INTERVAL and right.type == TIMESTAMP:
        moment = casts.coerce(left, TIMESTAMP, context)
        if moment is None:
            raise no_operator(sign, items)
        return Typed(f"pg_timestamptz_between({moment.sql}, {right.sql})", INTERVAL)
    if left.type == TIMESTAMP and sign == "-" and casts.is_unknown(right):
        moment = casts.coerce(right, TIMESTAMP, context)
        return Typed(
            f"pg_timestamptz_between({left.sql}, {moment.sql if moment else ''})", INTERVAL
        )
    amount = casts.coerce(right, INTERVAL, context)
    if sign not in {"+", "-"} or amount is None:
        raise no_operator(sign, items)
    word = "add" if sign == "+" else "sub"
    if left.type == TIMESTAMP:
        return Typed(f"pg_timestamptz_{word}({left.sql}, {amount.sql})", TIMESTAMP)
    first = casts.coerce(left, INTERVAL, context)
    if first is None:
        raise no_operator(sign, items)
    return Typed(f"fn_interval_{word}({first.sql}, {amount.sql})", INTERVAL)


def date_arithmetic(sign: str, items: list[Typed], context: Context) -> Typed:
    """date + bigint, date - bigint, date - date."""
    left, right = items
    if sign == "-" and left.type == DATE and right.type == DATE:
        return Typed(f"pg_days_between({left.sql}, {right.sql})", INT64)
    if sign == "+" and left.type == INT64 and right.type == DATE:
        left, right = right, left
    if sign in {"+", "-"} and left.type == DATE and right.type == INT64:
        days = right.sql if sign == "+" else f"pg_int8_neg({right.sql})"
        return Typed(f"pg_add_days({left.sql}, {days})", DATE)
    if any(each.type is None or casts.is_unknown(each) for each in items):
        raise errors.unimplemented(f"{sign} of a date and a value without a type")
    raise no_operator(sign, items)


def compile_sign(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """-x and +x."""
    sign = node.name.removeprefix(OPERATOR + "unary ")
    (item,) = two(compiler, node, scope, context)
    if sign == "-" and item.type == INTERVAL:
        return Typed(f"pg_interval_neg({item.sql})", INTERVAL)
    if item.type is None or casts.is_unknown(item):
        item = casts.coerce(item, FLOAT64, context) or item
    if item.type is None or item.type.code not in NUMBERS:
        raise errors.invalid_argument(f"operator does not exist: {sign} {show_type(item.type)}")
    if sign == "+":
        return replace(item, literal=None, column="")
    kind = KINDS.get(item.type.code, "float8")
    return Typed(f"pg_{kind}_neg({item.sql})", item.type)


def compile_complement(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """~x."""
    (item,) = two(compiler, node, scope, context)
    converted = casts.coerce(item, INT64, context)
    if converted is None:
        raise errors.invalid_argument(f"operator does not exist: ~ {show_type(item.type)}")
    return Typed(f"(~{converted.sql})", INT64)


def compile_bitwise(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """& | # << >> of bigint."""
    sign = node.name.removeprefix(OPERATOR)
    items = two(compiler, node, scope, context)
    operands = match_type(items, INT64, sign, context)
    return Typed(BITWISE[sign].format(*operands), INT64)


def compile_power(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """^, which is of double precision as power is."""
    items = two(compiler, node, scope, context)
    operands = match_type(items, FLOAT64, "^", context)
    return Typed(f"pg_float8_power({', '.join(operands)})", FLOAT64)


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
