"""Turns a Cloud Spanner database into a stream of row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watcher.change import Change, Operation
from watcher.runners.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Change", "Operation", "Watcher", "newest_per_key", "register"]


def register(spark: SparkSession) -> None:
    """Makes ``spark.readStream.format("spanner-changes")`` known to a Spark session."""
    # pyspark is heavy, and those who only poll have no Spark: so it is imported late, here alone.
    from watcher.runners import spark as source  # noqa: PLC0415

    source.register(spark)


def newest_per_key(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Changes (a batch of a stream, or a batch read) as one row a key: the newest.

    ``keys`` names the columns of the primary key; envelope rows need none.
    """
    from watcher.runners.spark import newest  # noqa: PLC0415

    return newest.newest_per_key(df, keys)
