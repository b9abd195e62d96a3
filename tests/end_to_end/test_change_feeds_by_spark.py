"""Spark reads the change data feed that this process writes, and computes Iceberg's changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.iceberg_histories import open_copy as open_iceberg_copy
from fixtures.iceberg_histories import open_table
from fixtures.named_rows import KEY, load_rows, make_rows
from fixtures.spark_formats import require_format
from pyspark.sql import SparkSession

from watcher.replica.copies import COPY_ON_WRITE, DELETED_COLUMN, MERGE_ON_READ
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.formats import ICEBERG
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.spark.iceberg import add_catalog
from watcher.replica.writing.compaction import CompactionPolicy

POLICY = CompactionPolicy(0, 1, 32, deleted_rows=1)
pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.xdist_group("spark")]


def test_spark_reads_the_feed_as_delta_rs_does(
    spark: SparkSession, delta: Mapping[str, str], tmp_path: Path
) -> None:
    """Merges, a compaction between them, and a key that goes and comes."""
    assert delta
    place = str(tmp_path / "T")
    copy = DeltaCopy(place, "c", MERGE_ON_READ, POLICY, feed=True)
    load_rows(copy, 50)
    first = DeltaTable(place).version() + 1
    copy.merge(make_rows({1: "one", 2: None, 60: "new"}, 1), KEY, 101)
    copy.compact(KEY, whole=True)
    copy.merge(make_rows({2: "again", 1: None, 60: "newer"}, 2), KEY, 102)
    last = DeltaTable(place).version()
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    by_spark = feed.option("startingVersion", first).option("endingVersion", last).load(place)
    names = ["Id", "Name", "_change_type", "_commit_version"]
    read = sorted(tuple(row) for row in by_spark.select(*names).collect())
    by_delta_rs = pa.table(
        DeltaTable(place).load_cdf(starting_version=first, ending_version=last).read_all()
    )
    rows = [tuple(row[name] for name in names) for row in by_delta_rs.to_pylist()]
    assert read == sorted(rows)
    assert len(read) == 8


def test_spark_computes_no_changes_of_iceberg_copies_that_are_merged(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """What the documentation says of ``create_changelog_view``."""
    require_format(request, ICEBERG)
    copy = open_iceberg_copy(tmp_path, POLICY)
    load_rows(copy, 50)
    copy.merge(make_rows({1: "one", 2: None, 60: "new"}, 1), KEY, 101)
    place = open_table(tmp_path).metadata_location
    with pytest.raises(Exception, match="Delete files are currently not supported"):
        spark.read.format("iceberg").load(f"{place}#changes").collect()


def test_spark_computes_changes_of_iceberg_copies_that_are_merged_on_write(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """Those of Spark's engine: their snapshots have no files of deletes."""
    require_format(request, ICEBERG)
    copy = make_open_copy(spark, ICEBERG, str(tmp_path), "c", COPY_ON_WRITE)(spark, "T")
    loaded = make_rows({n: f"n{n}" for n in range(5)}, 0).drop_columns([DELETED_COLUMN])
    copy.load_frame(spark.createDataFrame(loaded), 100)
    copy.merge_frame(spark.createDataFrame(make_rows({1: "one", 2: None, 60: "new"}, 1)), KEY, 101)
    catalog = add_catalog(spark, tmp_path.as_uri())
    first = spark.table(f"{catalog}.T.snapshots").orderBy("committed_at").first()
    assert first is not None
    spark.sql(
        f"CALL {catalog}.system.create_changelog_view(table => 'T', changelog_view => 'feed',"
        f" options => map('start-snapshot-id', '{first.snapshot_id}'),"
        " identifier_columns => array('Id'))"
    )
    rows = spark.table("feed").select("Id", "Name", "_change_type").collect()
    assert sorted(tuple(row) for row in rows) == [
        (1, "n1", "UPDATE_BEFORE"),
        (1, "one", "UPDATE_AFTER"),
        (2, "n2", "DELETE"),
        (60, "new", "INSERT"),
    ]
