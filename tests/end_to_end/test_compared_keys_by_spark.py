"""Rows of polled tables that are deleted leave the copies that Spark writes, because keys are
compared now and then."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fixtures.replicas import assert_equal, last_cut, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import make_watchable, write_singers
from fixtures.spark import wait_until
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark, start_replica
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, Mode
from watcher.replica.formats import ICEBERG, PARQUET
from watcher.replica.reading import as_of
from watcher.replica.replica_window import CutReport
from watcher.runners.spark_job import repeat_late_starts

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
IDLE: Mapping[str, Any] = {"options": {"idleSeconds": 600}}
"""A run up to now has no window of its own where nothing has changed."""


@pytest.fixture(params=[DELTA, ICEBERG])
def merged_format(request: pytest.FixtureRequest) -> str:
    format_: str = request.param
    require_format(request, format_)
    return format_


def delete_singers(database: Database, *keys: int) -> None:
    with database.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[key] for key in keys]))


def read_keys(folder: Path) -> list[int]:
    return sorted(row["SingerId"] for row in read_rows(folder, "Singers"))


def test_deleted_rows_leave_the_copy_of_a_polled_table(
    spark: SparkSession, singers: Database, tmp_path: Path, merged_format: str
) -> None:
    """The load has several chunks, the last one in the window of the comparison."""
    more: Mapping[str, Any] = {"format": merged_format, "deletes": "compare", **IDLE}
    write_singers(singers, range(20), "first")
    replicate_by_spark(spark, singers, tmp_path, load_rows=6, **more)
    delete_singers(singers, 3, 19)
    (report,) = replicate_by_spark(spark, singers, tmp_path, **more)
    assert report.cut.exact
    assert report.cut.tables["Singers"].caveats == ()
    assert read_keys(tmp_path) == sorted({*range(20)} - {3, 19})
    delete_singers(singers, 7)
    write_singers(singers, [3, 50], "second")
    replicate_by_spark(spark, singers, tmp_path, **more)
    assert read_keys(tmp_path) == sorted({*range(20), 50} - {7, 19})
    assert_equal(singers, tmp_path)


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_copies_that_keep_more_mark_what_was_deleted(
    spark: SparkSession, singers: Database, tmp_path: Path, merged_format: str, mode: Mode
) -> None:
    more: Mapping[str, Any] = {"format": merged_format, "mode": mode, "deletes": "compare"}
    write_singers(singers, range(4), "first")
    replicate_by_spark(spark, singers, tmp_path, **more)
    delete_singers(singers, 2)
    reports = replicate_by_spark(spark, singers, tmp_path, **more)
    found = next(each.cut.end for each in reports)
    write_singers(singers, [0], "second")
    replicate_by_spark(spark, singers, tmp_path, **more)
    assert_equal(singers, tmp_path)
    assert read_keys(tmp_path) == [0, 1, 3]
    rows = as_of(f"{merged_format}:{tmp_path}").read("Singers", all_rows=True).to_pylist()
    ends = "_deleted_at" if mode == KEEP_DELETED else "_valid_to"
    gone = [row for row in rows if row["SingerId"] == 2]
    assert {round(row[ends].timestamp() * 1e6) for row in gone} == {found}
    if mode == KEEP_DELETED:
        assert [row["LastName"] for row in gone] == ["first"]
        return
    assert sorted((row["_operation"], row["LastName"]) for row in gone) == [
        ("DELETE", None),
        ("LOAD", "first"),
    ]
    (deletion,) = (row for row in gone if row["_operation"] == "DELETE")
    assert deletion["_valid_from"] == deletion["_valid_to"]
    assert deletion["_spanner_commit_timestamp"] is None, "nobody knows when"


def test_random_deletes_of_keys_of_any_type_are_followed(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path, merged_format: str
) -> None:
    database = create_database(
        "CREATE TABLE T (A STRING(MAX), B FLOAT64, C BYTES(MAX), D NUMERIC, E TIMESTAMP, N INT64)"
        " PRIMARY KEY (A, B DESC, C, D, E)"
    )
    make_watchable(database, "T")
    seed = random.randrange(2**32)
    print("seed", seed)
    chooser = random.Random(seed)
    parts: list[list[Any]] = [
        [None, "", "a.b", "`ü'"],
        [None, -0.0, 1.5, math.nan, -math.inf],
        [None, b"", b"AAE="],
        [None, Decimal("0"), Decimal("-1.000000001")],
        [None, "1969-12-31T23:59:59.999999Z", "2026-01-31T12:00:00Z"],
    ]
    names = ("A", "B", "C", "D", "E", "N")
    for number in range(3):
        keys = {tuple(chooser.choice(values) for values in parts) for _ in range(60)}
        with database.batch() as batch:
            if number:
                gone = [key for key in keys if chooser.random() < 0.5]
                batch.delete("T", KeySet(keys=[list(key) for key in gone]))
                keys -= set(gone)
            batch.insert_or_update("T", names, [(*key, number) for key in keys])
        replicate_by_spark(
            spark, database, tmp_path, ("T",), format=merged_format, deletes="compare"
        )
        assert last_cut(tmp_path).tables["T"].caveats == ()
        assert_equal(database, tmp_path)


def test_a_cut_says_since_when_deletes_may_be_missing(
    spark: SparkSession, singers: Database, tmp_path: Path, merged_format: str
) -> None:
    write_singers(singers, range(5), "first")
    caveats: list[tuple[str, ...]] = []

    def follow(report: CutReport) -> None:
        caveats.append(report.cut.tables["Singers"].caveats)
        if len(caveats) == 1:
            delete_singers(singers, 2)
            write_singers(singers, [1], "second")

    def run() -> None:
        query = start_replica(
            spark, singers, tmp_path, format=merged_format, deletes="compare", report=follow
        )
        wait_until(query, lambda: len(caveats) > 2)
        query.stop()

    repeat_late_starts(run)
    assert caveats[0] == ()
    assert caveats[-1][0].startswith("rows that were deleted after 20")
    assert 2 in read_keys(tmp_path), "it is not due yet"


def test_rows_that_are_there_twice_stay(
    spark: SparkSession,
    delta: Mapping[str, str],
    singers: Database,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One of them that Spanner has not any more goes with all its rows."""
    assert delta
    more: Mapping[str, Any] = {"format": DELTA, "deletes": "compare"}
    write_singers(singers, range(5), "first")
    replicate_by_spark(spark, singers, tmp_path, **more)
    place = str(tmp_path / "Singers")
    copied = spark.read.format("delta").load(place).where("SingerId < 2")
    copied.write.format("delta").mode("append").save(place)
    delete_singers(singers, 0)
    (report,) = replicate_by_spark(spark, singers, tmp_path, **more)
    assert "1 keys in more than one row" in caplog.text
    assert not report.cut.exact, "somebody else has written"
    left = spark.read.format("delta").load(place).select("SingerId").collect()
    assert sorted(row.SingerId for row in left) == [1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stream": "S"}, "a change stream tells which rows are deleted"),
        ({"format": PARQUET}, "is for copies in Delta and Iceberg"),
        ({"deletes": "all"}, "use none or compare"),
    ],
)
def test_what_has_no_comparison_is_refused(
    spark: SparkSession, singers: Database, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    chosen = {"format": DELTA, "deletes": "compare"} | more
    with pytest.raises(ConfigurationError, match=message):
        start_replica(spark, singers, tmp_path, **chosen)
