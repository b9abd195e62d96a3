"""What grows with tables and partitions, by a model, beside what was measured.

Counts of queries are computed from what the product does. Costs that depend on the machine follow a
law (a line, or nothing at all) whose constants are taken from the smallest runs of the same series,
so that an error tells whether the law holds, and not how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Literal

from benchmarks.scenario import ScenarioOutcome, number
from watcher.captures.poll_tables import TABLES_PER_QUERY

Calibration = Literal["line", "flat"] | Callable[[int], float]
"""How a figure follows from the size: along a line through the first two, as the first, or as
computed."""


def count_look_queries(tables: int) -> int:
    """The queries of a poll that finds nothing: one for fifty tables."""
    return ceil(tables / TABLES_PER_QUERY)


def predict(calibration: Calibration, known: list[tuple[float, float]], size: float) -> float:
    """The figure at a size; ``known`` are the smallest sizes with what was measured there."""
    if callable(calibration):
        return calibration(int(size))
    (first, base), *more = known
    if calibration == "flat" or not more:
        return base
    second, higher = more[0]
    return base + (higher - base) / (second - first) * (size - first)


def count_known(calibration: Calibration) -> int:
    """From how many of the smallest runs the constants are taken."""
    return 0 if callable(calibration) else 1 if calibration == "flat" else 2


def add_forecasts(
    outcome: ScenarioOutcome, size: str, column: str, calibration: Calibration
) -> None:
    """Notes, for each run that the constants are not taken from: predicted, measured, error."""
    measured = [
        (float(str(row[size])), value)
        for row in outcome.figures
        if (value := number(row.get(column))) is not None
    ]
    count = count_known(calibration)
    for at, value in measured[count:]:
        expected = predict(calibration, measured[:count], at)
        outcome.notes.append(describe(f"{column} at {at:,.0f} {size}", expected, value))


def describe(what: str, expected: float, measured: float) -> str:
    """A sentence of a forecast: the error is that of the forecast, in percent of the measured."""
    error = f"{(expected - measured) / measured:+.0%}" if measured else "-"
    return f"{what}: predicted {expected:,.4g}, measured {measured:,.4g}, error {error}"
