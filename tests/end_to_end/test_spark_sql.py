"""``spark.sql`` over the source: a view reads it, a table of Spark's catalog cannot."""

from __future__ import annotations

import pytest
from fixtures.singers import fetch_now
from fixtures.spark import options_of
from fixtures.versions import PARTITION_MODES, TABLES, Writes, set_partition_mode
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

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


@pytest.mark.ddl(*TABLES, STREAM)
def test_a_table_is_refused_with_what_to_do(spark: SparkSession, database: Database) -> None:
    options = render_options(database)
    with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW name USING"):
        spark.sql(f"CREATE TABLE refused USING `spanner-changes` OPTIONS ({options})")
