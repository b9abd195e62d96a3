"""The loads at which the Java Spanner Change Watcher's own benchmark was published.

Transactions a second times mutations in each, at a poll interval of 1 s and 10,000 rows a poll.
"""

from __future__ import annotations

from pydantic import field_validator

from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, Preparation, RunPlan
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    delivery,
    make_percentiles_chart,
    plan_of,
)

Load = tuple[float, int]


class PublishedSettings(RunPlan):
    """``loads`` are transactions a second x mutations in each; a run each."""

    workload: Workload = Workload(seconds=20)
    preparation: Preparation = Preparation(shards=19)
    consumer: Consumer = Consumer(interval=1.0, max_rows=10_000)
    loads: tuple[str, ...] = ("1x5", "5x20", "10x50", "25x100", "50x200")

    @field_validator("loads")
    @classmethod
    def _loads(cls, loads: tuple[str, ...]) -> tuple[str, ...]:
        for each in loads:
            parse_load(each)
        return loads


def parse_load(text: str) -> Load:
    """'25x100' as a rate and a number of mutations. Raises ValueError."""
    rate, _, mutations = text.partition("x")
    try:
        return float(rate), int(mutations)
    except ValueError as error:
        raise ValueError(
            f"invalid load '{text}': use TRANSACTIONSxMUTATIONS, such as 25x100"
        ) from error


def run(settings: PublishedSettings, bench: Bench) -> None:
    """A run for each load."""
    for text in settings.loads:
        rate, mutations = parse_load(text)
        load = change_values(settings.workload, transactions=rate, mutations=mutations)
        result = bench.run(text, plan_of(settings, workload=load))
        bench.add({"load": text, **delivery(result)})
    bench.outcome.charts.append(make_percentiles_chart("latency by percentile", bench.outcome.runs))


SCENARIO = Scenario(
    name="published",
    summary="the loads of the Java watcher's published benchmark, 1x5 to 50x200, poll 1 s",
    settings=PublishedSettings,
    keys=("load",),
    run=run,
    short=("loads=10x50", "seconds=6", "rows=1000"),
)
