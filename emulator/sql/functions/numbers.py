"""Arithmetic as Spanner does it: overflow and division by zero are OUT_OF_RANGE."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
)

from emulator.errors import out_of_range
from emulator.sql.functions.served import ServedFunctions
from emulator.values.forms import (
    NUMERIC_CONTEXT,
    decimal_from_numeric,
    numeric_from_decimal,
)
from emulator.values.types import FLOAT32, FLOAT64, INT64, NUMERIC

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
DOUBLE_CONTEXT = Context(prec=1500)
"""Holds every double, and every double rounded to a digit, exactly."""

DIGITS_MIN, DIGITS_MAX = -308, 323
"""Rounding a double to fewer digits gives 0, to more digits the double itself."""

Float = float | str


def read_float(value: Float) -> float:
    """A float from its storage form."""
    return math.nan if value == "NaN" else float(value)


def write_float(value: float) -> Float:
    """A float in its storage form."""
    return "NaN" if math.isnan(value) else value


def check_int64(value: int, what: str) -> int:
    """An integer that must fit INT64."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise out_of_range(f"int64 overflow: {what}")
    return value


def int64_add(left: int, right: int) -> int:
    """INT64 + INT64."""
    return check_int64(left + right, f"{left} + {right}")


def int64_sub(left: int, right: int) -> int:
    """INT64 - INT64."""
    return check_int64(left - right, f"{left} - {right}")


def int64_mul(left: int, right: int) -> int:
    """INT64 * INT64."""
    return check_int64(left * right, f"{left} * {right}")


def int64_div(left: int, right: int) -> int:
    """DIV: the integer quotient towards zero."""
    if right == 0:
        raise out_of_range(f"division by zero: {left} / {right}")
    quotient = abs(left) // abs(right)
    return check_int64(quotient if (left < 0) == (right < 0) else -quotient, f"{left} / {right}")


def int64_mod(left: int, right: int) -> int:
    """MOD keeps the sign of the dividend."""
    if right == 0:
        raise out_of_range(f"division by zero: MOD({left}, {right})")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def float_operation(operation: Callable[[float, float], float], sign: str) -> Callable[..., Float]:
    """A float operation whose overflow from finite values is an error."""

    def call(left: Float, right: Float) -> Float:
        first, second = read_float(left), read_float(right)
        result = operation(first, second)
        if math.isinf(result) and math.isfinite(first) and math.isfinite(second):
            raise out_of_range(f"double overflow: {first} {sign} {second}")
        return write_float(result)

    return call


def divide(left: float, right: float) -> float:
    """FLOAT64 / FLOAT64: by zero is an error."""
    if right == 0:
        raise out_of_range(f"division by zero: {left} / {right}")
    return left / right


def ieee_divide(left: Float, right: Float) -> Float:
    """IEEE_DIVIDE: no error, ever."""
    first, second = read_float(left), read_float(right)
    if second != 0:
        return write_float(first / second)
    if first == 0 or math.isnan(first):
        return "NaN"
    return math.copysign(math.inf, first) * math.copysign(1.0, second)


def numeric_operation(
    operation: Callable[[Decimal, Decimal], Decimal], sign: str
) -> Callable[..., str]:
    """A NUMERIC operation, rounded half away from zero to nine digits."""

    def call(left: str, right: str) -> str:
        first, second = decimal_from_numeric(left), decimal_from_numeric(right)
        if sign in {"/", "MOD", "DIV"} and second == 0:
            raise out_of_range(f"division by zero: {first} {sign} {second}")
        try:
            return numeric_from_decimal(operation(first, second))
        except ValueError as error:
            raise out_of_range(f"numeric overflow: {first} {sign} {second}") from error

    return call


def round_numeric(mode: str) -> Callable[..., str]:
    """ROUND, TRUNC, CEIL, FLOOR of a NUMERIC to so many digits."""

    def call(form: str, digits: int = 0) -> str:
        step = Decimal(1).scaleb(-min(max(digits, -38), 9))
        value = decimal_from_numeric(form).quantize(step, mode, NUMERIC_CONTEXT)
        try:
            return numeric_from_decimal(value or Decimal(0))
        except ValueError as error:
            raise out_of_range(f"numeric overflow: {value}") from error

    return call


