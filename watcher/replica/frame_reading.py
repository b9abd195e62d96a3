"""Reads a replica as of a cut with Spark: every table at the same Spanner timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from watcher.errors import ReplicaError
from watcher.replica.cuts import Cut
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.frames import OpenFrameCopy
from watcher.replica.manifest import Manifest
from watcher.replica.reading import parse_timestamp
from watcher.spanner.timestamps import to_datetime


@dataclass(frozen=True)
class FramesAt:
    """The tables of a replica at one Spanner timestamp. No transaction is torn over them."""

    spark: SparkSession
    cut: Cut
    copies: OpenFrameCopy

    @property
    def timestamp(self) -> datetime:
        """The timestamp: every transaction at or below it is in the tables, and no other."""
        return to_datetime(self.cut.end)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.cut.tables)

    def read(self, table: str) -> DataFrame:
        """A table. Raises ReplicaError."""
        if table not in self.cut.tables:
            raise ReplicaError(f"the cut has no table {table}; it has: {', '.join(self.tables)}")
        return self.copies(self.spark, table).read_frame(self.cut.tables[table].version)


def as_of(spark: SparkSession, folder: str, timestamp: datetime | str | None = None) -> FramesAt:
    """A replica at the latest exact cut at or before a timestamp (None: the latest). Raises
    ReplicaError."""
    manifest = Manifest(folder)
    if timestamp is None:
        cut = manifest.find_exact()
    else:
        cut = manifest.find_at_or_before(parse_timestamp(timestamp))
    return FramesAt(spark, cut, make_open_copy(spark, cut.copies, folder, cut.consumer))
