"""Copies as Delta tables, by Spark. What it commits is in docs/replica-protocol.md."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, Protocol

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.model.log_events.copies import CHANGE_FEED_ENABLED, DELETION_VECTORS_ENABLED
from watcher.process.extras import require_extras
from watcher.process.failpoints import failpoint
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    CopyState,
    NewColumns,
    OutsideCommit,
    is_dropped,
    make_conflict,
)
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import LATEST
from watcher.replica.cuts.stored import FORMAT
from watcher.replica.delta.feed_columns import PROPERTY as FEED
from watcher.replica.delta.feed_columns import check_feed_columns
from watcher.replica.delta.log import GONE, LOAD, LOADED, DeltaLog, list_gone
from watcher.replica.delta.log import METADATA as MARK
from watcher.replica.layout import Layout
from watcher.replica.loads import CHUNK, ON
from watcher.replica.merge_sql import SPARK
from watcher.replica.spark.catalog_entries import CatalogEntry
from watcher.replica.spark.chunked_tables import ChunkCommit, ChunkedTable, list_lost
from watcher.replica.spark.delta_history import DeltaHistory
from watcher.replica.spark.delta_partitions import check_values, explain_values
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.frames import CopyUpkeep, FramePlace, first_line
from watcher.replica.writing.compaction import CompactionPolicy

LOG = logging.getLogger("watcher.replica")
LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"
APPLICATION = "spark.databricks.delta.write.txnAppId"
TRANSACTION = "spark.databricks.delta.write.txnVersion"
VECTORS = "delta.enableDeletionVectors"
ENABLED = {VECTORS: DELETION_VECTORS_ENABLED, FEED: CHANGE_FEED_ENABLED}
"""What is said where a copy that is there gets a property."""
MERGE_BY_VECTORS = "spark.databricks.delta.merge.deletionVectors.persistent"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
UPKEEP = "watcher.replica.spark.delta_upkeep:DeltaUpkeep"
"""Loaded where copies are compacted: a query that only writes them does not need its libraries."""
COLUMNS = "watcher.replica.spark.delta_columns:DeltaColumns"
"""Loaded where columns go, for the same reason."""


class FrameColumns(Protocol):
    """What ``DeltaColumns`` has, which is loaded when it is used."""

    def take(self, added: Sequence[str], gone: Sequence[str], with_values: bool) -> bool:
        """As ``EvolvingCopy.takes_columns``."""
        ...

    def change(self, after: int, columns: NewColumns, described: str) -> int | None:
        """Changes the columns in a version after one that is known."""
        ...


class SparkDeltaCopy(ChunkedTable):
    """The ``FrameCopy`` in a folder. Compactions by others are no conflicts.

    Delta itself refuses what an instance that was taken over writes: its transaction is not above
    the stored one. Of a chunk that it has appended all the same, the chain of the commits tells.
    """

    def __init__(
        self, spark: SparkSession, table: str, place: FramePlace, layout: Layout | None
    ) -> None:
        path, self._path = f"{place.folder}/{table}", f"{place.location}/{table}"
        super().__init__(spark, f"delta.{SPARK.quote(self._path)}", place, layout, path)
        self._history = DeltaHistory(spark, self._name, place.consumer)
        self._log = DeltaLog(path, self._consumer)
        self._feed = place.feed
        self._enabled: set[str] = set()
        self._loaded = 0
        """The end of the newest chunk of the load, of a copy that keeps more than the latest
        rows: each commit says it."""
        self._entry: CatalogEntry | None = None
        if place.schema is not None:
            self._entry = CatalogEntry(spark, place.schema, table, self._name, self._path)
        if place.policy is not None:
            self._upkeep = open_upkeep(path, place.policy)

    def _read_stored(self) -> CopyState | None:
        """The copy as it is, apart from its load."""
        if self._entry is not None:
            self._entry.check()
        commits = self._history.read(1)
        if not commits:
            return None
        version = int(commits[0]["version"])
        schema = self._read_written_schema(version)
        if self._feed:
            check_feed_columns(self._path, schema.names)
        self._settle_layout()
        return CopyState(version, self._history.find_end(version), schema)

    def _find_mark(self, version: int) -> Mapping[str, Any] | None:
        mark = self._log.find_mark(version)
        self._loaded = 0 if mark is None else mark.get(LOADED, 0)
        return mark

    def find_loaded(self, version: int) -> int:
        """As ``KeepingCopy.find_loaded``."""
        mark = self._log.find_mark(version)
        return 0 if mark is None else int(mark.get(LOADED, 0))

    def _is_chained(self, version: int) -> bool:
        return self._log.is_chained(version)

    def _write_chunk(
        self, rows: DataFrame, before: CopyState | None, commit: ChunkCommit
    ) -> tuple[CopyState, int]:
        names = self._layout.partition_by
        if self._feed and before is not None:
            self._enable({FEED})
        self._spark.conf.unset(LAST_VERSION)
        checked = check_values(rows, names, self._path)
        writer = open_writer(checked, names, self._application)
        mark = {CHUNK: commit.name}
        self._loaded = commit.end
        if commit.first:
            properties = self._list_new() if before is None else {}
            described = self._describe(LOAD, commit.end, before.version if before else -1, mark)
            writer = writer.mode("overwrite").options(**properties, overwriteSchema="true")
        else:
            described = self._describe(CHUNK, commit.end, None, mark | {ON: commit.on})
            writer = writer.mode("append")
        number = str(commit.end + commit.number)
        with explain_values(names, self._path):
            writer.options(txnVersion=number, userMetadata=described).save(self._path)
        state = self._check_committed(before, commit.end)
        count = self._history.count_written(state.version)
        return self._forget_gone(state) if commit.first and before else state, count

    def _forget_gone(self, state: CopyState) -> CopyState:
        """After a load no file has what has left the schema: in a commit that changes no rows."""
        if GONE not in self._read_detail()["properties"]:
            return state
        self._spark.sql(f"ALTER TABLE {self._name} UNSET TBLPROPERTIES ('{GONE}')")
        return replace(state, version=int(self._spark.conf.get(LAST_VERSION) or state.version))

    def _list_new(self) -> dict[str, str]:
        """The properties of a new table."""
        vectors = {VECTORS: str(self._merging != COPY_ON_WRITE).lower()}
        return vectors | ({FEED: "true"} if self._feed else {})

    def takes_columns(
        self, added: Sequence[str], gone: Sequence[str], with_values: bool = False
    ) -> bool:
        """As ``EvolvingCopy.takes_columns``. Files may have columns that have left the schema."""
        if not super().takes_columns(added, gone, with_values):
            return False
        if gone:
            return open_columns(self._folder).take(added, gone, with_values)
        left = {name.casefold() for name in list_gone(self._read_detail()["properties"])}
        return not any(name.casefold() in left for name in added)

    def _commit_columns(
        self, before: CopyState, columns: NewColumns, values: FrameValues | None
    ) -> CopyState:
        """A commit with the columns that go, and one with new columns and their values."""
        described = self._describe("columns", before.end, None, {})
        filled = frozenset() if values is None else values.names
        if list_lost(before.schema, columns):
            kept = pa.schema([each for each in columns.schema if each.name not in filled])
            change = replace(columns, schema=kept)
            version = open_columns(self._folder).change(before.version, change, described)
            if version is None or self._history.has_own_commits(before.version, version):
                raise self._refuse(before, columns.end)
            before = replace(before, version=version, schema=self.read_schema(version))
            failpoint("after-replica-files")
        self._spark.conf.unset(LAST_VERSION)
        if values is not None and filled:
            dropped = [each.name for each in before.schema if is_dropped(each)]
            rows = values.fill(self.read_frame(before.version), filled)
            rows = rows.select(*map(SPARK.quote, (*columns.schema.names, *dropped)))
            # Delta skips that where another instance has committed the window.
            said = {"txnVersion": str(columns.end - 1), "userMetadata": described}
            writer = open_writer(rows, self._layout.partition_by, self._application)
            writer.mode("overwrite").options(**said, overwriteSchema="true").save(self._path)
        elif set(columns.schema.names) - set(before.schema.names):
            self._add_columns(columns.schema, {METADATA: described})
        else:
            return before
        return self._check_committed(before, before.end)

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """As ``FrameCopy.merge_frame``."""
        before = self._known or self.read_state()
        settings = self._prepare_merge("merge", end, end, rows.columns)
        names = self._layout.partition_by
        with explain_values(names, self._path):
            self._merge(check_values(rows, names, self._path), key, settings)
        return self._check_committed(before, end, before.schema if before is not None else None)

    def remove_keys(self, keys: pa.Table, end: int) -> CopyState:
        """As ``RemovingCopy.remove_keys``. The window may have other transactions before it."""
        before = self._known or self.read_state()
        version = -1 if before is None else before.version
        number = max(end, self._log.find_transaction(version, self._application) + 1)
        columns = self._spark.table(self._name).columns
        self._remove(keys, end, self._prepare_merge("deletes", end, number, columns))
        return self._check_committed(before, end, before.schema if before is not None else None)

    def _prepare_merge(
        self, kind: str, end: int, number: int, columns: Sequence[str]
    ) -> dict[str, str]:
        """The settings of the session for a MERGE with the ``number`` of its transaction."""
        whole_files = self._merging == COPY_ON_WRITE or has_hidden_name(columns)
        wanted = {FEED} if self._feed else set()
        if (self._feed or self._merging == MERGE_ON_READ) and not whole_files:
            wanted.add(VECTORS)
        self._enable(wanted)
        self._spark.conf.unset(LAST_VERSION)
        settings = {
            APPLICATION: self._application,
            TRANSACTION: str(number),
            METADATA: self._describe(kind, end, None, self._load.mark),
        }
        return settings | ({MERGE_BY_VECTORS: "false"} if whole_files else {})

    def _enable(self, names: Collection[str]) -> None:
        """Gives an existing table properties, in a commit that changes no rows."""
        if self._enabled.issuperset(names):
            return
        there = self._read_detail()["properties"]
        missing = [name for name in names if there.get(name) != "true"]
        if missing:
            properties = ", ".join(f"'{name}' = 'true'" for name in missing)
            self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({properties})")
        for name in missing:
            ENABLED[name].log(LOG, path=self._path)
        self._enabled.update(names)

    def _read_layout(self) -> Layout:
        return Layout(tuple(self._read_detail()["partitionColumns"]))

    def _read_detail(self) -> Row:
        (row,) = self._spark.sql(f"DESCRIBE DETAIL {self._name}").collect()
        return row

    def read_frame(self, version: int) -> DataFrame:
        """As ``FrameCopy.read_frame``."""
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        try:
            return reader.load(self._path)
        except PySparkException as error:
            raise ReplicaError(
                f"cannot read version {version} of {self._path}: {first_line(error)}; where VACUUM"
                " or the clean-up of its log has removed it, use a later cut"
            ) from error

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        return self._log.list_outside(after, upto)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``."""
        return self._log.find_end(version)

    @property
    def _application(self) -> str:
        return f"spanner-watcher/{self._consumer}"

    def _describe(self, kind: str, end: int, replaced: int | None, more: Mapping[str, str]) -> str:
        """The user metadata of a commit; of a load also the version that it ``replaced``."""
        values = {"format": FORMAT, "consumer": self._consumer, "end": end, "kind": kind, **more}
        if (self._mode or LATEST) != LATEST:
            values[LOADED] = self._loaded
        return json.dumps({MARK: values if replaced is None else values | {"replaced": replaced}})

    def _check_committed(
        self, before: CopyState | None, end: int, schema: pa.Schema | None = None
    ) -> CopyState:
        """The state after a write; ``schema`` if that is known. Raises CopyConflictError where
        Delta has refused it, because another instance was faster, or where one has written
        between."""
        known = before.version if before is not None else -1
        committed = self._spark.conf.get(LAST_VERSION, None)
        version = int(committed) if committed else known
        if version == known or self._history.has_own_commits(known, version):
            raise self._refuse(before, end)
        schema = self.read_schema(version) if schema is None else schema
        self._known = CopyState(version, end, schema, self._load.progress)
        if self._entry is not None:
            self._entry.make()
        return self._known

    def _refuse(self, before: CopyState | None, end: int) -> CopyConflictError:
        """Another instance has written since a state was read."""
        self._known = None
        known = before.version if before is not None else -1
        known_as = f"{self._path}, which was at version {known}"
        return make_conflict(known_as, self._consumer, end)


def has_hidden_name(columns: Sequence[str]) -> bool:
    """Whether a column has the name by which Delta asks Spark for the place of a row, which is
    ambiguous then: such a table cannot be merged on read by Spark."""
    return "_metadata" in {name.casefold() for name in columns}


def open_writer(rows: DataFrame, partitions: Sequence[str], application: str) -> DataFrameWriter:
    """Writes rows in partitions, in a transaction of an application."""
    writer = rows.write.format("delta").option("txnAppId", application)
    return writer.partitionBy(*partitions) if partitions else writer


def open_columns(path: str) -> FrameColumns:
    """Those of a copy that go, as without Spark. Raises MissingExtraError."""
    require_extras(DELTA)
    opened: FrameColumns = resolve_name(COLUMNS)(path)
    return opened


def open_upkeep(path: str, policy: CompactionPolicy) -> CopyUpkeep:
    """That of a copy, which this process does without Spark. Raises MissingExtraError."""
    require_extras(DELTA)
    opened: CopyUpkeep = resolve_name(UPKEEP)(path, policy)
    return opened
