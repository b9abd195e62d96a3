"""``watcher.read_table`` and the options that it is made of: few columns, few rows, Spark's own
values."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.everything import ROWS, rows, write
from fixtures.singers import address_of
from fixtures.spark import batch
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watcher
from watcher.model.errors import ConfigurationError
from watcher.runners.spark.spark_versions import PUSHES_FILTERS

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
needs_filters = pytest.mark.skipif(not PUSHES_FILTERS, reason="Spark 4.0 has no filters")


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


@pytest.mark.parametrize(
    "where",
    [
        "Id < 5",
        "id between 3 and 9 and St is not null",
        "Id IN (1, 2, 30) AND NOT (Id = 2)",
        "Bo = true",
        "St LIKE '%a%' AND Id <> 7",
        "Nu >= 1.5",
        "Da > DATE '2000-01-01' AND Id > 1",
        "Fl > 0.5",
        "Id % 2 = 0 AND St IS NOT NULL",
        "Id < 5 OR St IS NULL",
        "Id > '3'",
        "Id = -1",
    ],
)
def test_rows_that_pass_are_those_that_spark_lets_pass(
    spark: SparkSession, written: Database, where: str
) -> None:
    everything = batch(spark, written, table="Everything")
    where = where if "Fl" in everything.columns else where.replace("Fl", "Id")
    expected = sorted(each.Id for each in everything.where(where).select("Id").collect())
    frame = read(spark, written, columns=["Id"], where=where)
    assert frame.columns == ["Id"]
    assert sorted(each.Id for each in frame.collect()) == expected
    assert frame.where("Id >= 4").count() == sum(each >= 4 for each in expected)
    assert frame.count() == len(expected)


@needs_filters
def test_what_spanner_cannot_check_is_refused_as_an_option(
    spark: SparkSession, written: Database
) -> None:
    options = list_options(written)
    table = spark.read.format("spanner-changes").options(**options, columns="St")
    assert table.option("where", "Id < 5").load().count() == 5
    with pytest.raises(PySparkException, match="cannot check Id % 2 = 0"):
        table.option("where", "Id % 2 = 0").load().count()
    with pytest.raises(PySparkException, match="not a condition of Spark's SQL"):
        table.option("where", "Id <").load().count()
    with pytest.raises(PySparkException, match="use one or the other"):
        table.option("where", "Id < 5").option("pushFilters", "true").load().count()


def test_wrong_columns_are_refused(spark: SparkSession, written: Database) -> None:
    with pytest.raises(PySparkException, match="column Nothing does not exist"):
        read(spark, written, columns=["Nothing"])
    with pytest.raises(PySparkException, match="named twice"):
        batch(spark, written, table="Everything", columns="Id,Id")
    with pytest.raises(ConfigurationError, match="'columns' is empty"):
        read(spark, written, columns=[])


def test_a_stream_has_the_columns_that_it_names_and_no_condition(
    spark: SparkSession, written: Database
) -> None:
    source = spark.readStream.format("spanner-changes").options(**list_options(written))
    assert source.option("columns", "Id,St").load().columns == ["Id", "St"]
    query = source.option("where", "Id < 5").load().writeStream.format("noop").start()
    with pytest.raises(PySparkException, match="'where' is for batch reads"):
        query.awaitTermination(60)
