"""The CPU time that an empty task costs a Python worker of Spark's:

    python -m benchmarks.reads.task_costs SETTINGS OUT

``SETTINGS`` are JSON: ``product`` (whether tasks load our source, as those of our queries do),
``register`` (whether the session knows it), ``tasks``, ``rounds``, ``spark`` (settings of the
session). ``OUT`` gets a line of JSON. A process of its own, because Java stays in it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import watcher
from benchmarks.first_rows.job import make_session
from watcher.runners.spark.prestart import pass_on

WARM_UP = 5


def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As ``pass_on``. Of the module that is run, so that workers get its code and load nothing."""
    yield from batches


def count_worker_seconds() -> float:
    """CPU seconds so far of Spark's Python processes."""
    seconds = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "python" in process.name():
                times = process.cpu_times()
                seconds += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return seconds


def run_tasks(spark: SparkSession, tasks: int, product: bool) -> None:
    """Empty tasks, one after another."""
    work = pass_on if product else give
    spark.range(0, tasks, 1, tasks).mapInArrow(work, "id long").collect()


def main() -> None:
    """Reads the command line; the median of some rounds."""
    settings, out = json.loads(sys.argv[1]), Path(sys.argv[2])
    spark = make_session(settings["spark"])
    if settings["register"]:
        watcher.register(spark)
    tasks, product = settings["tasks"], settings["product"]
    run_tasks(spark, WARM_UP, product)
    costs = []
    for _ in range(settings["rounds"]):
        used = count_worker_seconds()
        run_tasks(spark, tasks, product)
        costs.append((count_worker_seconds() - used) / tasks * 1_000)
    found = {"spark": pyspark.__version__, "cpu_ms": round(statistics.median(costs), 1)}
    out.write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
