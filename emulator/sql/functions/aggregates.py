"""Aggregate functions that SQLite has not, or has differently."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from emulator.errors import out_of_range
from emulator.sql.functions.arrays import dump, to_json
from emulator.sql.functions.intervals import order_text
from emulator.sql.functions.numbers import Float, read_float, write_float
from emulator.values.forms import NUMERIC_CONTEXT, decimal_from_numeric, numeric_from_decimal

Step = Callable[..., None]
Final = Callable[[list[object]], object]
Factory = Callable[[], tuple[list[object], Step, Any]]


def aggregate_all(finish: Callable[[list[object]], object], nulls: bool = False) -> Factory:
    """An aggregate that looks at all its values at the end."""

    def factory() -> tuple[list[object], Step, Final]:
        def step(values: list[object], value: object) -> None:
            if nulls or value is not None:
                values.append(value)

        return [], step, finish

    return factory


def read_floats(values: list[object]) -> list[float]:
    """Floats from their storage form."""
    return [read_float(v) for v in values if isinstance(v, int | float | str)]


def sum_float(values: list[object]) -> Float | None:
    """SUM of FLOAT64; finite values that overflow are an error."""
    if not values:
        return None
    return divided_sum(read_floats(values), 1, "SUM")


def average_float(values: list[object]) -> Float | None:
    """AVG of FLOAT64: the sum between may be larger than a double."""
    return divided_sum(read_floats(values), len(values), "AVG") if values else None


def divided_sum(numbers: list[float], divisor: int, name: str) -> Float:
    """The sum, exact before it is divided."""
    if not all(map(math.isfinite, numbers)):
        return write_float(sum(number for number in numbers if not math.isfinite(number)))
    try:
        return math.fsum(numbers) / divisor
    except OverflowError:
        return exact_sum(numbers, divisor, name)


def exact_sum(numbers: list[float], divisor: int, name: str) -> float:
    """The same where a sum of some of the numbers is larger than a double."""
    try:
        return float(sum(map(Fraction, numbers), Fraction(0)) / divisor)
    except OverflowError as error:
        raise out_of_range(f"double overflow in {name}") from error


def sum_numeric(values: list[object]) -> str | None:
    """SUM of NUMERIC."""
    if not values:
        return None
    total = Decimal(0)
    for value in values:
        total = NUMERIC_CONTEXT.add(total, decimal_from_numeric(str(value)))
    try:
        return numeric_from_decimal(total)
    except ValueError as error:
        raise out_of_range("numeric overflow in SUM") from error


def average_numeric(values: list[object]) -> str | None:
    """AVG of NUMERIC."""
    if not values:
        return None
    total = Decimal(0)
    for value in values:
        total = NUMERIC_CONTEXT.add(total, decimal_from_numeric(str(value)))
    return numeric_from_decimal(NUMERIC_CONTEXT.divide(total, len(values)))


def extreme_of_floats(
    choose: Callable[[list[float]], float],
) -> Callable[[list[object]], Float | None]:
    """MIN and MAX of floats: NaN if any is."""

    def call(values: list[object]) -> Float | None:
        if not values:
            return None
        return "NaN" if "NaN" in values else choose(read_floats(values))

    return call


def combine_bits(operation: Callable[[int, int], int]) -> Callable[[list[object]], int | None]:
    """BIT_AND, BIT_OR, BIT_XOR."""

    def call(values: list[object]) -> int | None:
        if not values:
            return None
        result, *rest = [v for v in values if isinstance(v, int)]
        for value in rest:
            result = operation(result, value)
        return result

    return call


def single(values: list[object]) -> object:
    """The value of a scalar subquery: NULL of no row, an error of several."""
    if len(values) > 1:
        raise out_of_range("A scalar subquery returned more than one row.")
    return values[0] if values else None


def gather(values: list[object]) -> str:
    """An array of all values, NULL too."""
    return dump([to_json(value) for value in values])


def sample_spread(root: bool) -> Callable[[list[object]], Float | None]:
    """VARIANCE and STDDEV of a sample: NULL of fewer than two values, NaN where a value is none."""

    def call(values: list[object]) -> Float | None:
        sample = read_floats(values)
        if len(sample) < 2:
            return None
        if not all(map(math.isfinite, sample)):
            return "NaN"
        try:
            return write_float(statistics.stdev(sample) if root else statistics.variance(sample))
        except OverflowError:
            return write_float(math.inf)

    return call


def numeric_spread(root: bool) -> Callable[[list[object]], Float | None]:
    """The same of NUMERIC, from exact numbers."""

    def call(values: list[object]) -> Float | None:
        sample = [Fraction(decimal_from_numeric(str(value))) for value in values]
        if len(sample) < 2:
            return None
        squares = sum(number * number for number in sample)
        total = sum(sample)
        variance = (squares - total * total / len(sample)) / (len(sample) - 1)
        return math.sqrt(variance) if root else float(variance)

    return call


def distinct_intervals(values: list[object]) -> str | None:
    """ARRAY_AGG(DISTINCT interval): of equal ones (a month, 30 days) the first."""
    kept: dict[object, object] = {}
    for value in values:
        kept.setdefault(None if value is None else order_text(str(value)), value)
    return gather(list(kept.values())) if values else None


WINDOWED: dict[str, tuple[Callable[[list[object]], object], bool]] = {
    "agg_min_float64": (extreme_of_floats(min), False),
    "agg_max_float64": (extreme_of_floats(max), False),
    "agg_bit_and": (combine_bits(lambda a, b: a & b), False),
    "agg_bit_or": (combine_bits(lambda a, b: a | b), False),
    "agg_bit_xor": (combine_bits(lambda a, b: a ^ b), False),
    "agg_variance": (sample_spread(root=False), False),
    "agg_deviation": (sample_spread(root=True), False),
    "agg_variance_numeric": (numeric_spread(root=False), False),
    "agg_deviation_numeric": (numeric_spread(root=True), False),
    "agg_array_or_null": (lambda values: gather(values) if values else None, True),
}
"""Aggregates that also take OVER: a function of all values, and whether it sees NULL."""

AGGREGATES: dict[str, Factory] = {
    "agg_sum_float64": aggregate_all(sum_float),
    "agg_avg_float64": aggregate_all(average_float),
    "agg_sum_numeric": aggregate_all(sum_numeric),
    "agg_avg_numeric": aggregate_all(average_numeric),
    "agg_distinct_intervals": aggregate_all(distinct_intervals, nulls=True),
    "agg_array": aggregate_all(gather, nulls=True),
    "agg_single": aggregate_all(single, nulls=True),
}
