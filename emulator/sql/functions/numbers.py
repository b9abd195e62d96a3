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
    DecimalException,
)

from emulator.errors import out_of_range
from emulator.values.forms import (
    NUMERIC_CONTEXT,
    decimal_from_numeric,
    numeric_from_decimal,
)

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


def square_root(value: Float) -> Float:
    """SQRT: of minus infinity, too, it is an error."""
    number = read_float(value)
    if number < 0:
        raise out_of_range(f"Argument to SQRT cannot be negative: {number}")
    return write_float(math.sqrt(number))


def logarithm(value: float, base: float = math.e) -> float:
    """LOG(x [, base])."""
    if math.isinf(base):
        return math.nan
    if base == 1 and math.isinf(value) and value > 0:
        return math.inf
    return math.log(value) / math.log(base)


def power(left: Float, right: Float) -> Float:
    """POW: also of NaN there are answers (1 to any power, any to the power of 0)."""
    base, exponent = read_float(left), read_float(right)
    try:
        return write_float(math.pow(base, exponent))
    except (ValueError, OverflowError) as error:
        if not math.isfinite(base) or not math.isfinite(exponent):
            return "NaN"
        raise out_of_range(f"Floating point error in function: POW({base}, {exponent})") from error


def numeric_function(function: Callable[..., Decimal], name: str) -> Callable[..., str]:
    """A function of mathematics on NUMERIC, rounded to nine digits."""

    def call(*values: str) -> str:
        numbers = [decimal_from_numeric(value) for value in values]
        try:
            return numeric_from_decimal(function(*numbers))
        except (DecimalException, ValueError) as error:
            listed = ", ".join(map(str, numbers))
            raise out_of_range(f"Error in function: {name}({listed})") from error

    return call


def numeric_logarithm(value: Decimal, base: Decimal | None = None) -> Decimal:
    """LOG(x [, base])."""
    natural = NUMERIC_CONTEXT.ln(value)
    return natural if base is None else NUMERIC_CONTEXT.divide(natural, NUMERIC_CONTEXT.ln(base))


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


FUNCTIONS: dict[str, Callable[..., object]] = {
    "int64_add": int64_add,
    "int64_sub": int64_sub,
    "int64_mul": int64_mul,
    "int64_div": int64_div,
    "int64_mod": int64_mod,
    "float64_add": float_operation(lambda a, b: a + b, "+"),
    "float64_sub": float_operation(lambda a, b: a - b, "-"),
    "float64_mul": float_operation(lambda a, b: a * b, "*"),
    "float64_div": float_operation(divide, "/"),
    "numeric_add": numeric_operation(NUMERIC_CONTEXT.add, "+"),
    "numeric_sub": numeric_operation(NUMERIC_CONTEXT.subtract, "-"),
    "numeric_mul": numeric_operation(NUMERIC_CONTEXT.multiply, "*"),
    "numeric_div": numeric_operation(NUMERIC_CONTEXT.divide, "/"),
    "numeric_quotient": numeric_operation(quotient, "DIV"),
    "int64_negate": lambda v: check_int64(-v, f"-({v})"),
    "float64_negate": negate_float,
    "numeric_negate": lambda v: numeric_from_decimal(
        NUMERIC_CONTEXT.minus(decimal_from_numeric(v))
    ),
    "numeric_mod": numeric_operation(NUMERIC_CONTEXT.remainder, "MOD"),
    "fn_ieee_divide": ieee_divide,
    "fn_abs_int64": abs_int64,
    "fn_abs_float64": lambda v: write_float(abs(read_float(v))),
    "fn_abs_numeric": abs_numeric,
    "fn_sign_int64": sign_of,
    "fn_sign_float64": sign_float,
    "fn_sign_numeric": sign_numeric,
    "fn_ceil_numeric": round_numeric(ROUND_CEILING),
    "fn_floor_numeric": round_numeric(ROUND_FLOOR),
    "fn_round_numeric": round_numeric(ROUND_HALF_UP),
    "fn_trunc_numeric": round_numeric(ROUND_DOWN),
    "fn_ceil": float_function(keep_sign(math.ceil), "CEIL"),
    "fn_floor": float_function(keep_sign(math.floor), "FLOOR"),
    "fn_round": round_float(ROUND_HALF_UP, "ROUND"),
    "fn_trunc": round_float(ROUND_DOWN, "TRUNC"),
    "fn_sqrt": square_root,
    "fn_exp": float_function(math.exp, "EXP"),
    "fn_ln": float_function(math.log, "LN"),
    "fn_log": float_function(logarithm, "LOG"),
    "fn_log10": float_function(math.log10, "LOG10"),
    "fn_pow": power,
    "fn_pow_numeric": numeric_function(NUMERIC_CONTEXT.power, "POW"),
    "fn_sqrt_numeric": numeric_function(NUMERIC_CONTEXT.sqrt, "SQRT"),
    "fn_exp_numeric": numeric_function(NUMERIC_CONTEXT.exp, "EXP"),
    "fn_ln_numeric": numeric_function(NUMERIC_CONTEXT.ln, "LN"),
    "fn_log10_numeric": numeric_function(NUMERIC_CONTEXT.log10, "LOG10"),
    "fn_log_numeric": numeric_function(numeric_logarithm, "LOG"),
    "fn_sin": float_function(math.sin, "SIN"),
    "fn_cos": float_function(math.cos, "COS"),
    "fn_tan": float_function(math.tan, "TAN"),
    "fn_asin": float_function(math.asin, "ASIN"),
    "fn_acos": float_function(math.acos, "ACOS"),
    "fn_atan": float_function(math.atan, "ATAN"),
    "fn_sinh": float_function(math.sinh, "SINH"),
    "fn_cosh": float_function(math.cosh, "COSH"),
    "fn_tanh": float_function(math.tanh, "TANH"),
    "fn_asinh": float_function(math.asinh, "ASINH"),
    "fn_acosh": float_function(math.acosh, "ACOSH"),
    "fn_atanh": float_function(math.atanh, "ATANH"),
    "fn_atan2": float_function(math.atan2, "ATAN2"),
    "fn_is_nan": lambda v: v == "NaN",
    "fn_is_inf": lambda v: math.isinf(read_float(v)),
    "fn_greatest_float64": extreme_float(max),
    "fn_least_float64": extreme_float(min),
    "fn_error": error,
    "to_float32": to_float32,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "fn_not_negative": check_not_negative,
    "fn_percentage": check_percentage,
}
"""Checks that refuse NULL."""
