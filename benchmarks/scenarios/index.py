"""What the index is worth: none, plain, null-filtered, forced, with STORING."""

from __future__ import annotations

from typing import Literal

from benchmarks.load.workload import Workload
from benchmarks.pages.charts import Chart
from benchmarks.run_settings import Consumer, IndexName, RunPlan
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    delivery,
    make_bar_chart,
    make_percentiles_chart,
    plan_of,
)

Choice = Literal["none", "plain", "null-filtered", "no-shard", "forced", "storing"]
INDEXES: dict[Choice, IndexName] = {"storing": "forced"}


class IndexSettings(RunPlan):
    """``indexes`` are compared, a run each, in a table of ``workload.rows``: ``none``; ``plain``
    and ``null-filtered``, which the database uses if it thinks so; ``forced`` (null-filtered, named
    in the query, as ``ddl apply`` and the watcher do it); ``no-shard`` (forced, on the timestamp
    alone: one split takes all writes); ``storing`` (as forced, and every column is in the index, so
    that a poll reads nothing of the table)."""

    workload: Workload = Workload(seconds=20, rows=100_000)
    consumer: Consumer = Consumer(interval=0.5)
    indexes: tuple[Choice, ...] = (
        "none",
        "plain",
        "null-filtered",
        "no-shard",
        "forced",
        "storing",
    )


def run(settings: IndexSettings, bench: Bench) -> None:
    """A run for each index."""
    for choice in settings.indexes:
        index = INDEXES.get(choice, choice)
        wish = change_values(settings.preparation, index=index, storing=choice == "storing")
        plan = plan_of(settings, preparation=wish)
        result = bench.run(f"index: {choice}", plan)
        bench.add({"index": choice, **delivery(result)})
    bench.outcome.charts += charts(bench)


def charts(bench: Bench) -> list[Chart]:
    """Latencies, and what a poll scans."""
    return [
        make_percentiles_chart("latency by percentile", bench.outcome.runs),
        make_bar_chart(
            "rows scanned per row delivered", "index", "scanned/row", bench.outcome.figures
        ),
    ]


SCENARIO = Scenario(
    name="index",
    summary="no index, plain, null-filtered, no shard, forced, STORING: latency, rows scanned",
    settings=IndexSettings,
    keys=("index",),
    run=run,
    short=("indexes=none,forced", "rows=20000", "seconds=5"),
)
