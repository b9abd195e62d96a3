"""From the commit to the callback, at several rates."""

from __future__ import annotations

from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, RunPlan
from benchmarks.scenario import Bench, Scenario, delivery, make_percentiles_chart, plan_of, set_rate


class LatencySettings(RunPlan):
    """``rates`` are rows a second, in transactions of ``mutations``; a run each."""

    workload: Workload = Workload(seconds=30)
    consumer: Consumer = Consumer(interval=0.5)
    rates: tuple[float, ...] = (100, 500, 1_000, 3_000, 5_000)


def run(settings: LatencySettings, bench: Bench) -> None:
    """A run for each rate."""
    for rate in settings.rates:
        load = settings.workload
        plan = plan_of(settings, workload=set_rate(load, rate))
        result = bench.run(f"{rate:,.0f} rows/s", plan)
        bench.add({"rate/s": rate, **delivery(result)})
    bench.outcome.charts.append(make_percentiles_chart("latency by percentile", bench.outcome.runs))


SCENARIO = Scenario(
    name="latency",
    summary="commit to callback, p50 to p99.9, at several rates",
    settings=LatencySettings,
    keys=("rate/s",),
    run=run,
    short=("rates=2000", "seconds=6", "rows=1000"),
)
