"""Tables of one bare name in named schemas, in Spark: batch reads, streams, copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.replicas import assert_equal, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import make_watchable
from fixtures.spark import batch, changes, drain, parquet
from fixtures.spark_replicas import replicate_by_spark
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

import watcher

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
TABLES = ("Archive.Orders", "Orders", "sales.Orders")


@pytest.fixture
def orders(create_database: CreateDatabase) -> Database:
    """The tables, with two rows each, all of them watchable."""
    columns = "(Id INT64, Name STRING(MAX)) PRIMARY KEY (Id)"
    database: Database = create_database(
        "CREATE SCHEMA sales",
        "CREATE SCHEMA Archive",
        *(f"CREATE TABLE {table} {columns}" for table in TABLES),
    )
    make_watchable(database, *TABLES, shards=4)
    write(database, 1, "first")
    write(database, 2, "first")
    return database


def write(database: Database, key: int, name: str) -> None:
    """A row with this key in each table."""
    with database.batch() as mutations:
        for table in TABLES:
            mutations.insert_or_update(table, ("Id", "Name"), [(key, f"{name} of {table}")])


@pytest.mark.both_dialects
def test_reads_and_streams_name_a_table_with_its_schema(
    spark: SparkSession, orders: Database, tmp_path: Path
) -> None:
    rows = batch(spark, orders, table="SALES.orders").where("Id > 1").collect()
    assert [(row.Id, row.Name) for row in rows] == [(2, "first of sales.Orders")]
    drain(changes(spark, orders, tables="*", exclude="archive.*", idleSeconds=0), tmp_path)
    delivered = sorted((row["table"], row["key"]) for row in parquet(tmp_path).to_pylist())
    assert [table for table, _ in delivered] == ["Orders", "Orders", "sales.Orders", "sales.Orders"]


def test_copies_of_tables_of_one_name_stay_apart(
    spark: SparkSession, orders: Database, tmp_path: Path, lake_format: str
) -> None:
    replicate_by_spark(spark, orders, tmp_path, ("*",), format=lake_format)
    write(orders, 2, "second")
    replicate_by_spark(spark, orders, tmp_path, ("*",), format=lake_format)
    replica = watcher.as_of(spark, str(tmp_path))
    for table in TABLES:
        expected = {1: f"first of {table}", 2: f"second of {table}"}
        assert {row.Id: row.Name for row in replica.read(table).collect()} == expected
        assert {row["Id"]: row["Name"] for row in read_rows(tmp_path, table)} == expected
    assert_equal(orders, tmp_path)
