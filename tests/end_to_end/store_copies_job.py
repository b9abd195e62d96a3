"""Copies that Spark writes into an object store, in a session with Hadoop's client, for the tests.

python store_copies_job.py '{"settings": {...}, "format": "...", "folder": "..."}'
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from watcher.model.errors import ConfigurationError, CopyConflictError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.frame_copies import make_open_copy, make_spark_path
from watcher.replica.frame_stores import check_client, check_commits, check_same_store
from watcher.replica.spark.frames import FrameCopy
from watcher.replica.writing.compaction import CompactionPolicy

TABLE, CONSUMER, KEY = "T", "copier", ("Id",)
POLICY = CompactionPolicy(5, 1, 32, deleted_rows=1)
Row = tuple[int, str, int]
"""Key, name, and the second of the commit timestamp."""


def make_rows(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    values = [(key, name, datetime.fromtimestamp(at, UTC)) for key, name, at in rows]
    return spark.createDataFrame(values, f"Id BIGINT, Name STRING, {STAMP_COLUMN} TIMESTAMP")


def merge(copy: FrameCopy, rows: DataFrame, end: int, deleted: Sequence[int] = ()) -> int:
    """The version after a window."""
    marks = f"Id IN ({', '.join(map(str, (-1, *deleted)))}) AS `{DELETED_COLUMN}`"
    return copy.merge_frame(rows.selectExpr("*", marks), KEY, end).version


def explain_other_store(spark: SparkSession, folder: str) -> str:
    """What is said where Spark does not find the owner's file."""
    try:
        check_same_store(spark, folder, make_spark_path(folder))
    except ConfigurationError as error:
        return str(error)
    return ""


def main(job: dict[str, Any]) -> None:
    """Loads, merges, goes on with another writer, compacts, and is late: the versions."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in job["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    folder, location = job["folder"], make_spark_path(job["folder"])
    check_commits(spark, job["format"], location)
    check_client(spark, location)
    missed = explain_other_store(spark, folder)
    Manifest(folder).claim(Owner("d", CONSUMER, job["format"]))
    check_same_store(spark, folder, location)
    opened = make_open_copy(spark, job["format"], folder, CONSUMER, policy=POLICY)
    first = opened(spark, TABLE)
    rows: list[Row] = [(number, "loaded", 10) for number in range(10)]
    loaded, count = first.load_frame(make_rows(spark, rows), 100)
    successor = opened(spark, TABLE)
    state = successor.read_state()
    merged = merge(
        successor, make_rows(spark, [(1, "new", 20), (2, "", 20), (11, "n", 20)]), 200, [2]
    )
    compacted = successor.compact(KEY, whole=True).replaced
    again = opened(spark, TABLE).read_state()
    try:
        merge(first, make_rows(spark, [(1, "late", 15)]), 150)
        refused = ""
    except CopyConflictError as error:
        refused = str(error)
    print(
        json.dumps(
            {
                "versions": {"loaded": loaded.version, "merged": merged},
                "count": count,
                "ends": [state and state.end, again and again.end],
                "compacted": compacted,
                "refused": refused,
                "missed": missed,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
