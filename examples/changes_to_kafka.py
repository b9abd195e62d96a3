"""Every change of a database into topics of Kafka, by Spark's Kafka sink: a topic for each table.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \\
      examples/changes_to_kafka.py PROJECT INSTANCE DATABASE BROKER:9092 CHECKPOINT [--until-now]

Take the version of the package that your Spark has. The tables need a change stream that has old
values or whole rows; messages are events of Debezium, keyed by the primary key. Spark's sink writes
at least once: a batch that comes again after a crash has the same changes, with the same
``change-id`` in a header. ``--until-now`` ends with what is there now; run it again for the rest.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import watcher

PREFIX = "spanner."
"""Topics are called after their tables: ``spanner.Singers``."""


def make_messages(changes: DataFrame) -> DataFrame:
    """Rows as Spark's Kafka sink takes them."""
    change_id = f.struct(
        f.lit("change-id").alias("key"), f.col("_change_id").cast("binary").alias("value")
    )
    return changes.select(
        f.concat(f.lit(PREFIX), "table").alias("topic"),
        "key",
        "value",
        f.array(change_id).alias("headers"),
    )


def main() -> None:
    """Runs until it is stopped, or until now."""
    project, instance, database, brokers, checkpoint, *more = sys.argv[1:]
    spark = SparkSession.builder.appName("changes to Kafka").getOrCreate()
    watcher.register(spark)
    changes = (
        spark.readStream.format("spanner-changes")
        .options(project=project, instance=instance, database=database, tables="*")
        .options(capture="change-stream", envelope="debezium", startingTimestamp="earliest")
        .options(consumer="changes-to-kafka", maxRowsPerBatch=100_000)
        .load()
    )
    query = (
        make_messages(changes)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("checkpointLocation", checkpoint)
    )
    if "--until-now" in more:
        query = query.trigger(availableNow=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