def round_float(mode: str, name: str) -> Callable[..., Float]:
    """ROUND (half away from zero) and TRUNC of the number that the double is, to so many digits."""

    def call(value: Float, digits: int = 0) -> Float:
        number = read_float(value)
        if digits > DIGITS_MAX or not math.isfinite(number):
            return value
        if digits < DIGITS_MIN:
            return 0.0
        step = Decimal(1).scaleb(-digits)
        rounded = float(Decimal(number).quantize(step, mode, DOUBLE_CONTEXT))
        if math.isinf(rounded):
            raise out_of_range(f"Floating point overflow in function: {name}({number}, {digits})")
        return math.copysign(rounded, number)

    return call


def keep_sign(function: Callable[[float], int]) -> Callable[[float], float]:
    """A function to whole numbers, of infinities, too; what becomes zero keeps its sign."""
    return lambda x: x if math.isinf(x) else math.copysign(float(function(x)), x)


def float_function(function: Callable[..., float], name: str) -> Callable[..., Float]:
    """A function of mathematics; outside its domain is an error, except for infinities."""

    def call(*values: Float) -> Float:
        numbers = [read_float(value) for value in values]
        if any(map(math.isnan, numbers)):
            return "NaN"
        try:
            return write_float(function(*numbers))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            if any(map(math.isinf, numbers)):
                return "NaN"
            listed = ", ".join(map(str, numbers))
            raise out_of_range(f"Floating point error in function: {name}({listed})") from error

    return call


def to_float32(value: Float) -> Float:
    """Rounded to single precision; too large is an error."""
    number = read_float(value)
    if not math.isfinite(number):
        return value
    try:
        result: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError as error:
        raise out_of_range(f"float overflow: {number}") from error
    return result


def sign_of(number: float) -> int:
    """-1, 0 or 1."""
    return (number > 0) - (number < 0)


def abs_int64(value: int) -> int:
    """ABS of INT64."""
    return check_int64(abs(value), f"ABS({value})")


def abs_numeric(form: str) -> str:
    """ABS of NUMERIC."""
    return numeric_from_decimal(NUMERIC_CONTEXT.abs(decimal_from_numeric(form)))


def sign_numeric(form: str) -> str:
    """SIGN of NUMERIC."""
    return numeric_from_decimal(Decimal(sign_of(float(decimal_from_numeric(form)))))


def sign_float(value: Float) -> Float:
    """SIGN of FLOAT64."""
    number = read_float(value)
    return "NaN" if math.isnan(number) else float(sign_of(number))


def extreme_float(choose: Callable[..., float]) -> Callable[..., Float]:
    """GREATEST and LEAST of floats: NaN if any is."""

    def call(*values: Float) -> Float:
        return "NaN" if "NaN" in values else choose(*map(read_float, values))

    return call


def check_not_negative(value: int | None, where: str) -> int:
    """A LIMIT or OFFSET, or the size of a sample."""
    if value is None:
        raise out_of_range(f"{where} requires a value that is not NULL")
    if value < 0:
        raise out_of_range(f"{where} expects a non-negative integer, got {value}")
    return value


def error(message: str) -> int:
    """ERROR(message)."""
    raise out_of_range(message)


def negate_float(value: Float) -> Float:
    """-x of FLOAT64: also of zero."""
    return write_float(-read_float(value))


def quotient(left: Decimal, right: Decimal) -> Decimal:
    """DIV of NUMERIC: towards zero."""
    return NUMERIC_CONTEXT.divide(left, right).quantize(Decimal(1), ROUND_DOWN, NUMERIC_CONTEXT)


def check_percentage(value: Float | None) -> Float:
    """The percentage of TABLESAMPLE."""
    if value is None:
        raise out_of_range("TABLESAMPLE requires a size that is not NULL")
    if value == "NaN" or not 0 <= read_float(value) <= 100:
        raise out_of_range(f"PERCENT value {value} of TABLESAMPLE must be from 0 to 100")
    return value


def negate_int64(value: int) -> int:
    """-x of INT64."""
    return check_int64(-value, f"-({value})")


def negate_numeric(form: str) -> str:
    """-x of NUMERIC."""
    return numeric_from_decimal(NUMERIC_CONTEXT.minus(decimal_from_numeric(form)))


def abs_float(value: Float) -> Float:
    """ABS of floats."""
    return write_float(abs(read_float(value)))


