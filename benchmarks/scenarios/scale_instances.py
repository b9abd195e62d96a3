"""One consumer of one table, shared by more and more instances: what sharing costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, RunPlan
from benchmarks.scale_model import Calibration, add_forecasts, check_staleness
from benchmarks.scenario import (
    Bench,
    Scenario,
    costs,
    latencies,
    make_curve,
    make_percentiles_chart,
    plan_of,
    throughput,
)


class ScaleInstancesSettings(RunPlan):
    """``values`` are the numbers of instances, a run each; the consumer has ``consumer.parts``
    parts in each. Every part polls for itself, so queries must stay as they are; what a further
    instance costs is its process."""

    workload: Workload = Workload(transactions=60, mutations=50, seconds=30, warm_up=5)
    consumer: Consumer = Consumer(interval=0.5, parts=4, refresh=10.0)
    values: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2, 4)


CALIBRATIONS: dict[str, Calibration] = {
    "queries": "flat",
    "queries_cpu_s": "flat",
    "cpu_s": "line",
    "p50_s": "flat",
    "p99_s": "flat",
}


def run(settings: ScaleInstancesSettings, bench: Bench) -> None:
    """A run for each number of instances."""
    for count in settings.values:
        consumer = settings.consumer.model_copy(update={"watchers": count})
        name = f"{count} instances"
        result = bench.run(name, plan_of(settings, consumer=consumer))
        columns = {**latencies(result), **throughput(result), **costs(result)}
        bench.add({"instances": count, **columns, "missing": result.verdict.missing})
        bench.outcome.notes.append(check_staleness(name, result))
    add_forecasts(bench.outcome, "instances", CALIBRATIONS)
    bench.outcome.charts += [
        make_percentiles_chart("latency by percentile", bench.outcome.runs),
        make_curve(
            "CPU time by instances",
            "instances",
            ("cpu_s", "server_cpu_s"),
            "s of CPU",
            bench.outcome.figures,
        ),
    ]


SCENARIO = Scenario(
    name="scale-instances",
    summary="one consumer shared by 1, 2 and 4 instances: queries and latency must stay flat",
    settings=ScaleInstancesSettings,
    keys=("instances",),
    run=run,
    short=("values=1,2", "parts=2", "seconds=4", "warm_up=1"),
    in_short_set=False,
)
