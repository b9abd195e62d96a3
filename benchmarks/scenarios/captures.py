"""The ways to see a change side by side, at the same load: polling and change streams."""

from __future__ import annotations

from benchmarks.run_settings import CaptureName, Consumer, Plan
from benchmarks.scenario import (
    Bench,
    Scenario,
    costs,
    latencies,
    percentiles_chart,
    plan_of,
    throughput,
    with_values,
)
from benchmarks.workload import Workload

NAMES: dict[CaptureName, str] = {
    "poll": "poll",
    "change-stream": "windows of a change stream",
    "push": "open queries of a change stream",
}


class CapturesSettings(Plan):
    """``captures`` are compared at the same load, a run each. Polling delivers the newest version
    of a row in a window, change streams every version: compare ``delivered/s`` as well."""

    workload: Workload = Workload(seconds=30)
    consumer: Consumer = Consumer(interval=0.5)
    captures: tuple[CaptureName, ...] = ("poll", "change-stream", "push")


def run(settings: CapturesSettings, bench: Bench) -> None:
    """A run for each capture."""
    for capture in settings.captures:
        consumer = with_values(settings.consumer, capture=capture)
        found = bench.run(NAMES[capture], plan_of(settings, consumer=consumer))
        bench.add(
            {
                "capture": capture,
                **latencies(found),
                **throughput(found),
                "superseded": found.verdict.superseded,
                "commit_p99_s": round(found.commit.p99, 4),
                **costs(found),
            }
        )
    bench.outcome.charts.append(percentiles_chart("latency by percentile", bench.outcome.runs))


SCENARIO = Scenario(
    name="captures",
    summary="poll against windows and open queries of a change stream, at the same load",
    settings=CapturesSettings,
    keys=("capture",),
    run=run,
    short=("seconds=6", "rows=1000"),
)
