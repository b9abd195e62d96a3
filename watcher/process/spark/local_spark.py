"""A Spark on this machine, for two cores, without its web page, on whatever Java there is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

from watcher.process.spark.java import ensure_java
from watcher.process.spark.template_start import prestart

# Verification reads the log of every batch, so none may be compacted away or purged meanwhile.
KEEP_EVERY_BATCH = {
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    "spark.sql.streaming.fileSink.log.deletion": "false",
    "spark.sql.streaming.fileSink.log.compactInterval": "1000000",
}

SHORT_RUN = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For runs of a minute or two: the optimizing compiler would take half of Spark's start for itself,
and the code that it makes is hardly used."""


def session(name: str, more: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """A session that keeps the log of every micro-batch, with ``more`` settings of Spark's."""
    ensure_java()
    prestart()
    builder = SparkSession.builder.master("local[2]").appName(name)
    settings = KEEP_EVERY_BATCH | {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **more,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
