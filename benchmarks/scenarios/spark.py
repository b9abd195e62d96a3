"""From a commit to Spark's sink, and backlogs through it: partitions, triggers, sinks."""

from __future__ import annotations

from itertools import product

from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, RunPlan, SinkName
from benchmarks.scenario import (
    Bench,
    Figure,
    Scenario,
    change_values,
    delivery,
    make_percentiles_chart,
    plan_of,
)
from benchmarks.scenarios.backlog import measure_backlog


class SparkSettings(RunPlan):
    """A run for each of ``partitions`` x ``triggers`` x ``sinks``, then for each of ``backlogs``
    (rows that changed before) x ``sinks`` with the most partitions.

    ``partitions`` are slices of a micro-batch (groups of shards), ``triggers`` the seconds between
    micro-batches (0: back to back). The sink ``foreach-batch`` takes the time when the driver has
    the rows, ``parquet`` when the micro-batch is committed. Rows that are due in the first
    ``warm_up`` seconds are verified, but do not count in the latencies: Spark's first batches are
    slow.
    """

    workload: Workload = Workload(seconds=30, warm_up=10)
    consumer: Consumer = Consumer(system="spark", interval=0, max_rows=1_000_000)
    partitions: tuple[int, ...] = (1, 4)
    triggers: tuple[float, ...] = (0, 1)
    sinks: tuple[SinkName, ...] = ("foreach-batch", "parquet")
    backlogs: tuple[int, ...] = (100_000, 300_000)


def run(settings: SparkSettings, bench: Bench) -> None:
    """A run for each setting of the knobs, then the backlogs."""
    for partitions, trigger, sink in product(
        settings.partitions, settings.triggers, settings.sinks
    ):
        consumer = consumer_of(settings, partitions, trigger, sink)
        name = f"{partitions} partitions, trigger {trigger:g} s, {sink}"
        result = bench.run(name, plan_of(settings, consumer=consumer))
        bench.add(
            {
                "load": "steady",
                "partitions": partitions,
                "trigger_s": trigger,
                "sink": sink,
                **delivery(result),
            }
        )
    if bench.outcome.runs:
        bench.outcome.charts.append(
            make_percentiles_chart("latency by percentile", bench.outcome.runs)
        )
    for size, sink in product(settings.backlogs, settings.sinks):
        backlog(settings, size, sink, bench)


def backlog(settings: SparkSettings, size: int, sink: SinkName, bench: Bench) -> None:
    """A backlog into a sink."""
    partitions = max(settings.partitions)
    plan = plan_of(
        settings,
        consumer=consumer_of(settings, partitions, 0, sink),
        workload=Workload(rows=0, inserts=1, row_bytes=settings.workload.row_bytes),
    )
    name = f"backlog of {size:,}"
    row: Figure = {"load": name, "partitions": partitions, "trigger_s": 0, "sink": sink}
    bench.add(row | measure_backlog(f"{name}, {sink}", plan, size, bench))


def consumer_of(settings: RunPlan, partitions: int, trigger: float, sink: SinkName) -> Consumer:
    """Spark with these knobs."""
    knobs = {"shard_groups": partitions, "interval": trigger, "sink": sink, "system": "spark"}
    return change_values(settings.consumer, **knobs)


SCENARIO = Scenario(
    name="spark",
    summary="commit to Spark's sink, and backlogs: partitions, triggers, sinks",
    settings=SparkSettings,
    keys=("load", "partitions", "trigger_s", "sink"),
    run=run,
    short=(
        "partitions=4",
        "triggers=0",
        "sinks=foreach-batch",
        "backlogs=",
        "seconds=12",
        "warm_up=6",
        "rows=1000",
    ),
)
