"""The highest rate at which the watcher keeps up: the load rises in steps until it does not."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from benchmarks.arrivals import step_rates
from benchmarks.result import RunResult
from benchmarks.run_settings import Plan
from benchmarks.scenario import Bench, Figure, Scenario, plan_of
from benchmarks.workload import Workload


class Settings(Plan):
    """A rate is kept up with when, in the second half of its step, the p99 latency from the
    intended arrival stays below ``late_max`` seconds in every second."""

    workload: Workload = Workload(
        transactions=20, until=200, profile="steps", steps=6, seconds=60, writers=2
    )
    late_max: Annotated[float, Field(gt=0)] = 2.5


def run(settings: Settings, bench: Bench) -> None:
    """One run; a row of the table for each step."""
    found = bench.run("sustained", plan_of(settings))
    rows = steps(found, settings.late_max)
    for row in rows:
        bench.add(row)
    bench.outcome.notes.append(verdict(rows, settings.late_max))


def steps(found: RunResult, late_max: float) -> list[Figure]:
    """What each step came to. A steady load is one step."""
    load, series = found.plan.workload, found.series
    rates = step_rates(load) if load.profile == "steps" else (load.transactions,)
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


def verdict(rows: list[Figure], late_max: float) -> str:
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
    summary="the load rises in steps: the highest rate that is kept up with",
    settings=Settings,
    keys=("offered/s",),
    run=run,
    short=("until=100", "steps=4", "seconds=24", "interval=0.5", "writers=1"),
)
