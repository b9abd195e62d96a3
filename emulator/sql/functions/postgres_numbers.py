"""Arithmetic of the PostgreSQL dialect, with the scales that PostgreSQL gives numerics."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal

from emulator.errors import SpannerError, invalid_argument, out_of_range
from emulator.sql.functions.mathematics import TRIGONOMETRY
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN, Float, read_float, write_float
from emulator.sql.functions.served import ServedFunctions
from emulator.values.pg_numeric import (
    CONTEXT,
    SCALE_MAX,
    number_of_form,
    numeric_form,
    scale_of,
)
from emulator.values.types import FLOAT32, FLOAT64, INT64, PG_NUMERIC

SIGNIFICANT_DIGITS_MIN = 16
DIGITS_OF_GROUP = 4
DISPLAY_SCALE_MAX = 1_000
SINGLE = struct.Struct("<f")


def division_by_zero() -> SpannerError:
    """Of any type."""
    return out_of_range("division by zero")


def check_bigint(value: int) -> int:
    """An integer that must fit bigint."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise out_of_range("bigint out of range")
    return value


def int_quotient(left: int, right: int) -> int:
    """Towards zero."""
    if right == 0:
        raise division_by_zero()
    quotient = abs(left) // abs(right)
    return check_bigint(quotient if (left < 0) == (right < 0) else -quotient)


def int_remainder(left: int, right: int) -> int:
    """With the sign of the dividend."""
    if right == 0:
        raise division_by_zero()
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def shift(value: int, count: int, *, left: bool) -> int:
    """<< and >> of 64 bits; as on most machines the count is taken modulo 64."""
    count %= 64
    moved = value << count if left else value >> count
    moved &= (1 << 64) - 1
    return moved - (1 << 64) if moved >> 63 else moved


def float_overflow(result: float, *operands: float) -> float:
    """The result; an infinity that no operand was is out of range.

    What is too small is 0 in Spanner, where PostgreSQL refuses it.
    """
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise out_of_range("value out of range: overflow")
    return result


def float_add(left: Float, right: Float) -> Float:
    """+ of double precision."""
    first, second = read_float(left), read_float(right)
    return write_float(float_overflow(first + second, first, second))


def float_sub(left: Float, right: Float) -> Float:
    """- of double precision."""
    first, second = read_float(left), read_float(right)
    return write_float(float_overflow(first - second, first, second))


def float_mul(left: Float, right: Float) -> Float:
    """* of double precision."""
    first, second = read_float(left), read_float(right)
    return write_float(float_overflow(first * second, first, second))


def float_div(left: Float, right: Float) -> Float:
    """/ of double precision."""
    first, second = read_float(left), read_float(right)
    if second == 0 and not math.isnan(first):
        raise division_by_zero()
    if second == 0:
        return "NaN"
    return write_float(float_overflow(first / second, first, second))


def to_real(value: Float) -> Float:
    """Rounded to single precision; what is too large, or too small, is out of range."""
    number = read_float(value)
    if not math.isfinite(number):
        return value
    try:
        rounded: float = SINGLE.unpack(SINGLE.pack(number))[0]
    except OverflowError as error:
        raise out_of_range("value out of range: overflow") from error
    if rounded == 0 and number != 0:
        raise out_of_range("value out of range: underflow")
    return rounded


def to_form(number: Decimal) -> str:
    """The stored form of a result."""
    try:
        return numeric_form(number)
    except ValueError as error:
        raise out_of_range("value overflows numeric format") from error


def rounded_to(number: Decimal, scale: int, mode: str = ROUND_HALF_UP) -> Decimal:
    """A number with so many digits behind the point (before it where negative)."""
    if number.is_nan():
        return number
    rounded = number.quantize(Decimal(1).scaleb(-scale), mode, CONTEXT)
    return rounded if scale >= 0 else rounded.quantize(Decimal(1), context=CONTEXT)


def numeric_operation(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., str]:
    """An operation of two numerics; NaN of NaN."""

    def call(left: str, right: str) -> str:
        first, second = number_of_form(left), number_of_form(right)
        if first.is_nan() or second.is_nan():
            return to_form(Decimal("NaN"))
        return to_form(operation(first, second))

    return call


def add(left: Decimal, right: Decimal) -> Decimal:
    """With the larger scale."""
    return CONTEXT.add(left, right)


def multiply(left: Decimal, right: Decimal) -> Decimal:
    """With both scales together."""
    product = CONTEXT.multiply(left, right)
    return rounded_to(product, min(scale_of(left) + scale_of(right), SCALE_MAX))


def divide(left: Decimal, right: Decimal) -> Decimal:
    """With a scale that gives sixteen significant digits at least."""
    if not right:
        raise division_by_zero()
    scale = division_scale(left, right)
    quotient, rest = divmod(abs(left).scaleb(scale + 1, CONTEXT), abs(right))
    negative = (left < 0) != (right < 0)
    digits = Decimal(int(quotient) * 10 + (1 if rest else 0))
    rounded = rounded_to(digits.scaleb(-scale - 2, CONTEXT), scale)
    return -rounded if negative else rounded


