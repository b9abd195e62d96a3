"""Compaction and retention of Iceberg tables that Spark writes, by Iceberg's own procedures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import CompactionRun, Needed
from watcher.replica.iceberg.lineage import Ancestor, list_expired
from watcher.replica.layout import Layout
from watcher.replica.spark.file_ranges import FileRange, choose_range
from watcher.replica.writing.compaction import CompactionPolicy

DATA = 0
"""What ``content`` says of a data file; files of deletes have other numbers."""
DELETED_FROM = (
    "CASE WHEN lower_bounds[2147483546] = upper_bounds[2147483546]"
    " THEN CAST(lower_bounds[2147483546] AS STRING) END"
)
"""The one data file that a file of position deletes is of: both bounds of its column of paths, by
the ID that Iceberg reserves for that."""
LARGEST = (1 << 63) - 1
BEGINNING = "TIMESTAMP '1970-01-02 00:00:00'"
"""Nothing is expired because of its age: only snapshots that are named."""


@dataclass(frozen=True, slots=True)
class DeletedCount:
    """How many rows of a data file position deletes remove."""

    rows: int


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A data file of the newest snapshot."""

    path: str
    size: int
    rows: int
    partition: tuple[object, ...]
    vector: DeletedCount | None


class IcebergUpkeep:
    """The ``CopyUpkeep`` of one table: ``copy`` in a ``catalog``, which are quoted.
    ``read_snapshots``: the snapshots as they are judged."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str,
        copy: str,
        policy: CompactionPolicy,
        read_snapshots: Callable[[], Sequence[Ancestor]],
        read_layout: Callable[[], Layout],
    ) -> None:
        self._spark = spark
        self._policy = policy
        self._file_bytes = 0
        self._catalog = catalog
        self._copy = copy
        self._name = f"{catalog}.{self._copy}"
        self._read_snapshots = read_snapshots
        self._read_layout = read_layout
        self._needless = self._left = 0
        """Files of deletes beyond one for each data file, now and after they were rewritten."""

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``: snapshots that no cut needs, with the files that only
        these have. Files of commits that have failed stay: to find them, Spark lists the folder."""
        refs = self._spark.table(f"{self._name}.refs").select("snapshot_id").collect()
        gone = list_expired(self._read_snapshots(), needed, {row[0] for row in refs})
        if gone:
            numbers = ", ".join(f"{each}L" for each in gone)
            named = f"older_than => {BEGINNING}, snapshot_ids => ARRAY({numbers})"
            self._procedure("expire_snapshots", named)
            failpoint("after-files-removed")

    def compact(self, whole: bool) -> CompactionRun:
        """As ``CompactedCopy.compact``; files of deletes that are needless are rewritten, too.
        Raises ReplicaError."""
        run = self._rewrite_data(math.inf if whole else self._policy.bytes_a_run)
        if self._needless - self._left > self._policy.small_files:
            self._procedure("rewrite_position_delete_files", options={"rewrite-all": "true"})
            self._list_files()
            self._left = self._needless
        return run

    def _rewrite_data(self, budget: float) -> CompactionRun:
        """Data files, of at most so many bytes."""
        before = self._list_files()
        chosen = self._choose(before.values(), budget)
        if chosen is None:
            return describe_run(before)
        failpoint("before-rewrite")
        self._rewrite(chosen)
        failpoint("after-rewrite-commit")
        after = self._list_files()
        old, new = before.keys() - after.keys(), after.keys() - before.keys()
        return describe_run(
            after,
            read=sum(before[path].size for path in old),
            written=sum(after[path].size for path in new),
            replaced=len(old),
            more=bool(old) and self._choose(after.values(), math.inf) is not None,
        )

    def _choose(self, files: Collection[ListedFile], budget: float) -> FileRange | None:
        return choose_range(files, lambda file: file.rows, self._policy, self._file_bytes, budget)

    def _list_files(self) -> Mapping[str, ListedFile]:
        """A merge by Spark writes position deletes in a file for each data file."""
        self._file_bytes = self._read_layout().file_bytes
        listed = self._spark.table(f"{self._name}.files")
        parted = "partition" in listed.columns
        parts = (f.col("partition") if parted else f.lit(None)).alias("partition")
        names = ("content", "file_path", "file_size_in_bytes", "record_count")
        rows = listed.select(*names, parts, f.expr(DELETED_FROM).alias("deleted_from")).collect()
        gone: Counter[str] = Counter()
        for row in rows:
            if row.content != DATA and row.deleted_from is not None:
                gone[row.deleted_from] += row.record_count
        files = {row.file_path: describe_file(row, gone) for row in rows if row.content == DATA}
        self._needless = len(rows) - len(files) - len(gone.keys() & files.keys())
        return files

    def _rewrite(self, chosen: FileRange) -> None:
        options = {
            "min-file-size-bytes": chosen.below_bytes,
            "max-file-size-bytes": LARGEST,
            "target-file-size-bytes": self._file_bytes,
            "min-input-files": 2,
            "delete-ratio-threshold": 1.0 if chosen.deleted_share is None else chosen.deleted_share,
        }
        strategy = "sort" if self._read_layout().sort_by else "binpack"
        self._procedure("rewrite_data_files", f"strategy => '{strategy}'", options=options)

    def _procedure(
        self, name: str, *arguments: str, options: Mapping[str, object] | None = None
    ) -> None:
        """Runs one of Iceberg's procedures for the table. Raises ReplicaError where it fails: it is
        tried again."""
        given = [f"table => '{self._copy}'", *arguments]
        if options is not None:
            pairs = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
            given.append(f"options => map({pairs})")
        statement = f"CALL {self._catalog}.system.{name}"
        try:
            self._spark.sql(f"{statement}({', '.join(given)})").collect()
        except (PySparkException, Py4JError) as error:
            text = str(error).partition("\n")[0]
            raise ReplicaError(f"{statement} has failed: {text}") from error


def describe_file(row: Row, gone: Mapping[str, int]) -> ListedFile:
    """A data file, of which so many rows are ``gone``, by the paths of files."""
    deleted = gone.get(row.file_path)
    return ListedFile(
        row.file_path,
        row.file_size_in_bytes,
        row.record_count,
        tuple(row.partition or ()),
        None if deleted is None else DeletedCount(deleted),
    )


def describe_run(files: Mapping[str, ListedFile], **done: Any) -> CompactionRun:
    """What a run has done, and the files of the copy after it."""
    deleted = sum(file.vector.rows for file in files.values() if file.vector is not None)
    return CompactionRun(**done, files=len(files), deleted=deleted)
