"""The Spark source into checkpointed Parquet: restarts, the start, the schema, clear refusals."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fixtures.queries import ask
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, make_watchable
from fixtures.spark import changes, drain, undo_newest_commit
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def read_delivered(folder: Path) -> list[tuple[int, str]]:
    files = sorted((folder / "parquet").glob("*.parquet"))
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    return sorted((row["SingerId"], row["LastName"]) for row in rows)


def write(database: Database, keys: range, name: str) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(k, name) for k in keys])


def test_changes_arrive_once_over_restarts(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(30), "first")
    drain(changes(spark, singers), tmp_path)
    assert read_delivered(tmp_path) == [(k, "first") for k in range(30)]
    write(singers, range(20, 40), "second")
    drain(changes(spark, singers), tmp_path)
    expected = [(k, "first") for k in range(30)] + [(k, "second") for k in range(20, 40)]
    assert read_delivered(tmp_path) == sorted(expected)
    drain(changes(spark, singers), tmp_path)
    assert read_delivered(tmp_path) == sorted(expected)


def test_rows_without_a_primary_key_arrive_with_their_hidden_one(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database("CREATE TABLE Singers (LastName STRING(MAX))")
    make_watchable(database, "Singers")
    for _ in range(2):
        with database.batch() as batch:
            batch.insert("Singers", ("LastName",), [("same",), ("same",)])
        drain(changes(spark, database), tmp_path)
    rows = [
        row
        for path in (tmp_path / "parquet").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    written = ask(database, "SELECT rowid, LastName FROM Singers").rows
    assert sorted((row["rowid"], row["LastName"]) for row in rows) == sorted(written)


def test_latest_starts_now_and_says_so_in_the_checkpoint(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    latest = {"startingTimestamp": "latest"}
    write(singers, range(5), "before the query")
    drain(changes(spark, singers, **latest), tmp_path)
    write(singers, range(3), "after it")
    undo_newest_commit(tmp_path / "checkpoint")
    drain(changes(spark, singers, **latest), tmp_path)
    assert read_delivered(tmp_path) == [(k, "after it") for k in range(3)]


def test_the_schema_is_the_tables_and_three_columns_more(
    spark: SparkSession, singers: Database
) -> None:
    fields = {f.name: f.dataType.simpleString() for f in changes(spark, singers).schema.fields}
    assert fields == {
        "SingerId": "bigint",
        "FirstName": "string",
        "LastName": "string",
        "BirthDate": "date",
        "Picture": "binary",
        "LastModified": "timestamp",
        "ShardId": "bigint",
        "_commit_timestamp": "timestamp",
        "_shard_id": "bigint",
        "_change_id": "string",
    }


REFUSED = [
    ({"tabel": "Singers"}, "did you mean 'table'"),
    ({"table": "Singer"}, "has no table Singer"),
    ({"database": "missing"}, "does not exist"),
    ({"shardGroups": "0"}, "shardGroups"),
    ({"startingTimestamp": "soon"}, "invalid start 'soon'"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_wrong_options_are_refused_before_anything_runs(
    spark: SparkSession, singers: Database, options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        changes(spark, singers, **options)


@pytest.mark.ddl(SINGERS)
def test_a_table_that_is_not_watchable_names_the_command(
    spark: SparkSession, database: Database
) -> None:
    with pytest.raises(PySparkException, match="spanner-watcher ddl apply"):
        changes(spark, database)


def test_the_checkpoint_of_another_database_is_refused(
    spark: SparkSession, singers: Database, singers_with_processed: Database, tmp_path: Path
) -> None:
    write(singers, range(5), "name")
    drain(changes(spark, singers), tmp_path)
    with pytest.raises(PySparkException, match="the checkpoint belongs to"):
        drain(changes(spark, singers_with_processed), tmp_path)
