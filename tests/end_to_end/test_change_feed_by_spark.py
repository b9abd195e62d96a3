"""The change data feed of copies without Spark, as Spark reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.named_rows import KEY, load_rows, make_rows
from pyspark.sql import SparkSession

from watcher.replica.compaction import CompactionPolicy
from watcher.replica.copies import MERGE_ON_READ
from watcher.replica.delta.copy import DeltaCopy

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_spark_and_delta_rs_read_the_same_changes(
    spark: SparkSession, delta: Mapping[str, str], tmp_path: Path
) -> None:
    folder, policy = str(tmp_path / "t"), CompactionPolicy(0, 1, 32, deleted_rows=1)
    copy = DeltaCopy(folder, "c", MERGE_ON_READ, policy, feed=True)
    load_rows(copy, 50)
    for window in range(1, 5):
        rows = {window: f"w{window}", 50 + window: "new", 20 + window: None}
        copy.merge(make_rows(rows, window), KEY, 100 + window)
        copy.compact(KEY, whole=window == 2)
    frame = (
        spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    ).load(folder)
    by_spark = {(r.Id, r.Name, r._change_type, r._commit_version) for r in frame.collect()}
    feed = pa.table(DeltaTable(folder).load_cdf(starting_version=0).read_all()).to_pylist()
    names = ("Id", "Name", "_change_type", "_commit_version")
    assert by_spark == {tuple(row[name] for name in names) for row in feed}
    merged = {kind for _, _, kind, version in by_spark if version > 1}
    assert merged == {"insert", "delete", "update_preimage", "update_postimage"}
    assert len(by_spark) == len(feed) == 50 + 4 * 4
