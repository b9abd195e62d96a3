"""Copies as plain Parquet, by Spark. What it writes is in docs/replica-protocol.md."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import CompactionRun, CopyState, find_stamp
from watcher.replica.layout import PLAIN, Layout, check_kept
from watcher.replica.merge_sql import SOURCE, SPARK, TARGET
from watcher.replica.parquet import FILES, DataFile, ParquetCopy, ParquetVersion
from watcher.replica.spark.frames import (
    WHOLE,
    FrameChunk,
    FramePlace,
    arrow_schema,
    first_line,
    session_settings,
    sort_frame,
)

WRITE_SETTINGS = {
    # Arrow cannot read every timestamp of Spark's own form, INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
SMALL_ROWS = 100_000
SMALL_FILES_MAX = 32
FILE_PATH = "$file_path"


class SparkParquetCopy(ParquetCopy):
    """The ``FrameCopy`` in a folder. A version is the end of a window: there is no second one for a
    chunk. Every file is written in the order of the layout."""

    takes_chunks = False

    def __init__(
        self, spark: SparkSession, table: str, place: FramePlace, layout: Layout | None
    ) -> None:
        super().__init__(f"{place.folder}/{table}", place.consumer)
        self._spark = spark
        self._location = f"{place.location}/{table}"
        self._layout = layout or PLAIN

    def load_frame(
        self,
        rows: DataFrame,
        end: int,
        chunk: FrameChunk = WHOLE,  # noqa: ARG002 (it is loaded whole)
    ) -> tuple[CopyState, int]:
        """As ``FrameCopy.load_frame``."""
        before = self.read_state()
        if before is not None and before.end >= end:
            return before, 0
        check_kept(self._layout, rows.columns, self.versions.path)
        files = self._write_files(rows, end)
        state = self._commit("load", arrow_schema(rows), files, end)
        return state, sum(each.rows for each in files)

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """As ``FrameCopy.merge_frame``."""
        known = self.known or self.read_state()
        if known is None:
            raise ReplicaError(f"{self.versions.path} has no versions any more: restart the query")
        version = self.versions.read(known.version)
        rows.persist()
        try:
            replaced = self._find_replaced(version, rows, key)
            kept = tuple(each for each in version.files if each.path not in replaced)
            rewritten = [each for each in version.files if each.path in replaced]
            merged = merge_rows(self._read_files(rewritten, version.schema), rows, key)
            files = self._write_files(merged, end)
        finally:
            rows.unpersist()
        return self._commit("merge", version.schema, kept + files, end)

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:  # noqa: ARG002 (merges do)
        """As ``FrameCopy.compact``: merges put small files together."""
        return CompactionRun()

    def read_frame(self, version: int) -> DataFrame:
        """As ``FrameCopy.read_frame``."""
        stored = self.versions.read(version)
        try:
            return self._read_files(stored.files, stored.schema)
        except PySparkException as error:
            raise self.versions.unreadable(version, first_line(error)) from error

    def _read_files(self, files: Sequence[DataFile], schema: pa.Schema) -> DataFrame:
        wanted = from_arrow_schema(schema)
        if not files:
            return self._spark.createDataFrame([], wanted)
        paths = [f"{self._location}/{each.path}" for each in files]
        return self._spark.read.schema(wanted).parquet(*paths)

    def _find_replaced(
        self, version: ParquetVersion, rows: DataFrame, key: Sequence[str]
    ) -> set[str]:
        """The paths of the files that have one of the keys; of many small files, all of these."""
        if not version.files:
            return set()
        names = [f.col(SPARK.quote(name)) for name in key]
        stored = self._read_files(version.files, version.schema)
        # The table may have a column of this name, too.
        path = stored.metadataColumn("_metadata").getField("file_path").alias(FILE_PATH)
        there = stored.select(*names, path).alias(TARGET)
        changed = rows.select(*names).alias(SOURCE)
        same = f.expr(SPARK.match_keys(key))
        found = there.join(changed, same, "left_semi").select(FILE_PATH).distinct()
        replaced = {find_path(row[0]) for row in found.collect()}
        small = {each.path for each in version.files if each.rows < SMALL_ROWS}
        return replaced | (small if len(small) > SMALL_FILES_MAX else set())

    def _write_files(self, rows: DataFrame, end: int) -> tuple[DataFile, ...]:
        """Writes rows to a folder that nobody else has."""
        folder = f"{FILES}/{end}-{secrets.token_hex(6)}"
        with session_settings(self._spark, WRITE_SETTINGS):
            ordered = sort_frame(rows, self._layout.sort_by)
            ordered.write.parquet(f"{self._location}/{folder}")
        failpoint("after-replica-files")
        return self.versions.describe_files(folder)

    def _commit(
        self, kind: str, schema: pa.Schema, files: tuple[DataFile, ...], end: int
    ) -> CopyState:
        self.check_known(end)
        self.versions.write(ParquetVersion(self.consumer, end, kind, schema, files))
        self.known = CopyState(end, end, schema)
        self.written = end
        return self.known


def merge_rows(there: DataFrame, rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows of a copy after a window: what a MERGE would leave."""
    names = there.columns
    target = there.select(f.struct(*(f.col(SPARK.quote(name)) for name in names)).alias(TARGET))
    source = rows.select(f.struct("*").alias(SOURCE))
    joined = target.join(source, f.expr(SPARK.match_keys(key)), "full_outer")
    newer = f.col(SOURCE).isNotNull() & (
        f.col(TARGET).isNull() | f.expr(SPARK.is_newer(find_stamp(names)))
    )
    removed = newer & f.expr(SPARK.is_removed)
    columns = [
        f.when(newer, f.col(new)).otherwise(f.col(SPARK.quote(name, TARGET))).alias(name)
        for name, new in zip(names, SPARK.assign(names).values(), strict=True)
    ]
    return joined.where(~removed).select(*columns)


def find_path(address: str) -> str:
    """The path of a file in its copy; Spark gives its whole address."""
    return "/".join([FILES, *address.split("/")[-2:]])
