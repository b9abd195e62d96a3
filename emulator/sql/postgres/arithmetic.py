"""Operators of numbers, times and bits in the PostgreSQL dialect."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Compiler
from emulator.sql.postgres import casts
from emulator.sql.postgres.matching import match, match_type, no_operator, two
from emulator.sql.postgres.operator_trees import OPERATOR
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import (
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    INTERVAL,
    PG_NUMERIC,
    TIMESTAMP,
)
from spanner_schema.model.column_types import TypeCode

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
