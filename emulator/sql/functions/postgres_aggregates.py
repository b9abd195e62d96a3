"""Aggregates of the PostgreSQL dialect: sums and averages as numeric."""

from __future__ import annotations

from decimal import Decimal

from emulator.sql.functions import postgres_intervals
from emulator.sql.functions.aggregates import Factory, aggregate_all
from emulator.sql.functions.numbers import Float
from emulator.sql.functions.postgres_numbers import divide, float_add, float_div, to_form
from emulator.values.pg_numeric import CONTEXT, key_of_form, number_of_form


def total_of(values: list[object]) -> Decimal:
    """The sum of values of bigint or numeric."""
    total = Decimal(0)
    for value in values:
        number = Decimal(value) if isinstance(value, int) else number_of_form(str(value))
        total = CONTEXT.add(total, number)
    return total


def sum_numeric(values: list[object]) -> str | None:
    """sum of bigint and numeric; NULL of nothing."""
    return to_form(total_of(values)) if values else None


def average_numeric(values: list[object]) -> str | None:
    """avg of bigint and numeric, with the scale of a quotient."""
    if not values:
        return None
    total = total_of(values)
    return to_form(total if total.is_nan() else divide(total, Decimal(len(values))))


def sum_float(values: list[object]) -> Float | None:
    """sum of double precision, one after another."""
    total: Float = 0.0
    for value in values:
        assert isinstance(value, float | str)
        total = float_add(total, value)
    return total if values else None


def average_float(values: list[object]) -> Float | None:
    """avg of double precision."""
    total = sum_float(values)
    return None if total is None else float_div(total, float(len(values)))


def least(values: list[object]) -> str | None:
    """min of numeric: by its key."""
    return min(map(str, values), key=key_of_form, default=None)


def greatest(values: list[object]) -> str | None:
    """max of numeric: by its key."""
    return max(map(str, values), key=key_of_form, default=None)


AGGREGATES: dict[str, Factory] = {
    "agg_pg_sum_numeric": aggregate_all(sum_numeric),
    "agg_pg_avg_numeric": aggregate_all(average_numeric),
    "agg_pg_sum_float8": aggregate_all(sum_float),
    "agg_pg_avg_float8": aggregate_all(average_float),
    "agg_pg_min_numeric": aggregate_all(least),
    "agg_pg_max_numeric": aggregate_all(greatest),
    "agg_pg_avg_interval": aggregate_all(postgres_intervals.average),
}
