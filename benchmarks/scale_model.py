"""What grows with tables and partitions, by a model, beside what was measured.

Counts of queries are computed from what the product does. Costs that depend on the machine follow a
law (a line, or nothing at all) whose constants are taken from the smallest runs of the same series,
so that an error tells whether the law holds, and not how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from benchmarks.model import Assumptions, Setup, forecast
from benchmarks.result import RunResult
from benchmarks.scenario import ScenarioOutcome, number

Calibration = Literal["line", "flat"] | Callable[[int], float]
"""How a figure follows from the size: along a line through the first two, as the first, or as
computed."""


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
    outcome: ScenarioOutcome, size: str, calibrations: Mapping[str, Calibration]
) -> None:
    """Notes on each column, for each run that its constants are not taken from: predicted,
    measured, error."""
    for column, calibration in calibrations.items():
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


def check_staleness(name: str, result: RunResult) -> str:
    """What ``bench model`` says of the age of a change when it is delivered, which is a mean,
    beside the median that was measured."""
    load, consumer = result.plan.workload, result.plan.consumer
    setup = Setup(
        nodes=1,
        writes=load.mutations_per_second,
        shards=result.plan.preparation.shards,
        interval=consumer.interval,
        slices=consumer.shard_groups,
        tables=load.tables,
    )
    expected = forecast(setup, Assumptions()).staleness
    return describe(f"staleness of bench model, {name}", expected, result.since_commit.p50)
