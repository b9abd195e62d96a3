"""From the commit to the callback, where Spanner is far from the consumer."""

from __future__ import annotations

from benchmarks.load.workload import Workload
from benchmarks.run_settings import CaptureName, Consumer, RunPlan
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    make_percentiles_chart,
    plan_of,
    throughput,
)
from benchmarks.scenarios.captures import NAMES


class DistanceSettings(RunPlan):
    """A run for each of the ``captures`` and ``round_trips`` (seconds): the consumer's calls go
    through a network that delays them, the writers are near. Latencies are from the commit. A
    consumer that loses its lease ends the run with an error; with a short one it is renewed
    often."""

    workload: Workload = Workload(seconds=30, transactions=20, mutations=5)
    consumer: Consumer = Consumer(interval=0.5, lease=3.0, refresh=10.0)
    captures: tuple[CaptureName, ...] = ("poll", "change-stream", "push")
    round_trips: tuple[float, ...] = (0.0, 0.05, 0.15)


def run(settings: DistanceSettings, bench: Bench) -> None:
    """A run for each capture at each distance."""
    for capture in settings.captures:
        for seconds in settings.round_trips:
            plan = plan_of(
                settings,
                consumer=change_values(settings.consumer, capture=capture),
                disturbance=change_values(settings.disturbance, round_trip=seconds),
            )
            result = bench.run(f"{NAMES[capture]}, {seconds * 1_000:.0f} ms", plan)
            late = result.since_commit
            bench.add(
                {
                    "capture": capture,
                    "round_trip_ms": round(seconds * 1_000),
                    "commit_to_delivery_p50_s": round(late.p50, 3),
                    "commit_to_delivery_p99_s": round(late.p99, 3),
                    **throughput(result),
                }
            )
    bench.outcome.notes.append(
        f"every lease of {settings.consumer.lease:g} s was held: who loses one ends with an error"
    )
    bench.outcome.charts.append(make_percentiles_chart("latency by percentile", bench.outcome.runs))


SCENARIO = Scenario(
    name="distance",
    summary="commit to callback where Spanner is 0, 50 and 150 ms away, by each capture",
    settings=DistanceSettings,
    keys=("capture", "round_trip_ms"),
    run=run,
    short=("round_trips=0.15", "seconds=6", "rows=1000"),
    own_server=True,
    in_short_set=False,
)
