"""A whole table into Spark, again and again in one session: rows a second, CPU time of the
client."""

from __future__ import annotations

from benchmarks.processes import ask_module
from benchmarks.reads.served_table import serve_table
from benchmarks.reads.snapshot_reads import SnapshotSettings
from benchmarks.scenario import Bench, Scenario, has_java, make_bar_chart


def run(settings: SnapshotSettings, bench: Bench) -> None:
    """A row of the table for each set of columns and number of partitions."""
    if not has_java(bench):
        return
    with serve_table(settings.rows):
        arguments = (settings.model_dump_json(),)
        for figure in ask_module("snapshots", "benchmarks.reads.snapshot_reads", arguments):
            bench.add(figure)
    bench.outcome.charts.append(
        make_bar_chart("rows/s into Spark", "columns", "rows/s", bench.outcome.figures)
    )


SCENARIO = Scenario(
    name="snapshot",
    summary="a whole table into Spark in a warm session: rows a second, CPU",
    settings=SnapshotSettings,
    keys=("columns", "max_partitions"),
    run=run,
    short=("rows=20000", "columns=all", "max_partitions=0", "runs=1", "warm_up=0"),
    own_server=True,
)
