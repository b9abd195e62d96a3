"""The Spark driver of the demo: from the source ``spanner-changes`` into checkpointed Parquet.

A process of its own, so that it can be killed. A user's job looks like ``start``; the rest waits.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import watcher
from conformance.demo.settings import CONSUMER, TABLE, DemoSettings
from watcher.process.line_files import append_line
from watcher.process.spark.local_spark import SHORT_RUN, session
from watcher.replica.formats import make_session_settings
from watcher.replica.replica_window import CutReport

PARQUET = "parquet"


def start_query(spark: SparkSession, settings: DemoSettings, beginning: str) -> StreamingQuery:
    """Starts the streaming query; after a crash the checkpoint says where it goes on."""
    watcher.register(spark)
    changes = (
        spark.readStream.format("spanner-changes")
        .option("database", settings.database)
        .option("table", TABLE)
        .option("consumer", CONSUMER)
        .option("shardGroups", settings.shard_groups)
        .option("startingTimestamp", beginning)
        .option("idleSeconds", 1)
        .load()
    )
    return (
        changes.writeStream.format("parquet")
        .option("path", str(settings.sink))
        .option("checkpointLocation", str(settings.checkpoint))
        .trigger(processingTime=f"{settings.trigger_seconds} seconds")
        .start()
    )


def start_replica(spark: SparkSession, settings: DemoSettings) -> StreamingQuery:
    """Starts the query that keeps a replica; after a crash it goes on by itself."""
    return watcher.replicate(
        spark,
        database=settings.database,
        tables=[TABLE],
        to=str(settings.lake),
        format=settings.to,
        consumer=CONSUMER,
        checkpoint=str(settings.checkpoint),
        interval_seconds=settings.trigger_seconds,
        report=lambda report: log_cut(settings, report),
        options={"shardGroups": settings.shard_groups, "idleSeconds": 1},
    )


def log_cut(settings: DemoSettings, report: CutReport) -> None:
    """A line for the screen."""
    rows = sum(report.merged.values())
    append_line(settings.cuts_log, json.dumps({"end": report.cut.end, "rows": rows}))


def wait_and_drain(query: StreamingQuery, settings: DemoSettings) -> None:
    """Until the drain is asked for; then everything that was written is delivered, and it ends."""
    while query.isActive and not settings.drain_request.exists():
        time.sleep(0.2)
    if query.isActive:
        query.processAllAvailable()
        wait_for_confirmation(query)
        query.stop()
    error = query.exception()
    if error is not None:
        raise error


def wait_for_confirmation(query: StreamingQuery) -> None:
    """Spark tells a source that a batch is done when the next one begins: an empty one, here.

    Only then does the consumer's position reach the last rows, so that clearing may take them.
    """
    done = find_newest_batch(query)
    while query.isActive and find_newest_batch(query) == done:
        time.sleep(0.1)


def find_newest_batch(query: StreamingQuery) -> int:
    """The number of the newest finished micro-batch; -1 before the first."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def main(arguments: list[str]) -> None:
    """``python -m conformance.demo.query SETTINGS STARTING_TIMESTAMP``."""
    settings = DemoSettings.load(Path(arguments[0]))
    replica = settings.to != PARQUET
    formats = make_session_settings(settings.to, pyspark.__version__) if replica else {}
    spark = session("spanner-watcher demo", {**SHORT_RUN, **formats})
    try:
        if replica:
            query = start_replica(spark, settings)
        else:
            query = start_query(spark, settings, arguments[1])
        wait_and_drain(query, settings)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
