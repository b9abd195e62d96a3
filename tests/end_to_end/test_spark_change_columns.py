"""``changeColumns``: what happened and when, named and typed as in Spark's ``CHANGES``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fixtures.singers import fetch_now, write_singers
from fixtures.spark import batch, changes, drain, parquet
from fixtures.versions import TABLES, Writes
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from watcher.model.change import Operation
from watcher.spanner.timestamps import format_timestamp, to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
NAMES = {
    Operation.INSERT: "insert",
    Operation.UPDATE: "update_postimage",
    Operation.DELETE: "delete",
}


def list_changes(rows: Iterable[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Key, type and version of every row of table T."""
    return sorted((row["Id"], row["_commit_version"], row["_change_type"]) for row in rows)


@pytest.mark.ddl(*TABLES, STREAM)
def test_a_change_stream_says_what_happened_in_each_commit(
    spark: SparkSession, database: Database
) -> None:
    begin = format_timestamp(fetch_now(database))
    writes = Writes(database, 1)
    writes.write(30)
    truth = {
        (table, key, version.at, NAMES[version.operation])
        for (table, key), versions in writes.truth.items()
        for version in versions
    }
    assert {name for *_, name in truth} == set(NAMES.values())
    more = {"capture": "change-stream", "startingTimestamp": begin, "changeColumns": "true"}
    of_t = batch(spark, database, table="T", **more)
    types = {field.name: field.dataType.simpleString() for field in of_t.schema}
    assert types["_change_type"] == "string"
    assert types["_commit_version"] == "bigint"
    assert types["_commit_timestamp"] == "timestamp"
    rows = of_t.toArrow().to_pylist()
    assert list_changes(rows) == sorted(
        (key, at, name) for table, key, at, name in truth if table == "T"
    )
    assert all(to_micros(row["_commit_timestamp"]) == row["_commit_version"] for row in rows)
    of_all = batch(spark, database, tables="*", **more).toArrow().to_pylist()
    assert sorted(
        (row["table"], row["_commit_version"], row["_change_type"]) for row in of_all
    ) == (sorted((table, at, name) for table, _, at, name in truth))


def test_a_poll_does_not_guess_and_a_backfill_inserts(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "before")
    more = {"changeColumns": "true"}
    drain(changes(spark, singers, **more), tmp_path)
    write_singers(singers, range(2, 5), "after")
    drain(changes(spark, singers, **more), tmp_path)
    rows = parquet(tmp_path).to_pylist()
    assert sorted((row["SingerId"], row["LastName"], row["_change_type"]) for row in rows) == [
        (0, "before", "insert"),
        (1, "before", "insert"),
        (2, "after", "upsert"),
        (2, "before", "insert"),
        (3, "after", "upsert"),
        (4, "after", "upsert"),
    ]
    assert len({row["_commit_version"] for row in rows}) == 2
    begin = format_timestamp(min(row["_commit_version"] for row in rows))
    later = batch(spark, singers, startingTimestamp=begin, **more).toArrow().to_pylist()
    assert {(row["SingerId"], row["_change_type"]) for row in later} == {
        (key, "upsert") for key in (2, 3, 4)
    }
    (row, *_) = (
        batch(spark, singers, tables="*", **more).filter("_change_type = 'insert'").collect()
    )
    assert row._commit_version == to_micros(row._commit_timestamp.astimezone())


def test_a_row_that_was_never_stamped_has_the_version_of_its_snapshot(
    spark: SparkSession, singers: Database
) -> None:
    with singers.batch() as written:
        written.insert("Singers", ("SingerId", "LastModified"), [(1, None)])
    moment = fetch_now(singers)
    at = format_timestamp(moment)
    (row,) = batch(spark, singers, snapshotTimestamp=at, changeColumns="true").collect()
    assert (row._commit_timestamp, row._commit_version) == (None, moment)


def test_an_envelope_has_no_room_for_them(spark: SparkSession, singers: Database) -> None:
    with pytest.raises(PySparkException, match="'changeColumns' is for columns of tables and"):
        changes(spark, singers, envelope="debezium", changeColumns="true")
