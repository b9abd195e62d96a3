"""The same changes in tables on disk of up to 100,000,000 rows: a poll must cost the same."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from benchmarks.load.workload import Workload
from benchmarks.result import RunResult
from benchmarks.run_settings import Consumer, RunPlan, StorageName
from benchmarks.scale_model import Calibration, add_forecasts, check_staleness
from benchmarks.scenario import (
    Bench,
    Figure,
    Scenario,
    change_values,
    costs,
    latencies,
    make_curve,
    make_percentiles_chart,
    plan_of,
)


class ScaleRowsSettings(RunPlan):
    """``values`` are the rows of the table, a run each, small ones that are in no index. To each
    1,000 changes a second are made, half of them to rows that were there. 100,000,000 rows take
    some 5 GB of disk and 22 minutes to load: ``values=1000000,100000000``."""

    workload: Workload = Workload(
        transactions=20, mutations=50, seconds=30, warm_up=5, row_bytes=16
    )
    consumer: Consumer = Consumer(interval=0.5)
    storage: StorageName = "disk"
    values: tuple[Annotated[int, Field(ge=1)], ...] = (1_000_000, 10_000_000)


CALIBRATIONS: dict[str, Calibration] = {
    "scanned/row": "flat",
    "queries_cpu_s": "flat",
    "cpu_s/100k": "flat",
    "server_cpu_s": "flat",
    "p50_s": "flat",
    "p99_s": "flat",
}


def run(settings: ScaleRowsSettings, bench: Bench) -> None:
    """A run for each number of rows."""
    for count in settings.values:
        load = change_values(settings.workload, rows=count)
        result = bench.run(f"{count:,} rows", plan_of(settings, workload=load))
        bench.add({"rows": count, **summarise(count, result)})
        bench.outcome.notes.append(check_staleness(f"{count:,} rows", result))
    add_forecasts(bench.outcome, "rows", CALIBRATIONS)
    bench.outcome.charts += [
        make_percentiles_chart("latency by percentile", bench.outcome.runs),
        make_curve(
            "rows scanned by rows of the table",
            "rows",
            ("scanned/row",),
            "rows a delivered row",
            bench.outcome.figures,
        ),
    ]


def summarise(rows: int, result: RunResult) -> Figure:
    """The columns of a run."""
    loaded = rows / result.prepare_seconds if result.prepare_seconds else None
    return {
        "loaded_rows/s": round(loaded) if loaded else None,
        "missing": result.verdict.missing,
        **latencies(result),
        **costs(result),
    }


SCENARIO = Scenario(
    name="scale-rows",
    summary="1,000 changes/s in tables on disk of 1M to 100M rows: a poll must stay flat",
    settings=ScaleRowsSettings,
    keys=("rows",),
    run=run,
    short=("values=5000,20000", "seconds=4", "warm_up=1"),
    in_short_set=False,
)
