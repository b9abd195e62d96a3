"""Replicas that Spark writes equal Spanner at every exact cut."""

from __future__ import annotations

import json
import shutil
import threading
from functools import partial
from pathlib import Path

import fixtures.everything as every_type
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from fixtures.changing_schemas import change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.commands import run_command
from fixtures.pace import allow
from fixtures.replicas import assert_equal, last_cut, list_kinds, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from fixtures.spark_formats import find_format_settings, require_format
from fixtures.spark_replicas import CutChecker, replicate_by_spark, start_replica
from fixtures.writing import run_beside
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

import watcher
from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA, Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.formats import ICEBERG, PARQUET
from watcher.replica.replica_window import CutReport
from watcher.replica.spark.iceberg import add_catalog

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
]

TABLES = ("A", "B", "C")
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"


def test_rows_from_before_watching_are_loaded_and_then_followed(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    database = create_database(SINGERS)
    write_singers(database, range(5), "old")
    make_watchable(database)
    first = replicate_by_spark(spark, database, tmp_path, format=lake_format)[0]
    assert (first.loaded, first.merged) == ({"Singers": 5}, {})
    assert_equal(database, tmp_path, first.cut)
    write_singers(database, range(3, 7), "new")
    reports = replicate_by_spark(spark, database, tmp_path, format=lake_format)
    assert [report.merged for report in reports if report.merged] == [{"Singers": 4}]
    expected = dict.fromkeys(range(3), "old") | dict.fromkeys(range(3, 7), "new")
    rows = read_rows(tmp_path, "Singers")
    assert {row["SingerId"]: row["LastName"] for row in rows} == expected
    assert_equal(database, tmp_path)
    assert list_kinds(tmp_path, "Singers") == ["merge", "load"]
    now, then = watcher.as_of(spark, str(tmp_path)), first.cut
    assert now.read("Singers").count() == 7
    assert Manifest(str(tmp_path)).find_at_or_before(then.end) == then
    # A checkpoint that is lost has the table loaded again.
    shutil.rmtree(tmp_path / "_checkpoint")
    write_singers(database, range(9, 10), "later")
    assert replicate_by_spark(spark, database, tmp_path, format=lake_format)[0].loaded == {
        "Singers": 8
    }
    assert_equal(database, tmp_path)


@pytest.mark.both_dialects
def test_every_type_and_deletes_of_a_change_stream_are_replicated(
    spark: SparkSession,
    everything: Database,
    lake_format: str,
    dialect: Dialect,
    tmp_path: Path,
) -> None:
    change_schema(everything, STREAM)
    rows = every_type.rows(dialect)
    every_type.write(everything, rows[:25])
    stream = {"format": lake_format, "stream": "S"}
    replicate_by_spark(spark, everything, tmp_path, ("Everything",), **stream)
    assert_equal(everything, tmp_path)
    every_type.write(everything, rows)
    with everything.batch() as batch:
        batch.delete("Everything", KeySet(keys=[(0,)]))
    reports = replicate_by_spark(spark, everything, tmp_path, ("Everything",), **stream)
    assert any(report.merged for report in reports)
    assert_equal(everything, tmp_path)
    assert 0 not in {row["Id"] for row in read_rows(tmp_path, "Everything")}


def test_columns_that_change_in_the_middle(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("A"))
    write_table(database, 1, 2, table="A", Version=1)
    (first, *_) = replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    change_schema(database, "ALTER TABLE A ADD COLUMN Name STRING(MAX) DEFAULT ('none')")
    write_table(database, 2, table="A", Version=2, Name="two")
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    names = {row["Id"]: row["Name"] for row in read_rows(tmp_path, "A")}
    assert names == {1: "none", 2: "two"}
    assert_equal(database, tmp_path)
    change_schema(database, "ALTER TABLE A DROP COLUMN Version")
    write_table(database, 1, table="A", Name="one")
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    assert "Version" not in read_rows(tmp_path, "A")[0]
    assert_equal(database, tmp_path)
    assert_equal(database, tmp_path, first.cut)


def test_a_new_column_that_is_null_needs_no_load(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    """In a window with rows of the table, and in one without; earlier cuts stay as they are."""
    tables = ("A", "B")
    database = create_database(*watchable_ddl("A"), *watchable_ddl("B"))
    write_table(database, 1, 2, table="A", Version=1)
    (first, *_) = replicate_by_spark(spark, database, tmp_path, tables, format=lake_format)
    change_schema(database, "ALTER TABLE A ADD COLUMN Name STRING(MAX)")
    write_table(database, 2, 3, table="A", Version=2, Name="two")
    reports = replicate_by_spark(spark, database, tmp_path, tables, format=lake_format)
    names = {row["Id"]: row["Name"] for row in read_rows(tmp_path, "A")}
    assert names == {1: None, 2: "two", 3: "two"}
    assert_equal(database, tmp_path)
    change_schema(database, "ALTER TABLE A ADD COLUMN Numbers ARRAY<INT64>")
    write_table(database, 1, table="B", Version=1)
    reports += replicate_by_spark(spark, database, tmp_path, tables, format=lake_format)
    assert {row["Numbers"] for row in read_rows(tmp_path, "A")} == {None}
    assert_equal(database, tmp_path)
    assert any(report.loaded for report in reports) == (lake_format == PARQUET)
    write_table(database, 1, table="A", Version=3, Numbers=[5])
    replicate_by_spark(spark, database, tmp_path, tables, format=lake_format)
    assert_equal(database, tmp_path)
    assert_equal(database, tmp_path, first.cut)


def test_damage_to_a_copy_by_spark_is_repaired_without_it(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("A"))
    write_table(database, *range(8), table="A", Version=1)
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    if lake_format == ICEBERG:
        # A cut names the snapshot of a window: the next window has what others have done before it.
        name = f"`{add_catalog(spark, tmp_path.as_uri())}`.A"
        spark.sql(f"DELETE FROM {name} WHERE Id = 3")
        spark.sql(f"UPDATE {name} SET Version = 9 WHERE Id = 5")
    write_table(database, 2, table="A", Version=2)
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    if lake_format == DELTA:
        spark.sql(f"DELETE FROM delta.`{tmp_path}/A` WHERE Id = 3")
        spark.sql(f"UPDATE delta.`{tmp_path}/A` SET Version = 9 WHERE Id = 5")
    elif lake_format == PARQUET:
        for file in (tmp_path / "A" / "_files").rglob("*.parquet"):
            rows = pq.read_table(file)
            pq.write_table(rows.filter(pc.field("Id") != 3), file)
    target = ("--to", f"{lake_format}:{tmp_path}", "-d", str(address_of(database)))
    done = run_command("verify", *target, "--repair", "--json")
    assert done.returncode == 0, done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    assert table["repair"]["missing"] == 1
    assert table["repair"]["changed"] == (0 if lake_format == PARQUET else 1)
    assert_equal(database, tmp_path)
    write_table(database, 5, 9, table="A", Version=3)
    (*_, last) = replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format)
    assert last.cut.exact
    assert last.loaded == {}
    versions = {row["Id"]: row["Version"] for row in read_rows(tmp_path, "A")}
    assert versions == dict.fromkeys(range(8), 1) | {2: 2, 5: 3, 9: 3}
    read = watcher.as_of(spark, str(tmp_path)).read("A").collect()
    assert {row["Id"]: row["Version"] for row in read} == versions
    assert_equal(database, tmp_path)


def test_soft_deleted_rows_leave_the_copy(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("A"), "ALTER TABLE A ADD COLUMN Gone BOOL")
    write_table(database, 1, 2, 3, table="A", Gone=False)
    write_table(database, 3, table="A", Gone=True)
    deleted = {"A": "Gone"}
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format, deleted=deleted)
    assert {row["Id"] for row in read_rows(tmp_path, "A")} == {1, 2}
    write_table(database, 1, table="A", Gone=True)
    replicate_by_spark(spark, database, tmp_path, ("A",), format=lake_format, deleted=deleted)
    assert {row["Id"] for row in read_rows(tmp_path, "A")} == {2}
    assert_equal(database, tmp_path)


