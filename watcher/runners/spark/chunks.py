"""A chunk of a table as a data frame: its keys are read here, and its rows by the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.replica.loads import LoadProgress
from watcher.replica.rows import copy_schema
from watcher.replica.sink import keep_loaded
from watcher.replica.spark.frames import FrameChunk
from watcher.replica.table_chunks import drop_deleted
from watcher.spanner.keys import KeyRange
from watcher.tables.values import WatchedTable


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """Ranges of keys at a timestamp, and how far the load is with them. Picklable: it goes to
    executors."""

    capture: PollCapture
    at: int
    ranges: tuple[KeyRange, ...]
    chunk: FrameChunk

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the ranges whose numbers are in batches, as a copy has them."""
        table = KeyRangeCapture(self.capture)
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            for rows, _, _ in table.read_within(self.at, self.ranges[number]):
                yield from drop_deleted(rows).to_batches()

    def open(self, spark: SparkSession) -> DataFrame:
        """Its rows: a task reads a range."""
        count = len(self.ranges)
        numbers = spark.range(0, count, 1, max(count, 1))
        return numbers.mapInArrow(self.read, from_arrow_schema(copy_schema(self.capture)))


def plan_chunk(
    capture: PollCapture, at: int, before: LoadProgress | None, rows: int, rows_per_range: int
) -> PlannedChunk:
    """The chunk of so many rows that comes next. Raises VersionExpiredError."""
    table, after = KeyRangeCapture(capture), before.upto if before is not None else None
    planned = list(table.iterate_ranges(at, after, rows, rows_per_range))
    count = sum(each for each, _ in planned)
    progress = None
    if count == rows:
        upto = planned[-1][1].end
        assert upto is not None, "a range that is planned ends with a key"
        size = round(count * table.measure_row(at, after))
        known = before or LoadProgress(upto, 0, 0, 0, at)
        progress = LoadProgress(
            upto, known.rows + count, known.bytes + size, known.chunks + 1, known.began
        )
    ranges = tuple(keys for _, keys in planned)
    return PlannedChunk(capture, at, ranges, FrameChunk(before is None, progress))


@dataclass(frozen=True, slots=True)
class LoadedPart:
    """Keeps rows whose keys are loaded: a later chunk has the others. Picklable."""

    table: WatchedTable
    progress: LoadProgress

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Of batches of a window."""
        for batch in batches:
            yield from keep_loaded(
                pa.Table.from_batches([batch]), self.table, self.progress
            ).to_batches()
