"""Python workers that Spark has started, and that have imported the source, before a query needs
them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from watcher.model.log_events.spark import PRESTART_FAILED
from watcher.runners.spark.registration import runs_here

LOG = logging.getLogger("watcher.spark")


def prestart_workers(spark: SparkSession) -> threading.Thread | None:
    """Runs a job of empty tasks in the background, which leaves idle workers behind: Spark takes
    those before it starts others. None where the workers are on other machines, which Spark may
    still have to find."""
    if not runs_here(spark):
        return None
    thread = threading.Thread(target=run_empty_tasks, args=(spark,), daemon=True)
    thread.start()
    return thread


def run_empty_tasks(spark: SparkSession) -> None:
    """A task for each that this machine runs at once."""
    tasks = spark.sparkContext.defaultParallelism
    try:
        spark.range(0, tasks, 1, tasks).mapInArrow(pass_on, "id long").collect()
    except (PySparkException, Py4JError, OSError) as error:
        # The session may have been stopped meanwhile.
        PRESTART_FAILED.log(LOG, error=error)


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Loading this function is what makes a worker import the source."""
    yield from batches
