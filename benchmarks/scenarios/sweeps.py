"""One knob at several settings, everything else alike: what latency, scans and CPU make of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.load.workload import Workload
from benchmarks.pages.charts import Chart
from benchmarks.run_settings import Consumer, RunPlan
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    delivery,
    make_curve,
    make_percentiles_chart,
    plan_of,
)

LOAD = Workload(transactions=20, mutations=50, seconds=20)

Change = Callable[[RunPlan, float], RunPlan]


class SweepSettings(RunPlan):
    """``values`` are the settings of the knob; a run each. ``workload.transactions`` times
    ``workload.mutations`` rows a second are written throughout."""

    workload: Workload = LOAD
    consumer: Consumer = Consumer(interval=0.5)
    values: tuple[float, ...] = ()


class Shards(SweepSettings):
    """``values`` are shard counts."""

    values: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 64)


class ShardGroups(SweepSettings):
    """``values`` are numbers of groups: so many queries share the shards of a poll."""

    values: tuple[float, ...] = (1, 2, 4, 8)


class Watchers(SweepSettings):
    """``values`` are numbers of processes that share the tables, of which there are ``tables``."""

    workload: Workload = LOAD.model_copy(update={"tables": 4, "rows": 1_000})
    values: tuple[float, ...] = (1, 2, 4)


class Intervals(SweepSettings):
    """``values`` are seconds between polls."""

    values: tuple[float, ...] = (0.1, 0.25, 0.5, 1, 2)


class TableSize(SweepSettings):
    """``values`` are the rows that the table has before; the rows that change stay as many."""

    values: tuple[float, ...] = (10_000, 100_000, 1_000_000)


class ManyTables(SweepSettings):
    """``values`` are the numbers of tables, over which the same load is spread. In the first five
    seconds the embedded server meets the statements of all tables for the first time."""

    workload: Workload = Workload(transactions=20, mutations=50, seconds=25, warm_up=5, rows=100)
    values: tuple[float, ...] = (1, 10, 100, 500)


class ClearingEvery(SweepSettings):
    """``values`` are seconds between clearings; 0 is none. ``strategy`` says how a row leaves the
    index: its timestamp becomes NULL (automatic), or the row is marked (processed)."""

    workload: Workload = Workload(transactions=20, mutations=50, seconds=60)
    values: tuple[float, ...] = (0, 2, 10)


def set_shards(plan: RunPlan, value: float) -> RunPlan:
    """So many shards."""
    return plan_of(plan, preparation=change_values(plan.preparation, shards=int(value)))


def set_groups(plan: RunPlan, value: float) -> RunPlan:
    """So many shard groups."""
    changed = plan.consumer.model_copy(update={"shard_groups": int(value)})
    return plan_of(plan, consumer=changed)


def set_watchers(plan: RunPlan, value: float) -> RunPlan:
    """So many watchers."""
    return plan_of(plan, consumer=plan.consumer.model_copy(update={"watchers": int(value)}))


def set_interval(plan: RunPlan, value: float) -> RunPlan:
    """A poll so often."""
    return plan_of(plan, consumer=plan.consumer.model_copy(update={"interval": value}))


def set_rows(plan: RunPlan, value: float) -> RunPlan:
    """So many rows in the table."""
    return plan_of(plan, workload=plan.workload.model_copy(update={"rows": int(value)}))


def set_tables(plan: RunPlan, value: float) -> RunPlan:
    """So many tables."""
    return plan_of(plan, workload=plan.workload.model_copy(update={"tables": int(value)}))


def set_clearing(plan: RunPlan, value: float) -> RunPlan:
    """A clearing so often."""
    return plan_of(plan, consumer=plan.consumer.model_copy(update={"clear_every": value}))


def run(settings: SweepSettings, bench: Bench, column: str, change: Change) -> None:
    """A run at each setting of the knob, and what became of the latencies."""
    for value in settings.values:
        result = bench.run(f"{column} {value:g}", change(settings, value))
        bench.add({column: value, **delivery(result)})
    bench.outcome.charts += charts(column, bench)


def charts(column: str, bench: Bench) -> list[Chart]:
    """Latencies, and what the server did for a row, against the knob."""
    figures, seconds = bench.outcome.figures, "seconds from the intended arrival"
    return [
        make_percentiles_chart("latency by percentile", bench.outcome.runs),
        make_curve(f"latency by {column}", column, ("p50_s", "p99_s"), seconds, figures),
        make_curve(
            f"rows scanned by {column}", column, ("scanned/row",), "rows a delivered row", figures
        ),
    ]


def make_sweep(
    name: str,
    summary: str,
    column: str,
    settings: type[SweepSettings],
    change: Change,
    short: tuple[str, ...],
    in_short_set: bool = True,
) -> Scenario:
    """A scenario of one knob."""
    return Scenario(
        name=name,
        summary=summary,
        settings=settings,
        keys=(column,),
        run=partial(run, column=column, change=change),
        short=(*SHORT, *short),
        in_short_set=in_short_set,
    )


SHORT = ("seconds=5", "rows=1000")
SCENARIOS = (
    make_sweep(
        "shards",
        "latency and scans by the number of shards",
        "shards",
        Shards,
        set_shards,
        ("values=1,16",),
    ),
    make_sweep(
        "shard-groups",
        "latency by the number of queries that share the shards of a poll",
        "shard_groups",
        ShardGroups,
        set_groups,
        ("values=1,4",),
        in_short_set=False,
    ),
    make_sweep(
        "watchers",
        "latency and CPU by the number of processes that share the tables",
        "watchers",
        Watchers,
        set_watchers,
        ("values=1,2",),
        in_short_set=False,
    ),
    make_sweep(
        "interval",
        "latency and CPU by the poll interval",
        "interval_s",
        Intervals,
        set_interval,
        ("values=0.1,1",),
        in_short_set=False,
    ),
    make_sweep(
        "table-size",
        "the same changes in tables of 10k to 1M rows: latency and scans must stay flat",
        "rows",
        TableSize,
        set_rows,
        ("values=1000,50000",),
    ),
    make_sweep(
        "many-tables",
        "the same load over 1 to 500 tables",
        "tables",
        ManyTables,
        set_tables,
        ("values=20", "rows=50", "warm_up=0"),
    ),
    make_sweep(
        "clearing",
        "the index and the latency with and without clearing",
        "clear_every_s",
        ClearingEvery,
        set_clearing,
        ("values=1",),
    ),
)
