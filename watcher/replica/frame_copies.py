"""The copies of each format that Spark writes."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.copies import MERGE_ON_READ, Merging
from watcher.replica.copies_address import FORMATS
from watcher.replica.cuts import DELTA, ICEBERG, PARQUET
from watcher.replica.frames import OpenFrameCopy
from watcher.replica.spark_delta import SparkDeltaCopy, check_delta
from watcher.replica.spark_iceberg import SparkIcebergCopy, add_catalog, check_iceberg
from watcher.replica.spark_parquet import SparkParquetCopy


def make_open_copy(
    spark: SparkSession,
    format_: str,
    folder: str,
    consumer: str,
    merging: Merging | None = None,
) -> OpenFrameCopy:
    """The copies of a replica. ``merging``: how rows are merged; None: as a copy was made, and new
    ones of Delta and Iceberg are made for merge-on-read. Raises ConfigurationError for a format
    that is not known, that the session does not have, or that is not merged so."""
    base, location = folder.rstrip("/"), make_spark_path(folder)
    if format_ == DELTA:
        check_delta(spark)
        return lambda session, table: SparkDeltaCopy(
            session, f"{base}/{table}", f"{location}/{table}", consumer, merging
        )
    if format_ == PARQUET:
        if merging == MERGE_ON_READ:
            raise ConfigurationError(
                "copies in Parquet are merged by copy-on-write: use --merge copy-on-write, or"
                " another format"
            )
        return lambda session, table: SparkParquetCopy(
            session, f"{base}/{table}", f"{location}/{table}", consumer
        )
    if format_ == ICEBERG:
        check_iceberg(spark)
        return lambda session, table: SparkIcebergCopy(
            session, add_catalog(session, location), table, consumer, merging
        )
    raise ConfigurationError(f"invalid format '{format_}': use {' or '.join(FORMATS)}")


def make_spark_path(folder: str) -> str:
    """A folder as Spark names it, whatever its default file system is."""
    return folder.rstrip("/") if "://" in folder else Path(folder).resolve().as_uri()