def division_scale(left: Decimal, right: Decimal) -> int:
    """The scale of a quotient, found from groups of four digits as PostgreSQL does."""
    left_weight, left_group = first_group(left)
    right_weight, right_group = first_group(right)
    weight = left_weight - right_weight - (1 if left_group <= right_group else 0)
    scale = SIGNIFICANT_DIGITS_MIN - weight * DIGITS_OF_GROUP
    return min(max(scale, scale_of(left), scale_of(right), 0), DISPLAY_SCALE_MAX)


def first_group(number: Decimal) -> tuple[int, int]:
    """The weight of the first group of four digits that is not zero, and the group."""
    if not number:
        return 0, 0
    weight = number.adjusted() // DIGITS_OF_GROUP
    group = int(abs(number).scaleb(-weight * DIGITS_OF_GROUP, CONTEXT))
    return weight, group


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """With the sign of the dividend and the larger scale."""
    if not right:
        raise division_by_zero()
    scale = max(scale_of(left), scale_of(right))
    whole = int(left.scaleb(scale, CONTEXT))
    part = int(right.scaleb(scale, CONTEXT))
    rest = abs(whole) % abs(part)
    return Decimal(-rest if whole < 0 else rest).scaleb(-scale, CONTEXT)


def whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    """div: towards zero."""
    if not right:
        raise division_by_zero()
    scale = max(scale_of(left), scale_of(right))
    whole, part = int(left.scaleb(scale, CONTEXT)), int(right.scaleb(scale, CONTEXT))
    quotient = abs(whole) // abs(part)
    return Decimal(quotient if (whole < 0) == (part < 0) else -quotient)


def round_numeric(mode: str) -> Callable[..., str]:
    """round, trunc, ceil and floor of a numeric."""

    def call(form: str, scale: int = 0) -> str:
        number = number_of_form(form)
        kept = min(max(scale, -SCALE_MAX), SCALE_MAX)
        return to_form(rounded_to(number, kept, mode))

    return call


def limit_numeric(form: str, precision: int, scale: int) -> str:
    """numeric(p, s): rounded, and refused where it has too many digits."""
    if not 1 <= precision <= DISPLAY_SCALE_MAX:
        raise invalid_argument(
            f"NUMERIC precision {precision} must be between 1 and {DISPLAY_SCALE_MAX}"
        )
    number = rounded_to(number_of_form(form), scale)
    if not number.is_nan() and number and number.adjusted() >= precision - scale:
        raise out_of_range("numeric field overflow")
    return to_form(number)


def sign(value: float) -> int:
    """-1, 0, 1; 0 of NaN, as in PostgreSQL."""
    return (value > 0) - (value < 0)


def numeric_sign(form: str) -> str:
    """-1, 0, 1 or NaN."""
    number = number_of_form(form)
    return form if number.is_nan() else to_form(Decimal((number > 0) - (number < 0)))


def float_function(function: Callable[..., float]) -> Callable[..., Float]:
    """A function of mathematics; outside of its domain is an error."""

    def call(*values: Float) -> Float:
        numbers = [read_float(value) for value in values]
        if any(map(math.isnan, numbers)):
            return "NaN"
        try:
            return write_float(float_overflow(function(*numbers), *numbers))
        except OverflowError as error:
            raise out_of_range("value out of range: overflow") from error
        except ValueError as error:
            raise out_of_range("input is out of range") from error

    return call


def whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """A function to whole numbers; what becomes zero keeps its sign."""
    return lambda x: x if math.isinf(x) else math.copysign(float(function(x)), x)


def square_root(value: float) -> float:
    """Of negative numbers there is none."""
    if value < 0:
        raise out_of_range("cannot take square root of a negative number")
    return math.sqrt(value)


def logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    """ln and log: of positive numbers only."""

    def call(value: float) -> float:
        if value == 0:
            raise out_of_range("cannot take logarithm of zero")
        if value < 0:
            raise out_of_range("cannot take logarithm of a negative number")
        return math.inf if math.isinf(value) else function(value)

    return call


