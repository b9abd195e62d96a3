"""Copies as Iceberg tables, by Spark. What it commits is in docs/replica-protocol.md."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import COPY_RENAMED
from watcher.process.failpoints import failpoint
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    CopyState,
    NewColumns,
    OutsideCommit,
    make_conflict,
)
from watcher.replica.cuts.cut import CONSUMER, END, KIND, PREFIX
from watcher.replica.cuts.modes import LATEST
from watcher.replica.iceberg.lineage import LOAD, VALUES, Ancestor, disown_stale, list_outside
from watcher.replica.iceberg.names import LOADED, MERGE_MODE, name_copy
from watcher.replica.layout import Layout
from watcher.replica.loads import CHUNK, ON
from watcher.replica.merge_sql import SPARK
from watcher.replica.row_versions import strip_schema
from watcher.replica.spark.chunked_tables import ChunkCommit, ChunkedTable, list_lost
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.frames import (
    ROWS_VIEW,
    FramePlace,
    arrow_schema,
    first_line,
)
from watcher.replica.spark.iceberg_columns import lose_columns, may_go, write_values
from watcher.replica.spark.iceberg_layout import (
    DISTRIBUTION,
    FILE_SIZE,
    ORDER,
    arrange_frame,
    list_partitions,
    load_settings,
    name_order,
    parse_order,
    render_order,
    render_table,
)
from watcher.replica.spark.iceberg_upkeep import IcebergUpkeep

LOG = logging.getLogger("watcher.replica")
CATALOG = "spark.sql.catalog"
PROPERTY = "spark.sql.iceberg.snapshot-property"
TABLE_PROPERTIES = {
    "format-version": "2",
    # A MERGE is refused where another writer has added rows meanwhile.
    "write.merge.isolation-level": "serializable",
}
NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class IcebergCommit:
    """A snapshot by the consumer, at a window's ``end``; ``is_current``: the table goes on from
    it."""

    end: int
    chunk: str | None
    snapshot_id: int
    is_current: bool


class SparkIcebergCopy(ChunkedTable):
    """The ``FrameCopy`` in a namespace, or in a catalog of the replica's folder. Compactions by
    others are no conflicts. A merge is refused where another instance has written meanwhile; a load
    that was committed all the same is somebody else's: ``disown_stale``."""

    def __init__(
        self, spark: SparkSession, table: str, place: FramePlace, layout: Layout | None
    ) -> None:
        self._table, self._copy = table, name_copy(table)
        catalog, *namespace = place.namespace or (add_catalog(spark, place.location),)
        self._catalog = SPARK.quote(catalog)
        copy = ".".join(map(SPARK.quote, (*namespace, self._copy)))
        self._location = f"{place.location}/{self._copy}" if namespace else None
        super().__init__(
            spark, f"{self._catalog}.{copy}", place, layout, f"{place.folder}/{self._copy}"
        )
        self._newest: IcebergCommit | None = None
        self._is_set = False
        if place.policy is not None:
            reads = (self._read_snapshots, lambda: self._layout)
            self._upkeep = IcebergUpkeep(spark, self._catalog, copy, place.policy, *reads)

    def _read_stored(self) -> CopyState | None:
        if not self._exists():
            return None
        self._settle_layout()
        self._newest = next((each for each in self._read_commits() if each.is_current), None)
        if self._newest is None:
            # Created, and not loaded; or its snapshots were expired.
            return None
        end = self._newest.end
        return CopyState(end, end, self._read_written_schema(end))

    def find_loaded(self, version: int) -> int:
        """As ``KeepingCopy.find_loaded``."""
        loaded = int(self._read_properties().get(LOADED, 0))
        return loaded if loaded <= version else 0

    def _find_mark(self, version: int) -> Mapping[str, Any] | None:  # noqa: ARG002 (of the newest)
        chunk = None if self._newest is None else self._newest.chunk
        return None if chunk is None else {CHUNK: chunk}

    def _is_chained(self, version: int) -> bool:  # noqa: ARG002 (a load is under way at the newest)
        latest = reversed(self._read_snapshots())
        since = takewhile(lambda each: each.kind != LOAD, latest)
        return not any(each.on is not None and not each.end for each in since)

    def _write_chunk(
        self, rows: DataFrame, before: CopyState | None, commit: ChunkCommit
    ) -> tuple[CopyState, int]:
        mark = {CHUNK: commit.name, ON: commit.on}
        if commit.first:
            self._replace(rows, commit.end, self._describe(LOAD, commit.end, mark))
        else:
            self._note_loaded(commit.end)
            added = f"INSERT INTO {self._name} BY NAME SELECT * FROM {ROWS_VIEW}"  # noqa: S608 (names are quoted)
            self._run(added, rows, self._describe(CHUNK, commit.end, mark))
        state = self._check_committed(before, commit.end, commit.name)
        return state, self._count_added(commit.end)

    def _note_loaded(self, end: int) -> None:
        """Says when the next chunk was read, before it is committed: until a load is complete no
        cut of it is exact."""
        if (self._mode or LATEST) != LATEST:
            self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('{LOADED}' = '{end}')")

    def _replace(self, rows: DataFrame, end: int, described: Mapping[str, str]) -> None:
        """Makes a table of rows that were read at a timestamp, in the place of one that is
        there."""
        if self._copy != self._table:
            COPY_RENAMED.log(LOG, table=self._table, copy=self._copy)
        there = self._read_properties() if self._exists() else {MERGE_MODE: MERGE_ON_READ}
        merging = self._merging or there.get(MERGE_MODE, COPY_ON_WRITE)
        properties = TABLE_PROPERTIES | {MERGE_MODE: merging}
        if (self._mode or LATEST) != LATEST:
            properties[LOADED] = str(end)
        table = render_table(self._name, self._layout, properties, self._location)
        placed = arrange_frame(rows, self._layout, self._catalog)
        self._run(table, placed, {**described, **load_settings(self._layout)})
        self._is_set = False
        self._set_up(there)

    def takes_columns(
        self, added: Sequence[str], gone: Sequence[str], with_values: bool = False
    ) -> bool:
        """As ``EvolvingCopy.takes_columns``. New columns have IDs that no file has."""
        if not super().takes_columns(added, gone, with_values):
            return False
        stated = [self._layout, self._read_layout()] if gone else []
        return may_go(gone, stated, self._read_properties() if gone else {})

    def _commit_columns(
        self, before: CopyState, columns: NewColumns, values: FrameValues | None
    ) -> CopyState:
        """The table has them at once, and its snapshots from the next one on. What a query that was
        killed has changed is not changed again."""
        lost = list_lost(before.schema, columns)
        lose_columns(self._spark, self._name, lost, columns.keep_dropped)
        self._add_columns(columns.schema, {})
        failpoint("after-replica-files")
        described = self._describe("columns", columns.end, {})
        if values is not None:
            # Until the merge the rows are of no window's end.
            unfinished = self._describe(VALUES, None, {})
            write_values(
                self._spark, self._name, values, unfinished if columns.merged else described
            )
        if columns.merged:
            evolved = strip_schema(arrow_schema(self._spark.table(self._name)))
            return replace(before, schema=evolved)
        if values is not None:
            return self._check_committed(before, columns.end, None)
        nothing = self._spark.table(self._name).limit(0)
        added = f"INSERT INTO {self._name} BY NAME SELECT * FROM {ROWS_VIEW}"  # noqa: S608 (names are quoted)
        self._run(added, nothing, described)
        return self._check_committed(before, columns.end, None)

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """As ``FrameCopy.merge_frame``."""
        before = self._prepare_merge(end)
        mark = self._load.mark
        self._merge(rows, key, self._describe("merge", end, mark))
        return self._check_committed(before, end, mark.get(CHUNK))

    def remove_keys(self, keys: pa.Table, end: int) -> CopyState:
        """As ``RemovingCopy.remove_keys``."""
        before = self._prepare_merge(end)
        self._remove(keys, end, self._describe("deletes", end, {}))
        return self._check_committed(before, end, None)

    def _prepare_merge(self, end: int) -> CopyState | None:
        before = self._known or self.read_state()
        self._check_known(before, end)
        self._set_up()
        return before

    def _read_properties(self) -> Mapping[str, str]:
        """The properties of the table that is there."""
        rows = self._spark.sql(f"SHOW TBLPROPERTIES {self._name}").collect()
        return {row["key"]: row["value"] for row in rows}

    def _set_up(self, replaced: Mapping[str, str] | None = None) -> None:
        """Makes the table one that is merged as it is asked for, and laid out so, or as the table
        was that a load has ``replaced``: by its properties."""
        if self._is_set:
            return
        there = self._read_properties()
        wanted = {} if self._merging is None else {MERGE_MODE: str(self._merging)}
        if self._stated is not None:
            wanted[FILE_SIZE] = str(self._stated.file_bytes)
            if there.get(ORDER, "").replace("`", "") != name_order(self._stated):
                self._spark.sql(f"ALTER TABLE {self._name} {render_order(self._stated)}")
        elif replaced and (order := replaced.get(ORDER)):
            # This sets a distribution, too.
            self._spark.sql(f"ALTER TABLE {self._name} WRITE ORDERED BY {order}")
            there = self._read_properties()
            wanted |= {n: replaced[n] for n in (DISTRIBUTION,) if n in replaced}
        changed = [f"'{n}' = '{v}'" for n, v in wanted.items() if there.get(n) != v]
        if changed:
            self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({', '.join(changed)})")
        self._is_set = True

    def _read_layout(self) -> Layout:
        rows = self._spark.sql(f"DESCRIBE TABLE {self._name}").collect()
        partitions = list_partitions([tuple(row) for row in rows])
        return Layout(tuple(partitions), parse_order(self._read_properties().get(ORDER, "")))

    def read_frame(self, version: int) -> DataFrame:
        """As ``FrameCopy.read_frame``."""
        snapshot = self._find(version).snapshot_id
        try:
            return self._spark.sql(f"SELECT * FROM {self._name} VERSION AS OF {snapshot}")  # noqa: S608 (names are quoted)
        except PySparkException as error:
            raise self._unreadable(version, first_line(error)) from error

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        return list_outside(self._read_snapshots(), after, upto)

    def _read_snapshots(self) -> list[Ancestor]:
        return read_snapshots(self._spark, self._name, self._consumer)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``: a version is the end of a window."""
        return version

    def _describe(self, kind: str, end: int | None, mark: Mapping[str, str]) -> dict[str, str]:
        """Settings that write the properties of a snapshot; ``end``: None for one that is no
        version. ``mark``: what it says of a load."""
        values = {CONSUMER: self._consumer, KIND: kind}
        values |= {} if end is None else {END: str(end)}
        values |= {f"{PREFIX}{name}": value for name, value in mark.items()}
        return {f"{PROPERTY}.{name}": value for name, value in values.items()}

    def _exists(self) -> bool:
        try:
            return self._spark.catalog.tableExists(self._name)
        except AnalysisException as error:
            if error.getCondition() == NO_TABLE:
                return False
            raise

    def _read_commits(self) -> list[IcebergCommit]:
        """The snapshots by this consumer, the latest first. Those before a load are not ancestors
        of the current one."""
        history = self._spark.table(f"{self._name}.history").collect()
        made = {row.snapshot_id: (row.made_current_at, row.is_current_ancestor) for row in history}
        own = [each for each in self._read_snapshots() if each.end and each.id in made]
        own.sort(key=lambda each: (made[each.id][0], each.end), reverse=True)
        return [IcebergCommit(each.end, each.chunk, each.id, made[each.id][1]) for each in own]

    def _count_added(self, end: int) -> int:
        """The rows that the snapshot of a window's end has added."""
        snapshots = self._spark.table(f"{self._name}.snapshots")
        found = snapshots.where(f.col("snapshot_id") == f.lit(self._find(end).snapshot_id))
        return int(found.select(f.col("summary")["added-records"]).collect()[0][0] or 0)

    def _find(self, end: int) -> IcebergCommit:
        """The snapshot of a window's end. Raises ReplicaError."""
        for commit in self._read_commits() if self._exists() else ():
            if commit.end == end:
                return commit
        raise self._unreadable(end, "it has no such snapshot")

    def _unreadable(self, version: int, reason: str) -> ReplicaError:
        return ReplicaError(
            f"cannot read version {version} of {self._name}: {reason}; where expire_snapshots has"
            " removed it, use a later cut"
        )

    def _check_known(self, before: CopyState | None, end: int) -> None:
        """Raises CopyConflictError where another instance has written since the last look."""
        known = (before and before.end), self._load.mark
        now = self.read_state()
        if ((now and now.end), self._load.mark) != known:
            self._known = None
            raise make_conflict(self._name, self._consumer, end)

    def _check_committed(self, before: CopyState | None, end: int, chunk: str | None) -> CopyState:
        """The state after a write. Raises CopyConflictError where another has written between."""
        known = before.end if before is not None else 0
        commits = self._read_commits()
        newest = [(each.end, each.chunk) for each in commits[:1]]
        if newest != [(end, chunk)] or (known and [e.end for e in commits[1:2]] != [known]):
            self._known = None
            raise make_conflict(self._name, self._consumer, end)
        self._known = CopyState(end, end, self.read_schema(end), self._load.progress)
        return self._known


def read_snapshots(spark: SparkSession, name: str, consumer: str) -> list[Ancestor]:
    """The snapshots of a table, as they are judged."""
    summary = f.col("summary")
    own = summary[CONSUMER] == f.lit(consumer)
    names = (KIND, f"{PREFIX}{CHUNK}", f"{PREFIX}{ON}")
    rows = spark.table(f"{name}.snapshots").select(
        "snapshot_id",
        "parent_id",
        "operation",
        f.coalesce(f.when(own, summary[END].cast("bigint")), f.lit(0)),
        *(f.when(own, summary[name]) for name in names),
    )
    return disown_stale(Ancestor(*row) for row in rows.collect())


def add_catalog(spark: SparkSession, folder: str) -> str:
    """The catalog of a replica, by its name; a session that has it not yet gets it."""
    name = f"spanner_watcher_{hashlib.blake2b(folder.encode(), digest_size=5).hexdigest()}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}
    for key, value in (settings | {".warehouse": folder, ".cache-enabled": "false"}).items():
        spark.conf.set(f"{CATALOG}.{name}{key}", value)
    return name