def add_arithmetic(served: ServedFunctions) -> None:
    """ABS, SIGN, MOD, DIV, and the operators' other forms."""
    add = served.add
    add("ABS", [INT64], INT64, abs_int64, function="fn_abs_int64")
    add("ABS", [NUMERIC], NUMERIC, abs_numeric, function="fn_abs_numeric")
    add("SIGN", [INT64], INT64, sign_of, function="fn_sign_int64")
    add("SIGN", [NUMERIC], NUMERIC, sign_numeric, function="fn_sign_numeric")
    for number in (FLOAT32, FLOAT64):
        add("ABS", [number], number, abs_float, function="fn_abs_float64")
        add("SIGN", [number], number, sign_float, function="fn_sign_float64")
    for number, kind in KINDS:
        add("SAFE_NEGATE", [number], number, f"safe_{kind}_negate")
    for name, operator in (("ADD", "add"), ("SUBTRACT", "sub"), ("MULTIPLY", "mul")):
        for number, kind in KINDS:
            if number is not FLOAT32:
                add(f"SAFE_{name}", [number, number], number, f"safe_{kind}_{operator}")
    add("MOD", [INT64, INT64], INT64, int64_mod, function="int64_mod")
    remainder = numeric_operation(NUMERIC_CONTEXT.remainder, "MOD")
    add("MOD", [NUMERIC, NUMERIC], NUMERIC, remainder, function="numeric_mod")
    add("DIV", [INT64, INT64], INT64, int64_div, function="int64_div")
    whole = numeric_operation(quotient, "DIV")
    add("DIV", [NUMERIC, NUMERIC], NUMERIC, whole, function="numeric_quotient")
    # Of INT64 the result is FLOAT64: between two conversions the first listed is taken.
    add("SAFE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64, "safe_float64_div")
    add("SAFE_DIVIDE", [NUMERIC, NUMERIC], NUMERIC, "safe_numeric_div")
    add("IEEE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64, ieee_divide)


def add_rounding(served: ServedFunctions) -> None:
    """CEIL, FLOOR, ROUND, TRUNC."""
    add = served.add
    for names, name, whole, direction in (
        ("CEIL CEILING", "CEIL", math.ceil, ROUND_CEILING),
        ("FLOOR", "FLOOR", math.floor, ROUND_FLOOR),
    ):
        add(names, [FLOAT64], FLOAT64, float_function(keep_sign(whole), name))
        exact = round_numeric(direction)
        add(names, [NUMERIC], NUMERIC, exact, function=f"fn_{name.lower()}_numeric")
    for name, direction in (("ROUND", ROUND_HALF_UP), ("TRUNC", ROUND_DOWN)):
        add(name, [FLOAT64, INT64], FLOAT64, round_float(direction, name), optional=1)
        exact = round_numeric(direction)
        function = f"fn_{name.lower()}_numeric"
        add(name, [NUMERIC, INT64], NUMERIC, exact, function=function, optional=1)


KINDS = ((INT64, "int64"), (NUMERIC, "numeric"), (FLOAT32, "float64"), (FLOAT64, "float64"))
"""How the operators of a type are called."""


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add_arithmetic(served)
    add_rounding(served)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "int64_add": int64_add,
    "int64_sub": int64_sub,
    "int64_mul": int64_mul,
    "float64_add": float_operation(lambda a, b: a + b, "+"),
    "float64_sub": float_operation(lambda a, b: a - b, "-"),
    "float64_mul": float_operation(lambda a, b: a * b, "*"),
    "float64_div": float_operation(divide, "/"),
    "numeric_add": numeric_operation(NUMERIC_CONTEXT.add, "+"),
    "numeric_sub": numeric_operation(NUMERIC_CONTEXT.subtract, "-"),
    "numeric_mul": numeric_operation(NUMERIC_CONTEXT.multiply, "*"),
    "numeric_div": numeric_operation(NUMERIC_CONTEXT.divide, "/"),
    "int64_negate": negate_int64,
    "float64_negate": negate_float,
    "numeric_negate": negate_numeric,
    "fn_greatest_float64": extreme_float(max),
    "fn_least_float64": extreme_float(min),
    "fn_error": error,
    "to_float32": to_float32,
    **SERVED.at_run_time,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "fn_not_negative": check_not_negative,
    "fn_percentage": check_percentage,
}
"""Checks that refuse NULL."""
