"""The highest rate at which the watcher keeps up: the load rises until it does not."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from benchmarks.load.arrivals import step_rates
from benchmarks.load.workload import Workload
from benchmarks.result import RunResult
from benchmarks.run_settings import RunPlan
from benchmarks.scenario import Bench, Figure, Scenario, plan_of


class SustainedSettings(RunPlan):
    """The rate rises from ``transactions`` to ``until`` transactions a second: in ``steps`` equal
    steps, or evenly with ``profile=ramp``, which is looked at in as many parts. A rate is kept up
    with when, in the second half of its step, the p99 latency from the intended arrival stays below
    ``late_max`` seconds in every second. Where all of them are, a further run goes on from there to
    twice as much, ``further`` times at most: so the highest rate is found without a guess."""

    workload: Workload = Workload(
        transactions=20, until=200, profile="steps", steps=6, seconds=60, writers=2
    )
    late_max: Annotated[float, Field(gt=0)] = 2.5
    further: Annotated[int, Field(ge=0)] = 4


def run(settings: SustainedSettings, bench: Bench) -> None:
    """A run, and others while everything is kept up with; a row of the table for each step."""
    plan = plan_of(settings)
    for number in range(settings.further + 1):
        load = plan.workload
        result = bench.run(name_of(load), plan)
        rows = summarise_steps(result, settings.late_max)
        for row in rows:
            bench.add({"run": number + 1, **row})
        if load.until is None or not all(row["kept_up"] for row in rows):
            break
        higher = {"transactions": load.until, "until": 2 * load.until}
        plan = plan_of(plan, workload=load.model_copy(update=higher))
    bench.outcome.notes.append(find_highest_rate(bench.outcome.figures, settings.late_max))


def name_of(load: Workload) -> str:
    """What a run offers."""
    last = load.until or load.transactions
    rows = (load.transactions * load.mutations, last * load.mutations)
    return f"{rows[0]:,.0f} to {rows[1]:,.0f} rows/s"


def rates_of(load: Workload) -> tuple[float, ...]:
    """Transactions a second of each step; of the parts of a ramp, in their middle."""
    if load.profile == "steady":
        return (load.transactions,)
    if load.profile == "steps":
        return step_rates(load)
    rise = ((load.until or load.transactions) - load.transactions) / load.steps
    return tuple(load.transactions + (part + 0.5) * rise for part in range(load.steps))


def summarise_steps(result: RunResult, late_max: float) -> list[Figure]:
    """What each step came to."""
    load, series = result.plan.workload, result.series
    rates = rates_of(load)
    length = load.seconds / len(rates)
    rows: list[Figure] = []
    for number, rate in enumerate(rates):
        first, middle = round(number * length), round((number + 0.5) * length)
        after = min(round((number + 1) * length), len(series.written))
        late = [value for value in series.p99[middle:after] if value is not None]
        rows.append(
            {
                "offered/s": round(rate * load.mutations),
                "written/s": mean(series.written[first:after]),
                "delivered/s": mean(series.delivered[first:after]),
                "backlog": series.backlog[after - 1] if after > first else None,
                "p99_s": max(late) if late else None,
                "kept_up": bool(late) and max(late) <= late_max,
            }
        )
    return rows


def mean(values: tuple[int, ...]) -> int:
    """Rows a second; 0 for no time at all."""
    return round(sum(values) / len(values)) if values else 0


def find_highest_rate(rows: list[Figure], late_max: float) -> str:
    """The highest rate before the first that was too much."""
    kept = None
    for row in rows:
        if not row["kept_up"]:
            break
        kept = row["offered/s"]
    if kept is None:
        return f"no step was kept up with: p99 above {late_max} s from the first one on"
    more = " (the highest that was offered)" if kept == rows[-1]["offered/s"] else ""
    return f"highest sustained rate: {kept:,} rows/s{more}, p99 at most {late_max} s"


SCENARIO = Scenario(
    name="sustained",
    summary="the load rises: the highest rate that is kept up with, found by itself",
    settings=SustainedSettings,
    keys=("run", "offered/s"),
    run=run,
    short=(
        "until=100",
        "steps=4",
        "seconds=16",
        "interval=0.5",
        "writers=1",
        "rows=1000",
        "further=0",
    ),
)
