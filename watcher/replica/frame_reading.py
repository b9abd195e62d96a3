"""Reads a replica as of a cut with Spark: every table at the same Spanner timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from watcher.replica.copies import check_version
from watcher.replica.cuts.cut import TablesAt
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.formats import find_folder, split_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.spark.frames import OpenFrameCopy, keep_live


@dataclass(frozen=True)
class FramesAt(TablesAt):
    """As ``TablesAt``, read with Spark."""

    spark: SparkSession
    copies: OpenFrameCopy

    def read(self, table: str) -> DataFrame:
        """A table, as ``ReplicaAt.read``. Raises ReplicaError."""
        version = self.find_version(table)
        copy = self.copies(self.spark, table)
        check_version(copy, table, version, self.cut.end)
        return keep_live(copy.read_frame(version))


def as_of(spark: SparkSession, to: str, timestamp: datetime | str | None = None) -> FramesAt:
    """A replica at the latest exact cut at or before a timestamp (None: the latest). ``to`` is its
    folder, ``FORMAT:FOLDER``, or ``iceberg:CATALOG.NAMESPACE``. Raises ReplicaError."""
    format_, place = split_copies(to)
    cut = Manifest(find_folder(format_, place)).find_as_of(timestamp)
    return FramesAt(cut, spark, make_open_copy(spark, cut.copies, place, cut.consumer))
