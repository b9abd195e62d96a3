"""The ways to see a change side by side, at the same load: polling and change streams."""

from __future__ import annotations

from benchmarks.load.workload import Workload
from benchmarks.run_settings import CaptureName, Consumer, RunPlan
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    costs,
    latencies,
    make_percentiles_chart,
    plan_of,
    throughput,
)

NAMES: dict[CaptureName, str] = {
    "poll": "poll",
    "change-stream": "windows of a change stream",
    "push": "open queries of a change stream",
}


class CapturesSettings(RunPlan):
    """``captures`` are compared at the same load, a run each. Polling delivers the newest version
    of a row in a window, change streams every version: compare ``delivered/s`` as well."""

    workload: Workload = Workload(seconds=30)
    consumer: Consumer = Consumer(interval=0.5)
    captures: tuple[CaptureName, ...] = ("poll", "change-stream", "push")


def run(settings: CapturesSettings, bench: Bench) -> None:
    """A run for each capture."""
    for capture in settings.captures:
        consumer = change_values(settings.consumer, capture=capture)
        result = bench.run(NAMES[capture], plan_of(settings, consumer=consumer))
        bench.add(
            {
                "capture": capture,
                **latencies(result),
                **throughput(result),
                "superseded": result.verdict.superseded,
                "commit_p99_s": round(result.commit.p99, 4),
                **costs(result),
            }
        )
    bench.outcome.charts.append(make_percentiles_chart("latency by percentile", bench.outcome.runs))


SCENARIO = Scenario(
    name="captures",
    summary="poll against windows and open queries of a change stream, at the same load",
    settings=CapturesSettings,
    keys=("capture",),
    run=run,
    short=("seconds=6", "rows=1000"),
)
