"""Copies as Iceberg tables, by Spark. What it commits is in docs/replica-protocol.md."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import COPY_RENAMED
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    CopyState,
    OutsideCommit,
    make_conflict,
)
from watcher.replica.cuts.cut import CONSUMER, END, KIND
from watcher.replica.iceberg.lineage import Ancestor, list_outside
from watcher.replica.iceberg.names import name_copy
from watcher.replica.layout import Layout, check_kept
from watcher.replica.merge_sql import SPARK
from watcher.replica.spark.frames import (
    WHOLE,
    FrameChunk,
    FramePlace,
    SparkTable,
    first_line,
)
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

LOG = logging.getLogger("watcher.replica")
CATALOG = "spark.sql.catalog"
PROPERTY = "spark.sql.iceberg.snapshot-property"
TABLE_PROPERTIES = {
    "format-version": "2",
    # A MERGE is refused where another writer has added rows meanwhile.
    "write.merge.isolation-level": "serializable",
}
MERGE_MODE = "write.merge.mode"
NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"


class SparkIcebergCopy(SparkTable):
    """The ``FrameCopy`` in a catalog of the replica's folder. Compactions by others are no
    conflicts. A load is one job: an append of Iceberg meets no other commit that it could be
    refused by."""

    takes_chunks = False

    def __init__(
        self, spark: SparkSession, table: str, place: FramePlace, layout: Layout | None
    ) -> None:
        self._table, self._copy = table, name_copy(table)
        self._catalog = SPARK.quote(add_catalog(spark, place.location))
        super().__init__(spark, f"{self._catalog}.{SPARK.quote(self._copy)}", place, layout)
        self._known: CopyState | None = None
        self._is_set = False

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``."""
        self._known = None
        if not self._exists():
            return None
        self._settle_layout()
        commits = self._read_commits()
        end = next((each.snapshot_end for each in commits if each.is_current_ancestor), 0)
        if not end:
            # Created, and not loaded; or its snapshots were expired.
            return None
        self._known = CopyState(end, end, self.read_schema(end))
        return self._known

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
        if self._copy != self._table:
            COPY_RENAMED.log(LOG, table=self._table, copy=self._copy)
        check_kept(self._layout, rows.columns, self._name)
        there = self._read_properties() if self._exists() else {MERGE_MODE: MERGE_ON_READ}
        merging = self._merging or there.get(MERGE_MODE, COPY_ON_WRITE)
        properties = TABLE_PROPERTIES | {MERGE_MODE: merging}
        table = render_table(self._name, self._layout, properties)
        placed = arrange_frame(rows, self._layout, self._catalog)
        self._run(table, placed, self._describe("load", end) | load_settings(self._layout))
        self._is_set = False
        self._set_up(there)
        state = self._check_committed(before, end)
        return state, int(self._find(end).added or 0)

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """As ``FrameCopy.merge_frame``."""
        before = self._known or self.read_state()
        self._check_known(before, end)
        self._set_up()
        self._merge(rows, key, self._describe("merge", end))
        return self._check_committed(before, end)

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
        summary = f.col("summary")
        own = summary[CONSUMER] == f.lit(self._consumer)
        rows = self._spark.table(f"{self._name}.snapshots").select(
            "snapshot_id",
            "parent_id",
            "operation",
            f.when(own, summary[END].cast("bigint")).alias("end"),
            f.when(own, summary[KIND]).alias("kind"),
        )
        snapshots = [
            Ancestor(row.snapshot_id, row.parent_id, row.operation, row.end or 0, row.kind)
            for row in rows.collect()
        ]
        return list_outside(snapshots, after, upto)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``: a version is the end of a window."""
        return version

    def _describe(self, kind: str, end: int) -> dict[str, str]:
        """Settings that write the properties of a snapshot."""
        values = {CONSUMER: self._consumer, END: str(end), KIND: kind}
        return {f"{PROPERTY}.{name}": value for name, value in values.items()}

    def _exists(self) -> bool:
        try:
            return self._spark.catalog.tableExists(self._name)
        except AnalysisException as error:
            if error.getCondition() == NO_TABLE:
                return False
            raise

    def _read_commits(self) -> list[Row]:
        """The snapshots by this consumer, the latest first. Those before a load are not ancestors
        of the current one."""
        snapshots = self._spark.table(f"{self._name}.snapshots")
        history = self._spark.table(f"{self._name}.history")
        summary = f.col("summary")
        commits = snapshots.join(history, "snapshot_id").where(
            summary[CONSUMER] == f.lit(self._consumer)
        )
        chosen = commits.select(
            "snapshot_id",
            summary[END].cast("bigint").alias("snapshot_end"),
            summary["added-records"].alias("added"),
            "is_current_ancestor",
            "made_current_at",
        )
        return chosen.orderBy(f.desc("made_current_at"), f.desc("snapshot_end")).collect()

    def _find(self, end: int) -> Row:
        """The snapshot of a window's end. Raises ReplicaError."""
        for row in self._read_commits() if self._exists() else ():
            if row.snapshot_end == end:
                return row
        raise self._unreadable(end, "it has no such snapshot")

    def _unreadable(self, version: int, reason: str) -> ReplicaError:
        return ReplicaError(
            f"cannot read version {version} of {self._name}: {reason}; where expire_snapshots has"
            " removed it, use a later cut"
        )

    def _check_known(self, before: CopyState | None, end: int) -> None:
        """Raises CopyConflictError where another instance has written since the last look."""
        now = self.read_state()
        if (now and now.end) != (before and before.end):
            self._known = None
            raise make_conflict(self._name, self._consumer, end)

    def _check_committed(self, before: CopyState | None, end: int) -> CopyState:
        """The state after a write. Raises CopyConflictError where another has written between."""
        known = before.end if before is not None else 0
        ends = [row.snapshot_end for row in self._read_commits()]
        if ends[:1] != [end] or (known and ends[1:2] != [known]):
            self._known = None
            raise make_conflict(self._name, self._consumer, end)
        self._known = CopyState(end, end, self.read_schema(end))
        return self._known


def add_catalog(spark: SparkSession, folder: str) -> str:
    """The catalog of a replica, by its name; a session that has it not yet gets it."""
    name = f"spanner_watcher_{hashlib.blake2b(folder.encode(), digest_size=5).hexdigest()}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}
    for key, value in (settings | {".warehouse": folder, ".cache-enabled": "false"}).items():
        spark.conf.set(f"{CATALOG}.{name}{key}", value)
    return name
