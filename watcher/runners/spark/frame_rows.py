"""The rows of a micro-batch, on their way into the copies of a replica."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.copies import CHUNK_ENDED_EARLY
from watcher.process.failpoints import failpoint
from watcher.replica.copies import (
    DELETED_COLUMN,
    STAMP_COLUMN,
    CopyState,
    NewColumns,
    find_stamp,
    is_dropped,
)
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.loads import ChunkPace, LoadBudget, LoadProgress
from watcher.replica.new_columns import ColumnPlan
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.frames import EvolvingFrameCopy, FrameCopy
from watcher.replica.spark.kept_rows import SEQUENCE_COLUMN
from watcher.replica.window_reads import is_readable
from watcher.runners.spark.chunks import LoadedPart, plan_chunk
from watcher.runners.spark.column_scans import plan_values
from watcher.runners.spark.format_name import FORMAT as SOURCE
from watcher.runners.spark.newest import select_newest
from watcher.runners.spark.table_batches import TableDecoder, group_lacking
from watcher.settings.spark import SourceOptions
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")


@dataclass(frozen=True)
class FrameRows:
    """The ``WindowRows`` of a micro-batch. ``counts`` are the changes of each table, ``columns``
    which columns they have; ``budget``: for how long it loads, ``pace``: how many rows a chunk
    has. ``values``: what rows have in columns that their table got after they had changed."""

    spark: SparkSession
    source: SourceOptions
    options: Mapping[str, str]
    batch: DataFrame
    counts: Mapping[str, int]
    columns: Mapping[str, Sequence[str]]
    budget: LoadBudget
    pace: ChunkPace
    mode: Mode = LATEST
    values: dict[str, FrameValues] = member(default_factory=dict)

    @property
    def changed(self) -> Collection[str]:
        """As ``WindowRows.changed``."""
        return self.counts.keys()

    @property
    def may_load(self) -> bool:
        """As ``WindowRows.may_load``."""
        return not self.budget.used_up

    def load(
        self,
        copy: FrameCopy,
        capture: PollCapture,
        end: int,
        progress: LoadProgress | None = None,
    ) -> tuple[CopyState, int]:
        """As ``WindowRows.load``, chunk after chunk while there is time. What takes none, and a
        table that Data Boost reads, is one job."""
        self.budget.start()
        if progress is None and (self.source.data_boost or not copy.takes_chunks):
            return self._load_whole(copy, capture, end)
        state, count = self._load_chunk(copy, capture, end, progress)
        while state.progress is not None and state.end <= end and self.may_load:
            try:
                state, more = self._load_chunk(copy, capture, end, state.progress)
            except VersionExpiredError as error:
                CHUNK_ENDED_EARLY.log(LOG, table=capture.table.name, error=error)
                break
            count += more
        return state, count

    def _load_chunk(
        self, copy: FrameCopy, capture: PollCapture, end: int, progress: LoadProgress | None
    ) -> tuple[CopyState, int]:
        """The driver reads the keys, executors the rows."""
        began = time.monotonic()
        rows = self.pace.rows
        planned = plan_chunk(capture, end, progress, rows, self.source.rows_per_slice)
        written = copy.load_frame(planned.open(self.spark), end, planned.chunk)
        self.pace.note(rows, time.monotonic() - began)
        failpoint("after-spark-chunk")
        return written

    def _load_whole(self, copy: FrameCopy, capture: PollCapture, end: int) -> tuple[CopyState, int]:
        """Executors read Spanner's partitions of the table."""
        if not is_readable(capture, end):
            raise VersionExpiredError(
                f"{capture.table.name} cannot be read at {format_timestamp(end)} any more"
            )
        options = dict(self.options) | {
            "tables": capture.table.name,
            "snapshotTimestamp": format_timestamp(end),
        }
        for name in ("startingTimestamp", "exclude", "consumer"):
            options.pop(name, None)
        rows = self.spark.read.format(SOURCE).options(**options).load()
        kept = decode(rows, capture).where(~f.col(DELETED_COLUMN))
        return copy.load_frame(kept.drop(DELETED_COLUMN, SEQUENCE_COLUMN), end)

    def change_columns(
        self, copy: FrameCopy, capture: PollCapture, plan: ColumnPlan, columns: NewColumns
    ) -> CopyState | None:
        """As ``WindowRows.change_columns``."""
        if not isinstance(copy, EvolvingFrameCopy):
            return None
        values = plan_values(self.spark, capture, plan, columns.end, self.source.rows_per_slice)
        self.values[capture.table.name] = values
        return copy.change_columns(columns, values if plan.has_values else None)

    def merge(
        self, copy: FrameCopy, capture: PollCapture, end: int, before: CopyState
    ) -> tuple[CopyState, int]:
        """As ``WindowRows.merge``."""
        table = capture.table
        rows = self._decode(capture)
        changes = self._choose_changes(rows, table.primary_key, before.end)
        changes = changes.withColumnRenamed(STAMP_COLUMN, find_stamp(before.schema.names))
        for each in before.schema:
            if is_dropped(each):
                nothing = f.lit(None).cast(from_arrow_type(each.type))
                changes = changes.withColumn(each.name, nothing)
        if before.progress is None:
            return copy.merge_frame(changes, table.primary_key, end), self.counts[table.name]
        part = LoadedPart(table, before.progress)
        loaded = changes.mapInArrow(part.keep, changes.schema).persist()
        try:
            if loaded.isEmpty():
                return before, 0
            return copy.merge_frame(loaded, table.primary_key, end), self.counts[table.name]
        finally:
            loaded.unpersist()

    def _decode(self, capture: PollCapture) -> DataFrame:
        """The rows of a table, with the values of columns that changes lack."""
        name = capture.table.name
        own, values = self.batch.where(f.col("table") == name), self.values.get(name)
        groups = {} if values is None else group_lacking(self.columns.get(name, ()), capture)
        if values is None or not groups:
            return decode(own, capture, self.mode)
        lacking = [text for texts in groups.values() for text in texts]
        parts = [own.where(f.col("columns").isNull() | ~f.col("columns").isin(lacking))]
        parts += [own.where(f.col("columns").isin(texts)) for texts in groups.values()]
        whole, *others = (decode(part, capture, self.mode) for part in parts)
        for names, rows in zip(groups, others, strict=True):
            whole = whole.unionByName(values.fill(rows, names))
        return whole

    def _choose_changes(self, rows: DataFrame, key: Sequence[str], before: int) -> DataFrame:
        """The newest row of each key; for copies that keep more, all changes after the end that
        the copy has."""
        if self.mode == LATEST:
            order = (STAMP_COLUMN, SEQUENCE_COLUMN)
            return select_newest(rows, key, order).drop(SEQUENCE_COLUMN)
        return rows.where(f.unix_micros(f.col(STAMP_COLUMN)) > before)


def decode(rows: DataFrame, capture: PollCapture, mode: Mode = LATEST) -> DataFrame:
    """Rows of one table in its own columns."""
    decoder = TableDecoder(capture, mode)
    return rows.select("batch").mapInArrow(decoder, from_arrow_schema(decoder.schema))
