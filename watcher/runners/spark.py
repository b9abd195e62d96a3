"""The Spark source ``spanner-changes``: an offset is a position, a micro-batch a window, an input
partition a slice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from watcher.captures.poll import PollCapture
from watcher.config import SourceOptions, resolve_start, source_options
from watcher.database import connect
from watcher.errors import CheckpointError
from watcher.positions import Position, SpannerPositions
from watcher.shards import groups
from watcher.stream import micros_of, timestamp_text
from watcher.table import discover
from watcher.window import Slice, Window

FORMAT = "spanner-changes"
OFFSET_VERSION = 1

Offset = dict[str, Any]
"""{"version", "database", "table"} and then: {"start": ...} for the very first offset, which says
where the options want to start; {"position": ...} for every other one. The first window's end also
carries {"from": ...}, its resolved start: Spark asks for the first offset again when a query is
restarted before its first batch is done, and "latest" would be a later time then."""


def register(spark: SparkSession) -> None:
    """Makes ``spark.readStream.format("spanner-changes")`` known to a session."""
    spark.dataSource.register(SpannerChanges)


@dataclass
class SlicePartition(InputPartition):
    """An input partition: a slice of a window."""

    part: Slice


class SpannerChanges(DataSource):
    """One table's changes as a streaming source. Options: see ``watcher.config.SourceOptions``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The table's columns in Spark's types, ``_commit_timestamp`` and ``_shard_id``."""
        _, capture = planned(dict(self.options))
        return from_arrow_schema(capture.schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        """The reader of one query."""
        options, capture = planned(dict(self.options))
        return ChangesReader(options, capture)


def planned(given: dict[str, str]) -> tuple[SourceOptions, PollCapture]:
    """Checks the options, finds the table, and groups its shards."""
    options = source_options(given)
    table = discover(connect(options.address), options.table)
    shards = groups(table.shard_values, options.shard_groups)
    return options, PollCapture(options.address, table, shards)


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans windows on the driver; ``read`` runs on the executors."""

    def __init__(self, options: SourceOptions, capture: PollCapture) -> None:
        self._options = options
        self._capture = capture
        self._table = capture.table.name
        self._registered = False
        self._until: int | None = None
        self._advanced_at = 0.0

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """The same at every call: what the options say, not what the time is."""
        return self._offset(start=self._options.starting_timestamp)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """``maxRowsPerBatch``."""
        limit = self._options.max_rows_per_batch
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fixes where ``Trigger.AvailableNow`` ends."""
        self._until = self._capture.look(0)[0].end

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 (Spark's name)
        """The end of the next window; the start itself when there is nothing to deliver.

        An idle table's position advances every ``idleSeconds`` too, so that lag is honest and
        clearing is not held up.
        """
        first = "position" not in self._checked(start)
        begin = self._begin(start)
        whole, found = self._capture.look(begin)
        if self._until is not None:
            whole = Window(begin, max(begin, min(whole.end, self._until)))
            found = found and not whole.empty
        idle = time.monotonic() - self._advanced_at < self._options.idle_seconds
        if not found and not first and (idle or self._until is not None):
            return start
        window = whole
        if found and isinstance(limit, ReadMaxRows):
            window = self._capture.cut(whole, limit.max_rows)
        self._register(begin)
        self._advanced_at = time.monotonic()
        end = self._offset(position=timestamp_text(window.end))
        return end | {"from": timestamp_text(begin)} if first else end

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        """What Spark's progress shows as the newest position that there is."""
        return self._offset(position=timestamp_text(self._capture.look(0)[0].end))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One partition a shard group."""
        self._checked(start)
        window = self._window(start, self._checked(end))
        self._register(window.start)
        return [SlicePartition(part) for part in self._capture.plan(window)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the window's end."""
        assert isinstance(partition, SlicePartition)
        return self._capture.read(partition.part)

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink: clearing may follow."""
        if self._options.consumer is None or "position" not in self._checked(end):
            return
        positions = self._positions()
        kept = positions.load(self._options.consumer, self._table)
        reached = micros(end["position"])
        if kept is None or kept.micros < reached:
            position = Position(self._options.consumer, self._table, reached)
            positions.save(position, kept.micros if kept else None)

    def stop(self) -> None:
        """Clients are shared by the process and end with it."""

    def _positions(self) -> SpannerPositions:
        return SpannerPositions(connect(self._options.address), self._options.positions_table)

    def _register(self, begin: int) -> None:
        """Before anything is read, so that clearing never overtakes a query that is starting."""
        if self._options.consumer is None or self._registered:
            return
        positions = self._positions()
        positions.create()
        if positions.load(self._options.consumer, self._table) is None:
            positions.save(Position(self._options.consumer, self._table, begin), None)
        self._registered = True

    def _begin(self, start: Offset) -> int:
        if "position" in start:
            return micros(start["position"])
        wanted = resolve_start(start["start"])
        return wanted if wanted is not None else self._capture.look(0)[0].end

    def _window(self, start: Offset, end: Offset) -> Window:
        begin = end["from"] if "from" in end else start.get("position")
        if begin is None:
            raise CheckpointError(f"the offset {end} does not say where its window begins")
        return Window(micros(begin), micros(end["position"]))

    def _offset(self, **place: str) -> Offset:
        return {
            "version": OFFSET_VERSION,
            "database": self._options.address.path,
            "table": self._table,
        } | place

    def _checked(self, offset: Offset) -> Offset:
        """An offset of this table and of a release that can be read. Raises CheckpointError."""
        if offset.get("version") != OFFSET_VERSION:
            raise CheckpointError(
                f"the checkpoint holds offsets of version {offset.get('version')};"
                f" this release reads version {OFFSET_VERSION}"
            )
        expected = (self._options.address.path, self._table)
        found = (offset.get("database"), offset.get("table"))
        if found != expected:
            raise CheckpointError(
                f"the checkpoint belongs to table {found[1]} of {found[0]}, not to table"
                f" {expected[1]} of {expected[0]}; use a checkpoint of its own for each stream"
            )
        return offset


def micros(text: str) -> int:
    """An RFC 3339 timestamp as microseconds since 1970."""
    return micros_of(datetime.fromisoformat(text))
