"""Replicas that Spark writes equal Spanner at every exact cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.replicas import assert_equal, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, make_watchable, write_singers
from fixtures.spark_replicas import replicate_by_spark
from pyspark.sql import SparkSession

import watcher

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("delta"),
]


def test_rows_from_before_watching_are_loaded_and_then_followed(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(SINGERS)
    write_singers(database, range(5), "old")
    make_watchable(database)
    first = replicate_by_spark(spark, database, tmp_path)[0]
    assert (first.loaded, first.merged) == ({"Singers": 5}, {})
    assert_equal(database, tmp_path, first.cut)
    write_singers(database, range(3, 7), "new")
    reports = replicate_by_spark(spark, database, tmp_path)
    assert [report.merged for report in reports if report.merged] == [{"Singers": 4}]
    expected = dict.fromkeys(range(3), "old") | dict.fromkeys(range(3, 7), "new")
    rows = read_rows(tmp_path, "Singers")
    assert {row["SingerId"]: row["LastName"] for row in rows} == expected
    assert_equal(database, tmp_path)
    assert_equal(database, tmp_path, first.cut)
    then = watcher.as_of(spark, str(tmp_path), first.cut.end and None)
    assert then.read("Singers").count() == 7
