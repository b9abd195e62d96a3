"""The schema changes while a query runs: it stops and says why, or goes on with NULLs by choice."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.spark import changes, drain, names_of, parquet, start, wait_until
from google.cloud.spanner_v1.database import Database
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def write(database: Database, keys: range, *columns: str) -> None:
    with database.batch() as batch:
        rows = [(k, *(f"{name} {k}" for name in columns)) for k in keys]
        batch.insert_or_update("Singers", ("SingerId", *columns), rows)


def alter(database: Database, *statements: str) -> None:
    database.update_ddl(statements).result(60)


def test_a_dropped_column_stops_the_query_or_is_null(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(5), "FirstName", "LastName")
    stopping = start(changes(spark, singers), tmp_path / "stop", processingTime="0 seconds")
    nulls = changes(spark, singers, onSchemaChange="nulls")
    going_on = start(nulls, tmp_path / "nulls", processingTime="0 seconds")
    for query, place in ((stopping, "stop"), (going_on, "nulls")):
        log = tmp_path / place / "parquet" / "_spark_metadata" / "0"
        wait_until(query, log.exists)
    alter(singers, "ALTER TABLE Singers DROP COLUMN FirstName")
    write(singers, range(5, 8), "LastName")
    with pytest.raises(StreamingQueryException) as stopped:
        stopping.awaitTermination(120)
    for words in (
        "the schema of Singers has changed while the query ran",
        "FirstName",
        "restart the query",
        "'onSchemaChange' to 'nulls'",
    ):
        assert words in str(stopped.value)
    wait_until(going_on, lambda: len(names_of(tmp_path / "nulls")) == 8)
    going_on.stop()
    delivered = {row["SingerId"]: row for row in parquet(tmp_path / "nulls").to_pylist()}
    assert [delivered[k]["FirstName"] for k in range(8)] == [f"FirstName {k}" for k in range(5)] + (
        [None] * 3
    )
    drain(changes(spark, singers), tmp_path / "stop")
    assert names_of(tmp_path / "stop") == [(k, f"LastName {k}") for k in range(8)]


def test_a_new_column_comes_with_the_next_start_and_a_new_type_stops(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(3), "LastName")
    query = start(changes(spark, singers), tmp_path, processingTime="0 seconds")
    wait_until(query, (tmp_path / "parquet" / "_spark_metadata" / "0").exists)
    alter(singers, "ALTER TABLE Singers ADD COLUMN Nick STRING(100)")
    write(singers, range(3, 5), "LastName", "Nick")
    wait_until(query, lambda: len(names_of(tmp_path)) == 5)
    query.stop()
    stream = changes(spark, singers, onSchemaChange="nulls")
    assert "Nick" in stream.columns
    write(singers, range(5, 6), "LastName", "Nick")
    drain(stream, tmp_path / "new")
    query = start(stream, tmp_path, processingTime="0 seconds")
    wait_until(query, lambda: len(names_of(tmp_path)) == 6)
    alter(singers, "ALTER TABLE Singers ALTER COLUMN Nick BYTES(100)")
    write(singers, range(6, 7), "LastName")
    with pytest.raises(StreamingQueryException, match="column Nick was STRING and is BYTES"):
        query.awaitTermination(120)


def test_an_index_that_is_dropped_names_the_command(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(3), "LastName")
    query = start(changes(spark, singers), tmp_path, processingTime="0 seconds")
    wait_until(query, (tmp_path / "parquet" / "_spark_metadata" / "0").exists)
    with singers.snapshot() as snapshot:
        result = snapshot.execute_sql(
            "SELECT INDEX_NAME FROM INFORMATION_SCHEMA.INDEXES"
            " WHERE TABLE_NAME = 'Singers' AND INDEX_TYPE = 'INDEX'"
        )
        (index,) = [row[0] for row in result]
    alter(singers, f"DROP INDEX {index}")
    with pytest.raises(StreamingQueryException, match="spanner-watcher ddl apply"):
        query.awaitTermination(120)