def power(left: Float, right: Float) -> Float:
    """^ and power of double precision: anything to the power of 0, and 1 to any power, is 1."""
    base, exponent = read_float(left), read_float(right)
    if exponent == 0 or base == 1:
        return 1.0
    if math.isnan(base) or math.isnan(exponent):
        return "NaN"
    if base == 0 and exponent < 0:
        raise out_of_range("zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and exponent != int(exponent):
        raise out_of_range(
            "a negative number raised to a non-integer power yields a complex result"
        )
    try:
        result = math.pow(base, exponent)
    except OverflowError as error:
        raise out_of_range("value out of range: overflow") from error
    return write_float(result)


def abs_float(value: Float) -> Float:
    """abs of double precision and real."""
    return write_float(abs(read_float(value)))


def abs_numeric(form: str) -> str:
    """abs of numeric."""
    return to_form(CONTEXT.copy_abs(number_of_form(form)))


def add_arithmetic(served: ServedFunctions) -> None:
    """Arithmetic and rounding; between two conversions double precision is taken."""
    put = served.add
    both = [PG_NUMERIC, PG_NUMERIC]
    put("ABS", [INT64], INT64, lambda a: check_bigint(abs(a)), function="pg_int8_abs")
    put("ABS", [FLOAT64], FLOAT64, abs_float, function="pg_float8_abs")
    put("ABS", [PG_NUMERIC], PG_NUMERIC, abs_numeric, function="pg_numeric_abs")
    put("ABS", [FLOAT32], FLOAT32, abs_float, function="pg_float8_abs")
    for names, whole_float, exact in ROUNDINGS:
        word = names.split()[0].lower()
        put(names, [FLOAT64], FLOAT64, whole_float, function=f"pg_float8_{word}")
        put(names, [PG_NUMERIC], PG_NUMERIC, exact, function=f"pg_numeric_{word}")
    put("ROUND", [PG_NUMERIC, INT64], PG_NUMERIC, "pg_numeric_round")
    put("TRUNC", [PG_NUMERIC, INT64], PG_NUMERIC, "pg_numeric_trunc")
    put("MOD", [INT64, INT64], INT64, int_remainder, function="pg_int8_mod")
    put("MOD", both, PG_NUMERIC, numeric_operation(remainder), function="pg_numeric_mod")
    quotient = numeric_operation(whole_quotient)
    put("DIV", both, PG_NUMERIC, quotient, function="pg_numeric_quotient")


def add_mathematics(served: ServedFunctions) -> None:
    """Functions of double precision, also by the names of PostgreSQL's own catalog."""
    put = served.add
    for names, run in FLOAT_FUNCTIONS.items():
        function = f"pg_float8_{names.split()[0].lower()}"
        put(names, [FLOAT64], FLOAT64, float_function(run), function=function)
    atan2 = float_function(math.atan2)
    put("ATAN2", [FLOAT64, FLOAT64], FLOAT64, atan2, function="pg_float8_atan2")
    put("POWER POW DPOW", [FLOAT64, FLOAT64], FLOAT64, power, function="pg_float8_power")


ROUNDINGS: tuple[tuple[str, Callable[..., object], Callable[..., object]], ...] = (
    ("CEIL CEILING", float_function(whole(math.ceil)), round_numeric(ROUND_CEILING)),
    ("FLOOR", float_function(whole(math.floor)), round_numeric(ROUND_FLOOR)),
    ("ROUND", float_function(whole(round)), round_numeric(ROUND_HALF_UP)),
    ("TRUNC", float_function(whole(math.trunc)), round_numeric(ROUND_DOWN)),
    ("SIGN", lambda value: float(sign(read_float(value))), numeric_sign),
)
"""Of double precision, and of numeric."""
FLOAT_FUNCTIONS: dict[str, Callable[..., float]] = {
    "EXP DEXP": math.exp,
    "LOG LOG10 DLOG10": logarithm(math.log10),
    "LN DLOG1": logarithm(math.log),
    "SQRT DSQRT": square_root,
    **TRIGONOMETRY,
}


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add_arithmetic(served)
    add_mathematics(served)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_int8_add": lambda a, b: check_bigint(a + b),
    "pg_int8_sub": lambda a, b: check_bigint(a - b),
    "pg_int8_mul": lambda a, b: check_bigint(a * b),
    "pg_int8_div": int_quotient,
    "pg_int8_neg": lambda a: check_bigint(-a),
    "pg_int8_sign": sign,
    "pg_int8_xor": lambda a, b: a ^ b,
    "pg_int8_shift_left": lambda a, b: shift(a, b, left=True),
    "pg_int8_shift_right": lambda a, b: shift(a, b, left=False),
    "pg_float8_add": float_add,
    "pg_float8_sub": float_sub,
    "pg_float8_mul": float_mul,
    "pg_float8_div": float_div,
    "pg_float8_neg": lambda a: write_float(-read_float(a)),
    "pg_to_float4": to_real,
    "pg_numeric_add": numeric_operation(add),
    "pg_numeric_sub": numeric_operation(CONTEXT.subtract),
    "pg_numeric_mul": numeric_operation(multiply),
    "pg_numeric_div": numeric_operation(divide),
    "pg_numeric_neg": lambda form: to_form(CONTEXT.copy_negate(number_of_form(form))),
    "pg_numeric_limit": limit_numeric,
    "pg_numeric_key": lambda form: form.partition(":")[0],
    **SERVED.at_run_time,
}
