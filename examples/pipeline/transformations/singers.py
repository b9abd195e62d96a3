"""The changes of Singers as a streaming table, and the newest version of each."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import watcher

spark = SparkSession.active()
watcher.register(spark)


@dp.table
def singer_changes() -> DataFrame:
    """Every poll's rows: the newest version of each singer that changed."""
    return (
        spark.readStream.format("spanner-changes")
        .options(
            project=spark.conf.get("singers.project"),
            instance=spark.conf.get("singers.instance"),
            database=spark.conf.get("singers.database"),
            table="Singers",
            startingTimestamp="earliest",
            changeColumns="true",
        )
        .load()
    )


@dp.materialized_view
def singers() -> DataFrame:
    """The newest version of each singer. Functions of a pipeline must not look at a data frame's
    columns, as ``watcher.newest_per_key`` does."""
    changes = spark.read.table("singer_changes")
    newest = f.max_by(f.struct("LastName", "FirstName"), "_commit_version")
    return changes.groupBy("SingerId").agg(newest.alias("newest")).select("SingerId", "newest.*")
