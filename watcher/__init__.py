"""Turns a Cloud Spanner database into a stream of row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watcher.change import Change, Operation
from watcher.runners.watcher import Watcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Change", "Operation", "Watcher", "register"]


def register(spark: SparkSession) -> None:
    """Makes ``spark.readStream.format("spanner-changes")`` known to a Spark session."""
    # pyspark is heavy, and those who only poll have no Spark: the one late import.
    from watcher.runners import spark as source  # noqa: PLC0415

    source.register(spark)
