"""The Spark source ``spanner-changes``: an offset is a position, a micro-batch a window, an input
partition a slice."""

from __future__ import annotations

from pyspark.sql import SparkSession

from watcher.runners.spark.source import FORMAT, SpannerChanges

__all__ = ["FORMAT", "SpannerChanges", "register"]


def register(spark: SparkSession) -> None:
    """Makes the format ``spanner-changes`` known to a session, for streams and batches."""
    spark.dataSource.register(SpannerChanges)