def test_a_transaction_over_three_tables_is_never_torn(
    spark: SparkSession, create_database: CreateDatabase, lake_format: str, tmp_path: Path
) -> None:
    database = create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)))
    numbers = iter(range(1, 1_000_000))

    def write_everywhere() -> None:
        number = next(numbers)
        with database.batch() as batch:
            for name in TABLES:
                batch.insert_or_update(name, ("Id", "Version"), [(number % 7, number)])

    checker = CutChecker(spark, tmp_path, TABLES)
    with run_beside(write_everywhere, 0.05) as begun:
        assert begun.wait(60)
        start = partial(
            start_replica,
            spark,
            database,
            tmp_path,
            TABLES,
            format=lake_format,
            report=checker.look,
        )
        checker.run_until(start, 4)
    assert not checker.torn
    assert checker.differing_cuts > 1, "the writer has changed all tables between cuts"
    assert_equal(database, tmp_path, last_cut(tmp_path))


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_a_load_in_chunks_follows_what_changes_meanwhile(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    create_database: CreateDatabase,
    tmp_path: Path,
    format_: str,
) -> None:
    """Between two chunks rows come, change and go below the last key that is loaded and above it;
    only the cut of the last chunk is exact."""
    require_format(request, format_)
    database = create_database(*watchable_ddl("A"), STREAM)
    write_table(database, *range(0, 40, 2), table="A", Version=0)
    cuts: list[Cut] = []
    exact = threading.Event()

    def change(report: CutReport) -> None:
        cuts.append(report.cut)
        if report.cut.exact:
            exact.set()
            return
        number = len(cuts)
        write_table(database, number, 6, 39 - number, table="A", Version=number)
        with database.batch() as batch:
            batch.delete("A", KeySet(keys=[[2 * number], [38 - 2 * number]]))

    more = {"stream": "S", "load_rows": 7, "load_seconds": 0.0, "interval_seconds": 0.0}
    query = start_replica(spark, database, tmp_path, ("A",), format=format_, report=change, **more)
    assert exact.wait(allow(300))
    query.stop()
    assert [cut.exact for cut in cuts].count(True) == 1
    assert [cut.exact for cut in cuts].count(False) >= 2
    assert_equal(database, tmp_path)
    replicate_by_spark(spark, database, tmp_path, ("A",), format=format_, stream="S")
    assert_equal(database, tmp_path)


def test_what_does_not_work_is_refused(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="has the unknown scheme 'orc'"):
        replicate_by_spark(spark, singers, tmp_path, format="orc")
    if find_format_settings(ICEBERG) is None:
        with pytest.raises(ConfigurationError, match="the Spark session has no Iceberg"):
            replicate_by_spark(spark, singers, tmp_path, format=ICEBERG)
    begun = {"startingTimestamp": "2026-01-31T12:00:00Z"}
    with pytest.raises(ConfigurationError, match="'startingTimestamp' is the replica's own"):
        replicate_by_spark(spark, singers, tmp_path, format=PARQUET, options=begun)
