"""Mathematics of FLOAT64, and of NUMERIC where Spanner is exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, DecimalException

from emulator.errors import out_of_range
from emulator.sql.functions.numbers import Float, float_function, read_float, write_float
from emulator.sql.functions.served import ServedFunctions
from emulator.values.forms import NUMERIC_CONTEXT, decimal_from_numeric, numeric_from_decimal
from emulator.values.types import BOOL, FLOAT64, NUMERIC


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


def is_nan(value: Float) -> bool:
    """IS_NAN."""
    return value == "NaN"


def is_infinite(value: Float) -> bool:
    """IS_INF."""
    return math.isinf(read_float(value))


TRIGONOMETRY: dict[str, Callable[..., float]] = {
    "SIN": math.sin,
    "COS": math.cos,
    "TAN": math.tan,
    "ASIN": math.asin,
    "ACOS": math.acos,
    "ATAN": math.atan,
}
"""Those of both dialects."""
FLOAT_FUNCTIONS: dict[str, Callable[..., float]] = {
    "EXP": math.exp,
    "LN": math.log,
    "LOG10": math.log10,
    **TRIGONOMETRY,
    "SINH": math.sinh,
    "COSH": math.cosh,
    "TANH": math.tanh,
    "ASINH": math.asinh,
    "ACOSH": math.acosh,
    "ATANH": math.atanh,
}

NUMERIC_FUNCTIONS = {
    "SQRT": NUMERIC_CONTEXT.sqrt,
    "EXP": NUMERIC_CONTEXT.exp,
    "LN": NUMERIC_CONTEXT.ln,
    "LOG10": NUMERIC_CONTEXT.log10,
}


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    two, exact = [FLOAT64, FLOAT64], [NUMERIC, NUMERIC]
    add("SQRT", [FLOAT64], FLOAT64, square_root)
    for name, run in FLOAT_FUNCTIONS.items():
        add(name, [FLOAT64], FLOAT64, float_function(run, name))
    add("POW POWER", two, FLOAT64, power)
    add("ATAN2", two, FLOAT64, float_function(math.atan2, "ATAN2"))
    add("LOG", two, FLOAT64, float_function(logarithm, "LOG"), optional=1)
    log = numeric_function(numeric_logarithm, "LOG")
    add("LOG", exact, NUMERIC, log, function="fn_log_numeric", optional=1)
    pow_ = numeric_function(NUMERIC_CONTEXT.power, "POW")
    add("POW POWER", exact, NUMERIC, pow_, function="fn_pow_numeric")
    for name, method in NUMERIC_FUNCTIONS.items():
        function = f"fn_{name.lower()}_numeric"
        add(name, [NUMERIC], NUMERIC, numeric_function(method, name), function=function)
    add("IS_NAN", [FLOAT64], BOOL, is_nan)
    add("IS_INF", [FLOAT64], BOOL, is_infinite)
    return served


SERVED = build_served()
FUNCTIONS = SERVED.at_run_time
