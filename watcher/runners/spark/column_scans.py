"""New columns of a table as a data frame: the keys of its rows are read here, and the columns by
the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.replica.new_columns import ColumnPlan, copy_types, narrow_capture, select_columns
from watcher.replica.spark.frame_values import FrameValues
from watcher.spanner.keys import KeyRange


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """Some columns, in ranges of keys at a timestamp. Picklable: it goes to executors."""

    capture: KeyRangeCapture
    columns: pa.Schema
    at: int
    ranges: tuple[KeyRange, ...]

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the ranges whose numbers are in batches."""
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            for rows, _, _ in self.capture.read_within(self.at, self.ranges[number]):
                yield select_columns(rows.batch, self.columns)

    def open(self, spark: SparkSession) -> DataFrame:
        """Its rows: a task reads a range."""
        count = len(self.ranges)
        numbers = spark.range(0, count, 1, max(count, 1))
        return numbers.mapInArrow(self.read, from_arrow_schema(self.columns))


def plan_values(
    spark: SparkSession, capture: PollCapture, plan: ColumnPlan, at: int, rows_per_range: int
) -> FrameValues:
    """The values of new columns at a timestamp. Raises VersionExpiredError."""
    key = capture.table.primary_key
    if not plan.scanned:
        return FrameValues(plan.constants, key)
    narrow = narrow_capture(capture, plan.scanned)
    ranges = tuple(keys for _, keys in narrow.iterate_ranges(at, None, 0, rows_per_range))
    columns = copy_types(capture, (*key, *plan.scanned))
    return FrameValues(plan.constants, key, PlannedScan(narrow, columns, at, ranges).open(spark))
