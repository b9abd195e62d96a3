"""The Spark source as a system under test: ``python -m benchmarks.systems.spark RUN``.

The sink ``foreach-batch`` takes a row's time when the driver has the rows of its micro-batch;
``parquet`` when its micro-batch is committed, and its rows are read back from the files afterwards.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.files import write_atomically
from benchmarks.load.records import DELIVERED, WINDOWS, Appender
from benchmarks.processes import RunError
from benchmarks.run_settings import Run
from watcher import register
from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.process.spark.local_spark import session
from watcher.runners.spark.checkpoints import (
    convert_to_micros,
    list_committed_batches,
    list_files,
    read_windows,
)
from watcher.spanner.address import DatabaseAddress

PROCESS = "spark"
LOOK_EVERY_SECONDS = 0.05


class Log:
    """Logs rows as the watcher's callback does."""

    def __init__(self, run: Run) -> None:
        self._delivered = Appender(run.records("delivered", PROCESS), DELIVERED)

    def take(self, batch: DataFrame, _number: int) -> None:
        """A micro-batch, in foreachBatch."""
        rows = batch.select("Id", "Version", COMMIT_TIMESTAMP_COLUMN).toArrow()
        self.add(rows, time.time_ns() // 1_000)

    def add(self, rows: pa.Table, at: int) -> None:
        """Rows that were there at ``at``. Spark promises no order within a micro-batch."""
        stamps = pc.cast(rows.column(COMMIT_TIMESTAMP_COLUMN), pa.timestamp("us", "UTC"))
        commits = np.asarray(pc.cast(stamps, pa.int64()))
        order = np.argsort(commits, kind="stable")
        columns = (np.asarray(rows.column(name))[order] for name in ("Id", "Version"))
        self._delivered.add((0, *columns, commits[order], at), rows.num_rows)


def changes(spark: SparkSession, run: Run) -> DataFrame:
    """The stream of the run's table."""
    address, consumer = DatabaseAddress.parse(run.database), run.consumer
    options = {
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": run.tables[0],
        "capture": consumer.capture,
        "startingTimestamp": run.since,
        "shardGroups": str(consumer.shard_groups),
        "idleSeconds": "1",
        "positionsTable": run.positions_table,
    }
    if consumer.streams:
        options["stream"] = run.stream_of(0)
    else:
        options["maxRowsPerBatch"] = str(consumer.max_rows)
        options["limitFirstBatch"] = "true"
    return spark.readStream.format("spanner-changes").options(**options).load()


def start_query(spark: SparkSession, run: Run, log: Log) -> StreamingQuery:
    """The query into the run's sink."""
    writer = changes(spark, run).writeStream
    if run.consumer.sink == "parquet":
        writer = writer.format("parquet").option("path", str(sink_of(run)))
    else:
        writer = writer.foreachBatch(log.take)
    return (
        writer.option("checkpointLocation", str(checkpoint_of(run)))
        .trigger(processingTime=f"{run.consumer.interval} seconds")
        .start()
    )


def sink_of(run: Run) -> Path:
    """Where Parquet files are written."""
    return run.folder / "spark-sink"


def checkpoint_of(run: Run) -> Path:
    """Where the query keeps its checkpoint."""
    return run.folder / "spark-checkpoint"


def wait(query: StreamingQuery, run: Run) -> None:
    """Until the drain is asked for, and everything is delivered. Raises what ended the query."""
    while query.isActive and not run.drain.exists():
        time.sleep(LOOK_EVERY_SECONDS)
    if query.isActive:
        query.processAllAvailable()
        query.stop()
    if (error := query.exception()) is not None:
        raise error


def wait_until_idle(query: StreamingQuery, run: Run) -> None:
    """The latency of a run should not hold the start of Spark itself. Without data there may be
    no micro-batch."""
    while not (list_committed_batches(checkpoint_of(run)) or "Waiting" in query.status["message"]):
        if not query.isActive:
            raise RunError(f"the Spark query failed: {query.exception()}")
        time.sleep(LOOK_EVERY_SECONDS)


def log_windows(run: Run) -> None:
    """The window of each micro-batch; polling delivers the newest version of a row in it."""
    windows_by_batch = read_windows(
        checkpoint_of(run), convert_to_micros(datetime.fromisoformat(run.since))
    )
    with Appender(run.records("windows", PROCESS), WINDOWS) as log:
        for window in windows_by_batch.values():
            if not window.empty:
                log.add((0, window.start, window.end), 1)


def log_parquet(run: Run, log: Log) -> None:
    """The rows in the files, batch by batch, as of the moment that each was committed."""
    for number in list_committed_batches(checkpoint_of(run)):
        committed = (checkpoint_of(run) / "commits" / str(number)).stat().st_mtime_ns // 1_000
        for path in list_files(sink_of(run), number):
            log.add(pq.read_table(path, partitioning=None), committed)


def main(arguments: list[str]) -> None:
    """Streams until drained."""
    run = Run.load(arguments[0], consumes=True)
    spark, log = session("spanner-watcher bench"), Log(run)
    try:
        register(spark)
        began = time.time_ns() // 1_000
        query = start_query(spark, run, log)
        if run.write:
            wait_until_idle(query, run)
        write_atomically(run.ready(PROCESS), str(began))
        wait(query, run)
    finally:
        spark.stop()
    if not run.consumer.streams:
        log_windows(run)
    if run.consumer.sink == "parquet":
        log_parquet(run, log)


if __name__ == "__main__":
    main(sys.argv[1:])
