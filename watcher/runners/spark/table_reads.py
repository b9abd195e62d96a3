"""``watcher.read_table``: one table as a DataFrame, of the columns and rows that are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession

from watcher.model.errors import ConfigurationError
from watcher.runners.spark.format_name import FORMAT
from watcher.runners.spark.registration import register_source

KNOWN: WeakSet[SparkSession] = WeakSet()
"""The sessions that know the source by this module: Spark warns of one that is made known again."""


def read_table(
    spark: SparkSession,
    database: str,
    table: str,
    columns: Sequence[str] | None,
    where: str | None,
    options: Mapping[str, object],
) -> DataFrame:
    """As ``watcher.read_table``."""
    given = {
        **{name: str(value) for name, value in options.items()},
        "database": database,
        "table": table,
    }
    if columns is not None and not columns:
        raise ConfigurationError("'columns' is empty: name the columns to read, or leave it out")
    if columns is not None:
        given["columns"] = ",".join(columns)
    if where is not None:
        given["where"] = where
    if spark not in KNOWN:
        register_source(spark)
        KNOWN.add(spark)
    return spark.read.format(FORMAT).options(**given).load()
