"""Copies that Spark writes and reads: what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type

from watcher.process.spark.arrow_schemas import convert_to_arrow_schema
from watcher.replica.copies import (
    DROPPED,
    CompactedCopy,
    CompactionRun,
    CopyState,
    EvolvingCopy,
    Merging,
    Needed,
    NewColumns,
)
from watcher.replica.cuts.modes import COLUMNS, ENDS, LATEST, Mode, check_mode, find_mode
from watcher.replica.layout import PLAIN, Layout, check_partitions
from watcher.replica.loads import LoadProgress
from watcher.replica.merge_sql import (
    SPARK,
    render_kept_merge,
    render_removal,
    render_spark_merge,
)
from watcher.replica.row_versions import strip_schema
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.kept_rows import mark_deleted, merge_kept
from watcher.replica.writing.compaction import CompactionPolicy

ROWS_VIEW = "spanner_watcher_rows"
"""The rows that a statement writes."""


@dataclass(frozen=True, slots=True)
class FrameChunk:
    """As ``Chunk``, for rows that are a data frame."""

    first: bool = True
    progress: LoadProgress | None = None


@dataclass(frozen=True, slots=True)
class FramePlace:
    """Where the copies of a replica are, and whose. ``location`` is the folder as Spark names it.
    ``namespace``: the names of a catalog and of a namespace, if the copies are tables there.
    ``schema``: that of Spark's catalog whose tables copies in Delta are to be; None: of none.
    ``merging``: how rows are merged; None: as a copy was made, and a new one is made for
    merge-on-read. ``policy``: how they are compacted; None: that, and the removal of what no cut
    needs, is the owner's. ``mode``: what copies keep that are made or written; None: as they were
    made. ``feed``: copies in Delta are to have the change data feed."""

    folder: str
    location: str
    consumer: str
    merging: Merging | None = None
    policy: CompactionPolicy | None = None
    namespace: tuple[str, ...] = ()
    schema: str | None = None
    mode: Mode | None = None
    feed: bool = False


WHOLE = FrameChunk()


class CopyUpkeep(Protocol):
    """Compaction and retention of a copy."""

    def compact(self, whole: bool) -> CompactionRun:
        """As ``CompactedCopy.compact``."""
        ...

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``."""
        ...


class FrameCopy(CompactedCopy, Protocol):
    """A copy that Spark writes, from data frames. ``takes_chunks``: it can be loaded in chunks."""

    takes_chunks: bool

    def load_frame(
        self, rows: DataFrame, end: int, chunk: FrameChunk = WHOLE
    ) -> tuple[CopyState, int]:
        """Puts the rows in the place of all that was there, or, unless the chunk is the first,
        beside them: the copy's state, and how many rows. A copy that is at the end of a first
        chunk, or above it, stays as it is."""
        ...

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """Puts each row in the place of that of its key, if it is newer; removes those that are
        ``DELETED_COLUMN``. A copy that keeps more takes every change, as ``arrange_changes`` of
        ``rows.py`` describes it, with ``SEQUENCE_COLUMN``."""
        ...

    def read_frame(self, version: int) -> DataFrame:
        """All rows of a version, with the columns of its mode. Raises ReplicaError where it cannot
        be read."""
        ...


@runtime_checkable
class EvolvingFrameCopy(EvolvingCopy, Protocol):
    """A ``FrameCopy`` whose columns may change without a load."""

    def change_columns(
        self, columns: NewColumns, values: FrameValues | None = None
    ) -> CopyState | None:
        """As ``EvolvingCopy.change_columns``; ``values``: those of new columns in the rows that the
        copy has (None: NULL)."""
        ...


class OpenFrameCopy(Protocol):
    """Opens the copy of a table in a session, by the table's name."""

    def __call__(self, spark: SparkSession, table: str, layout: Layout | None = None) -> FrameCopy:
        """``layout``: how its rows lie in its files; None: as it was made."""
        ...


