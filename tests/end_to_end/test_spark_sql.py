"""``spark.sql`` over the source: a view, and tables of Spark's catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.singers import fetch_now, write_singers
from fixtures.spark import drain, options_of, parquet
from fixtures.versions import PARTITION_MODES, TABLES, Writes, set_partition_mode
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CATALOG = "spark.sql.catalog.spark_catalog"
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"


def render_options(database: Database, **more: str) -> str:
    """An OPTIONS clause of the source for table T."""
    options = options_of(database, table="T", capture="change-stream", **more)
    return ", ".join(f"`{name}` '{text}'" for name, text in options.items())


@pytest.mark.ddl(*TABLES, set_partition_mode(STREAM, PARTITION_MODES[1]))
def test_a_temporary_view_reads_the_source(spark: SparkSession, database: Database) -> None:
    options = render_options(database, startingTimestamp=format_timestamp(fetch_now(database)))
    writes = Writes(database, 1)
    writes.write(10)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING `spanner-changes` OPTIONS ({options})")
    (row,) = spark.sql("SELECT count(*) AS changes, count(DISTINCT Id) AS ids FROM v").collect()
    of_t = {row: versions for row, versions in writes.truth.items() if row[0] == "T"}
    assert (row.changes, row.ids) == (sum(len(each) for each in of_t.values()), len(of_t))


@pytest.fixture
def builtin_catalog(spark: SparkSession) -> Iterator[None]:
    """Spark's own catalog: with that of Delta, Spark reads no table of a source in Python."""
    before = spark.conf.get(CATALOG) or "builtin"
    spark.conf.set(CATALOG, "builtin")
    yield
    for name in ("spanner_t", "spanner_singers", "named"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.conf.set(CATALOG, before)


@pytest.mark.ddl(*TABLES, STREAM)
@pytest.mark.usefixtures("builtin_catalog")
def test_a_table_of_the_catalog_reads_the_source(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    begin = format_timestamp(fetch_now(database))
    options = render_options(database, startingTimestamp=begin)
    spark.sql(f"CREATE TABLE spanner_t USING `spanner-changes` OPTIONS ({options})")
    writes = Writes(database, 1)
    for _ in range(2):
        writes.write(10)
        (row,) = spark.sql("SELECT count(*) AS changes, max(Version) AS v FROM spanner_t").collect()
        of_t = {row: versions for row, versions in writes.truth.items() if row[0] == "T"}
        assert row.changes == sum(len(each) for each in of_t.values())
    drain(spark.readStream.table("spanner_t"), tmp_path)
    assert parquet(tmp_path).num_rows == row.changes


@pytest.mark.usefixtures("builtin_catalog")
def test_a_query_of_a_table_has_options_of_its_own(spark: SparkSession, singers: Database) -> None:
    write_singers(singers, range(3), "before")
    at = format_timestamp(fetch_now(singers))
    write_singers(singers, range(4), "after")
    options = ", ".join(f"{name} '{text}'" for name, text in options_of(singers).items())
    spark.sql(
        f"CREATE TABLE spanner_singers USING `spanner-changes` OPTIONS ({options})"
        " COMMENT 'of Spanner' TBLPROPERTIES ('team' = 'music')"
    )
    names = "SELECT SingerId, LastName FROM spanner_singers ORDER BY 1"
    assert [tuple(row) for row in spark.sql(names).collect()] == [(n, "after") for n in range(4)]
    earlier = spark.read.option("SNAPSHOTTIMESTAMP", at).table("spanner_singers")
    rows = earlier.select("SingerId", "LastName").orderBy("SingerId").collect()
    assert [tuple(row) for row in rows] == [(n, "before") for n in range(3)]
    joined = spark.sql(
        "SELECT a.SingerId FROM spanner_singers a JOIN spanner_singers b USING (SingerId)"
    )
    assert joined.count() == 4
    shown = {row.col_name: row.data_type for row in spark.sql("DESCRIBE spanner_singers").collect()}
    assert shown["SingerId"] == "bigint"


@pytest.mark.ddl(*TABLES, STREAM)
@pytest.mark.usefixtures("builtin_catalog")
def test_a_table_that_names_its_columns_has_lost_its_options(
    spark: SparkSession, database: Database
) -> None:
    options = render_options(database)
    spark.sql(f"CREATE TABLE named (Id BIGINT) USING `spanner-changes` OPTIONS ({options})")
    with pytest.raises(PySparkException, match="keeps them only if CREATE TABLE names no columns"):
        spark.sql("SELECT * FROM named").collect()


@pytest.mark.ddl(*TABLES, STREAM)
def test_a_table_with_a_mistake_is_not_created(spark: SparkSession, database: Database) -> None:
    options = render_options(database, tabel="T")
    with pytest.raises(PySparkException, match="unknown option 'tabel'; did you mean 'table'"):
        spark.sql(f"CREATE TABLE refused USING `spanner-changes` OPTIONS ({options})")
    assert not spark.catalog.tableExists("refused")
