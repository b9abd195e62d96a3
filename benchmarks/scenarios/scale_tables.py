"""Thousands of tables in one database, few of which change: what looking at all of them costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from benchmarks.load.workload import Workload
from benchmarks.model import count_look_queries
from benchmarks.result import IdleCosts, RunResult
from benchmarks.run_settings import Consumer, RunPlan
from benchmarks.scale_model import Calibration, add_forecasts, check_staleness
from benchmarks.scenario import (
    Bench,
    Figure,
    Scenario,
    change_values,
    make_curve,
    make_percentiles_chart,
    plan_of,
)


class ScaleTablesSettings(RunPlan):
    """``values`` are the numbers of tables, a run each; ``workload.changing`` of them change. First
    nothing changes for ``idle`` seconds, twice: what the second time costs is in the columns
    ``idle_...``, for one poll. Forecasts are made of the first two runs."""

    workload: Workload = Workload(
        transactions=10, mutations=1, seconds=30, rows=0, inserts=1.0, changing=5, tables=5
    )
    consumer: Consumer = Consumer(interval=1.0, refresh=10.0)
    idle: Annotated[float, Field(gt=0)] = 20.0
    values: tuple[int, ...] = (20, 200, 2_000)


def run(settings: ScaleTablesSettings, bench: Bench) -> None:
    """A run for each number of tables."""
    for count in settings.values:
        load = change_values(settings.workload, tables=count)
        result = bench.run(f"{count:,} tables", plan_of(settings, workload=load))
        bench.add({"tables": count, **summarise(count, result)})
        bench.outcome.notes.append(check_staleness(f"{count:,} tables", result))
    add_forecasts(bench.outcome, "tables", CALIBRATIONS)
    bench.outcome.charts += [
        make_percentiles_chart("latency by percentile", bench.outcome.runs),
        make_curve(
            "a poll that finds nothing",
            "tables",
            ("idle_cpu_ms", "idle_server_ms"),
            "ms of CPU",
            bench.outcome.figures,
        ),
    ]


CALIBRATIONS: dict[str, Calibration] = {
    "idle_queries": count_look_queries,
    "idle_cpu_ms": "line",
    "idle_server_ms": "line",
    "start_cpu_s": "line",
    "peak_mb": "line",
}
"""How each column follows from the number of tables: as computed, or along a line through the
first two."""


def summarise(tables: int, result: RunResult) -> Figure:
    """The columns of a run."""
    late, start = result.since_commit, result.start
    seconds = result.write_seconds or 1.0
    return {
        "start_s": start.seconds if start else None,
        "start_cpu_s": start.cpu_seconds if start else None,
        "start_server_s": start.server_cpu_seconds if start else None,
        **(summarise_idle(tables, result.idle) if result.idle else {}),
        "p50_s": round(late.p50, 3),
        "p99_s": round(late.p99, 3),
        "cpu_ms/s": round(result.consumer_cpu_seconds * 1_000 / seconds),
        "server_ms/s": round((result.server_cpu_seconds or 0) * 1_000 / seconds),
        "peak_mb": result.consumer_peak_mb,
        "missing": result.verdict.missing,
    }


def summarise_idle(tables: int, idle: IdleCosts) -> Figure:
    """What a poll costs that finds nothing, with its share of what comes every ``refresh``
    seconds."""
    if idle.queries is None:
        return {}
    polls = max(1.0, idle.queries.queries / count_look_queries(tables))
    return {
        "idle_polls": round(polls, 1),
        "idle_queries": round(idle.queries.queries / round(polls), 1),
        "idle_cpu_ms": round(idle.cpu_seconds * 1_000 / polls, 1),
        "idle_server_ms": round((idle.server_cpu_seconds or 0) * 1_000 / polls, 1),
        "idle_scanned": round(idle.queries.rows_scanned / polls, 1),
    }


SCENARIO = Scenario(
    name="scale-tables",
    summary="20 to 2,000 tables, few of which change: start, idle polls, latency, memory",
    settings=ScaleTablesSettings,
    keys=("tables",),
    run=run,
    short=("values=5,60,120", "seconds=3", "idle=2", "interval=0.5"),
    in_short_set=False,
)
