"""Copies in Delta as tables of a schema of Spark's catalog."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from fixtures.replicas import assert_equal
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, make_watchable, write_singers
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark, start_replica
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NUMBERS = count()


@pytest.fixture
def schema(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """An empty one, in the catalog of the session."""
    require_format(request, DELTA)
    name = f"spark_catalog.music{next(NUMBERS)}"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    found = create_database(SINGERS)
    make_watchable(found)
    write_singers(found, range(5), "old")
    return found


def read_names(spark: SparkSession, table: str) -> dict[int, str]:
    return {row.SingerId: row.LastName for row in spark.table(table).collect()}


def test_a_copy_is_a_table_of_a_schema(
    spark: SparkSession, database: Database, schema: str, tmp_path: Path
) -> None:
    """Windows, another load, and a copy that was removed show in the one table."""
    table, names = f"{schema}.Singers", dict.fromkeys(range(5), "old")
    replicate_by_spark(spark, database, tmp_path, format=DELTA, catalog_schema=schema)
    assert read_names(spark, table) == names
    write_singers(database, range(3, 7), "new")
    replicate_by_spark(spark, database, tmp_path, format=DELTA, catalog_schema=schema)
    assert read_names(spark, table) == names | dict.fromkeys(range(3, 7), "new")
    assert_equal(database, tmp_path)
    assert (spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["location"]).endswith("Singers")


def test_what_cannot_be_registered_is_refused_before_a_copy_is_written(
    spark: SparkSession, database: Database, schema: str, tmp_path: Path
) -> None:
    for name, message in (
        ("music", "write CATALOG.SCHEMA"),
        ("spark_catalog.nobody", "there is no schema spark_catalog.nobody: CREATE SCHEMA"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            start_replica(spark, database, tmp_path / "lake", format=DELTA, catalog_schema=name)
    for using in ("delta", "parquet"):
        spark.sql(f"CREATE TABLE {schema}.Singers (Id BIGINT) USING {using}")
        with pytest.raises(ConfigurationError, match="is another table than the copy"):
            start_replica(spark, database, tmp_path / "lake", format=DELTA, catalog_schema=schema)
        spark.sql(f"DROP TABLE {schema}.Singers")
    with pytest.raises(ConfigurationError, match="catalog_schema is for copies in Delta"):
        start_replica(spark, database, tmp_path / "lake", format="parquet", catalog_schema=schema)
    assert not (tmp_path / "lake").exists()
