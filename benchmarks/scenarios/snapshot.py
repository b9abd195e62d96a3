"""A whole table into Spark, again and again in one session: rows a second, CPU time of the
client."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.processes import run_module
from benchmarks.scenario import Bench, Scenario, make_bar_chart
from benchmarks.served_table import serve_table
from benchmarks.snapshot_reads import SnapshotSettings
from watcher.process.spark.java import JavaNotFoundError, ensure_java


def run(settings: SnapshotSettings, bench: Bench) -> None:
    """A row of the table for each set of columns and number of partitions."""
    try:
        ensure_java()
    except JavaNotFoundError as error:
        bench.outcome.skipped.append(str(error))
        return
    with tempfile.TemporaryDirectory() as folder, serve_table(settings.rows):
        out, log = Path(folder, "figures"), Path(folder, "log")
        arguments = (settings.model_dump_json(), str(out))
        run_module("snapshots", log, "benchmarks.snapshot_reads", arguments)
        for line in out.read_text().splitlines():
            bench.add(json.loads(line))
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
