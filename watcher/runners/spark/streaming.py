"""The streaming reader: plans batches on the driver, reads slices on the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from watcher.model.errors import WatcherError
from watcher.runners.spark.batch import SlicePartition
from watcher.runners.spark.offsets import Offset
from watcher.runners.spark.planner import BatchPlanner
from watcher.runners.spark.refusals import call_with_retries
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import gather_slices, read_slice
from watcher.runners.spark.spark_versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from watcher.runners.spark.table_batches import BatchWindow
from watcher.runners.spark.worker_errors import lead_with_sentence


@dataclass
class WindowPartition(SlicePartition):
    """An input partition that has the row which says what the window is, too: it needs no task of
    its own."""

    window: BatchWindow | None = None


class StreamReader(DataSourceStreamReader):
    """One query's reader, as far as all versions of Spark agree. What only the driver needs is left
    out when it is pickled."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._started: BatchPlanner | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_scan": self._scan, "_started": None}

    @property
    def _planner(self) -> BatchPlanner:
        if self._started is None:
            self._started = BatchPlanner(self._scan)
        return self._started

    @property
    def _limit(self) -> ReadLimit:
        """``maxRowsPerBatch``."""
        limit = self._scan.options.max_rows_per_batch
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def _plan_end(self, start: Offset, limit: ReadLimit) -> Offset:
        return call_with_retries(self._scan, lambda: self._planner.plan_end(start, limit))

    @lead_with_sentence
    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """The same at every call: what the options say, not what the time is."""
        return self._planner.offsets.make_first(self._scan.options.starting_timestamp)

    @lead_with_sentence
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of a batch."""
        parts = call_with_retries(self._scan, lambda: self._planner.plan_slices(start, end))
        gathered = gather_slices(parts, self._scan.options.rows_per_slice)
        if not self._scan.options.arrow_rows:
            return [SlicePartition(each) for each in gathered]
        window = call_with_retries(self._scan, lambda: self._planner.describe_window(start, end))
        if window is None:
            return [SlicePartition(each) for each in gathered]
        first, *rest = gathered or [()]
        return [WindowPartition(first, window=window), *(SlicePartition(each) for each in rest)]

    @lead_with_sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some slices, as they were at the batch's end."""
        assert isinstance(partition, SlicePartition)
        for planned in partition.planned:
            yield from read_slice(self._scan, planned)
        if isinstance(partition, WindowPartition) and partition.window is not None:
            yield partition.window.to_row()

    @lead_with_sentence
    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink: clearing may follow."""
        call_with_retries(self._scan, lambda: self._planner.commit(end))

    def stop(self) -> None:
        """Gives the consumer's name back; clients are shared by the process and end with it."""
        if self._started is not None:
            self._started.stop()


class RefusedReader(DataSourceStreamReader):
    """What Spark gets in place of a reader that could not be made. It asks for an offset first, and
    shows what is raised there; raised where a reader is made, the error would be lost: Spark (up to
    4.3) then stops the reader that it does not have."""

    def __init__(self, error: WatcherError) -> None:
        self._error = error

    @lead_with_sentence
    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Raises the error."""
        raise self._error

    @lead_with_sentence
    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 (older Spark's)
        """Raises the error."""
        raise self._error

    @lead_with_sentence
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # noqa: ARG002
        """Raises the error."""
        raise self._error

    @lead_with_sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Raises the error."""
        raise self._error


class ChangesReader(StreamReader, SupportsTriggerAvailableNow):
    """The reader for versions of Spark that say where a batch starts."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """``maxRowsPerBatch``."""
        return self._limit

    @lead_with_sentence
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fixes where ``Trigger.AvailableNow`` ends."""
        call_with_retries(self._scan, self._planner.fix_end)

    @lead_with_sentence
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 (Spark's name)
        """The end of the next batch; the start itself when there is nothing to deliver."""
        return self._plan_end(start, limit)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        """The newest timestamp that was seen: what Spark's progress shows. A call is made where a
        batch has left rows, to count them."""
        return self._planner.newest_offset()
