"""``watcher.read_table`` and the options that it is made of: few columns, few rows, Spark's own
values."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from fixtures.any_condition import write_condition
from fixtures.everything import ROWS, rows, write
from fixtures.singers import address_of, fetch_now
from fixtures.spark import batch
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watcher
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.model.errors import ConfigurationError
from watcher.model.window import BEGINNING, Window
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def read(spark: SparkSession, database: Database, **more: Any) -> Any:
    path = address_of(database).path
    return watcher.read_table(spark, database=path, table="Everything", **more)


def list_options(database: Database) -> dict[str, str]:
    address = address_of(database)
    return {
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": "Everything",
    }


@pytest.fixture
def written(everything: Database) -> Database:
    write(everything, rows())
    return everything


def test_only_the_columns_that_are_named_are_read(spark: SparkSession, written: Database) -> None:
    frame = read(spark, written, columns=["St", "Id"])
    by_option = batch(spark, written, table="Everything", columns="St, Id")
    written.update_ddl(["ALTER TABLE Everything DROP COLUMN Nu"]).result(60)
    expected = [(each["St"], each["Id"]) for each in rows()]
    assert sorted(map(tuple, frame.collect()), key=repr) == sorted(expected, key=repr)
    assert by_option.columns == ["St", "Id"]
    assert by_option.count() == ROWS


def test_rows_that_are_kept_are_those_that_spark_keeps(
    spark: SparkSession, written: Database
) -> None:
    """The same conditions, evaluated by Spark over all rows, by Spanner, and by Arrow."""
    random = Random(45)
    conditions = list(dict.fromkeys(write_condition(random) for _ in range(80)))
    everything = spark.createDataFrame(batch(spark, written, table="Everything").toArrow())
    marks = [f"({text}) AS is_{number}" for number, text in enumerate(conditions)]
    judged = everything.selectExpr("Id", *marks).collect()
    now = Window(BEGINNING, fetch_now(written))
    for number, where in enumerate(conditions):
        expected = sorted(each.Id for each in judged if each[f"is_{number}"])
        table = discover_table(written, "Everything", TableSpec(columns=("Id",), where=where))
        poll = PollCapture(QueryClient(address_of(written)), table, ())
        for capture in (SnapshotCapture(poll), KeyRangeCapture(poll)):
            assert (where, read_ids(capture, now)) == (where, expected)
        if number % 20 == 0:
            frame = read(spark, written, columns=["Id"], where=where)
            assert frame.columns == ["Id"]
            assert sorted(each.Id for each in frame.collect()) == expected
            assert frame.where("Id >= 4").count() == sum(each >= 4 for each in expected)
            assert frame.count() == len(expected)


def read_ids(capture: Any, window: Window) -> list[int]:
    batches = [rows.batch for part in capture.plan(window) for rows in capture.read(part)]
    return sorted(key for batch in batches for key in batch.column("Id").to_pylist())


def test_a_condition_is_an_option_of_snapshots_windows_and_streams(
    spark: SparkSession, written: Database
) -> None:
    options = list_options(written) | {"columns": "St", "where": "Id < 5"}
    table = spark.read.format("spanner-changes").options(**options)
    assert table.load().count() == 5
    assert table.option("startingTimestamp", "earliest").load().count() == 5
    source = spark.readStream.format("spanner-changes").options(**options)
    changes = source.option("startingTimestamp", "earliest").load().writeStream.format("memory")
    query = changes.queryName("kept").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert spark.table("kept").count() == 5


def test_other_conditions_are_refused(spark: SparkSession, written: Database) -> None:
    with pytest.raises(PySparkException, match="is not a condition at column 4"):
        read(spark, written, where="Id % 2 = 0")
    with pytest.raises(PySparkException, match="column Id has type INT64: compare it with a whole"):
        read(spark, written, where="Id > '3'")
    both = {"Everything": {"where": "Id < 9"}}
    with pytest.raises(PySparkException, match="both have a condition"):
        read(spark, written, where="Id < 5", tableOptions=json.dumps(both))
    with pytest.raises(PySparkException, match="'where' is for polling"):
        read(spark, written, where="Id < 5", capture="change-stream")


def test_wrong_columns_are_refused(spark: SparkSession, written: Database) -> None:
    with pytest.raises(PySparkException, match="column Nothing does not exist"):
        read(spark, written, columns=["Nothing"])
    with pytest.raises(PySparkException, match="named twice"):
        batch(spark, written, table="Everything", columns="Id,Id")
    with pytest.raises(ConfigurationError, match="'columns' is empty"):
        read(spark, written, columns=[])


def test_a_stream_has_the_columns_that_it_names(spark: SparkSession, written: Database) -> None:
    source = spark.readStream.format("spanner-changes").options(**list_options(written))
    assert source.option("columns", "Id,St").load().columns == ["Id", "St"]