class SparkTable(ABC):
    """What the copies have in common that are tables of Spark. ``name`` is that of the table, in
    SQL; ``layout`` as in ``OpenFrameCopy``."""

    def __init__(
        self, spark: SparkSession, name: str, place: FramePlace, layout: Layout | None
    ) -> None:
        self._spark = spark
        self._name = name
        self._consumer = place.consumer
        self._merging = place.merging
        self._mode = place.mode
        self._stated = layout
        self._layout = layout or PLAIN
        self._is_settled = False
        self._upkeep: CopyUpkeep | None = None
        """None: it is the owner's."""

    @abstractmethod
    def read_frame(self, version: int) -> DataFrame:
        """As ``FrameCopy.read_frame``."""

    @abstractmethod
    def _read_layout(self) -> Layout:
        """The partitions and the order of the table that is there, as settings spell them."""

    def _settle_layout(self) -> None:
        """Takes that of the table that is there where none is stated. Raises ConfigurationError for
        a table that was made with other partitions than stated."""
        if self._is_settled:
            return
        there = self._read_layout()
        if self._stated is None:
            self._layout = there
        else:
            check_partitions(self._name, there.partition_by, self._stated.partition_by)
        self._is_settled = True

    def read_schema(self, version: int) -> pa.Schema:
        """As ``StoredCopy.read_schema``."""
        return strip_schema(self.read_all_columns(version))

    def read_all_columns(self, version: int) -> pa.Schema:
        """As ``KeepingCopy.read_all_columns``."""
        return arrow_schema(self.read_frame(version))

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``StoredCopy.scan``: the rows that the table has at the version."""
        return scan_frame(keep_live(self.read_frame(version)), columns)

    def scan_all(self, version: int) -> Iterator[pa.RecordBatch]:
        """As ``KeepingCopy.scan_all``."""
        return scan_frame(self.read_frame(version), None)

    def _read_written_schema(self, version: int) -> pa.Schema:
        """The columns of a version that is written on. Raises ConfigurationError where the copy is
        of another mode."""
        schema = self.read_all_columns(version)
        if self._mode is not None:
            check_mode(self._name, schema.names, self._mode)
        return strip_schema(schema)

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:  # noqa: ARG002 (Spark finds rows itself)
        """As ``FrameCopy.compact``."""
        return CompactionRun() if self._upkeep is None else self._upkeep.compact(whole)

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``."""
        if self._upkeep is not None:
            self._upkeep.remove_before(needed)

    def _add_columns(self, schema: pa.Schema, settings: Mapping[str, str]) -> None:
        """Gives the table the columns of a schema that it does not have, in their places, in a
        commit of metadata."""
        there = set(self._spark.table(self._name).columns)
        added = ", ".join(render_columns(schema, there))
        if added:
            with session_settings(self._spark, settings):
                self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS ({added})")

    def _merge(self, rows: DataFrame, key: Sequence[str], settings: Mapping[str, str]) -> None:
        there = self._spark.table(self._name)
        if find_mode(there.columns) == LATEST:
            self._run(render_spark_merge(self._name, ROWS_VIEW, rows.columns, key), rows, settings)
            return
        merged = merge_kept(rows, there, arrow_schema(there), key).persist()
        try:
            self._run(
                render_kept_merge(self._name, ROWS_VIEW, merged.columns, key), merged, settings
            )
        finally:
            merged.unpersist()

    def _remove(self, keys: pa.Table, end: int, settings: Mapping[str, str]) -> None:
        """Removes the rows of some keys, or marks them as deleted at a window's end."""
        names, spark = keys.column_names, self._spark
        # Of batches Spark reads none after an empty one.
        whole = keys.combine_chunks()
        gone = spark.createDataFrame(whole).dropDuplicates() if names else spark.range(1)
        if find_mode(spark.table(self._name).columns) == LATEST:
            self._run(render_removal(self._name, ROWS_VIEW, names), gone, settings)
        else:
            self._merge(mark_deleted(gone, end), names, settings)

    def _run(self, sql: str, rows: DataFrame, settings: Mapping[str, str]) -> None:
        """Runs a statement that writes rows, which it calls ``ROWS_VIEW``, with settings of the
        session."""
        rows.createOrReplaceTempView(ROWS_VIEW)
        with session_settings(self._spark, settings):
            self._spark.sql(sql).collect()
        self._spark.catalog.dropTempView(ROWS_VIEW)


def render_columns(schema: pa.Schema, there: Collection[str]) -> Iterator[str]:
    """The columns of a schema that a table does not have, as Spark's DDL writes them."""
    place = "FIRST"
    for field in schema:
        name = SPARK.quote(field.name)
        if field.name not in there:
            yield f"{name} {from_arrow_type(field.type).simpleString()} {place}"
        place = f"AFTER {name}"


def render_text(value: str) -> str:
    """A text as a literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def keep_live(rows: DataFrame) -> DataFrame:
    """The rows of a copy that its table has, with the table's columns."""
    mode = find_mode(rows.columns)
    return rows if mode == LATEST else rows.where(f.col(ENDS[mode]).isNull()).drop(*COLUMNS[mode])


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a data frame as the rest of a replica knows them, also that a table has lost
    one. Iceberg has that in the column's comment."""
    schema = convert_to_arrow_schema(frame.schema)
    for index, (field, column) in enumerate(zip(schema, frame.schema, strict=True)):
        if DROPPED in (*column.metadata, column.metadata.get("comment")):
            schema = schema.set(index, field.with_metadata({DROPPED: ""}))
    return schema


def scan_frame(frame: DataFrame, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a data frame, which the driver holds meanwhile."""
    chosen = frame if columns is None else frame.select(*map(SPARK.quote, columns))
    table = chosen.toArrow()
    return iter(table.cast(arrow_schema(chosen)).to_batches())


def sort_frame(rows: DataFrame, names: Sequence[str], *first: Column) -> DataFrame:
    """The rows of each partition of Spark's in the order of some columns, NULL last."""
    order = [f.col(SPARK.quote(name)).asc_nulls_last() for name in names]
    return rows.sortWithinPartitions(*first, *order) if order else rows


@contextmanager
def session_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for one statement."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


def first_line(error: PySparkException) -> str:
    """What Spark says, without its plan."""
    return str(error).partition("\n")[0]
