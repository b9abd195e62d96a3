"""Spark and numerics of the PostgreSQL dialect: decimals, or texts where that is chosen, so that no
NaN is lost: batch reads, both captures, replicas."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fixtures.replicas import assert_equal, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import fetch_now, make_watchable
from fixtures.spark import batch, changes, drain, parquet
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spanner_schema.model.schema import Dialect
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import PARQUET
from watcher.runners.spark.spark_versions import PUSHES_FILTERS
from watcher.spanner.timestamps import format_timestamp

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.parametrize("dialect", [Dialect.POSTGRESQL], indirect=True, ids=str),
]
DDL = (
    "CREATE TABLE offers (id bigint PRIMARY KEY, price numeric, history numeric[], fits numeric,"
    " doc jsonb, name varchar(20))",
    "CREATE CHANGE STREAM s FOR ALL WITH (value_capture_type = 'NEW_ROW')",
)
COLUMNS = ("id", "price", "history", "fits", "name")
LARGE, SMALL = "9" * 60 + ".25", "0." + "0" * 29 + "1"
ROWS: dict[int, tuple[Any, ...]] = {
    1: ("NaN", ["NaN", None, LARGE], Decimal("1.5"), "nan"),
    2: (LARGE, [], Decimal("-99999999999999999999999999999.999999999"), "large"),
    3: (SMALL, None, None, "small"),
    4: (None, ["0"], Decimal("0"), "null"),
    5: ("1.50", [SMALL], Decimal("0.000000001"), "plain"),
}
TEXTS = {"table": "offers", "textColumns": "price, offers.history"}
WIDE = "does not fit into DECIMAL"


def write(database: Database, *keys: int, **values: object) -> None:
    """The rows with these keys, with other values for some columns."""
    with database.batch() as mutations:
        for key in keys:
            cells = dict(zip(COLUMNS, (key, *ROWS[key]), strict=True)) | values
            mutations.insert_or_update("offers", list(cells), [list(cells.values())])


def cells(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS[1:])


def by_key(rows: list[dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    assert len({row["id"] for row in rows}) == len(rows), "a row came twice"
    return {row["id"]: cells(row) for row in rows}


@pytest.fixture
def offers(create_database: CreateDatabase) -> Database:
    database = create_database(*DDL)
    make_watchable(database, "offers")
    write(database, *ROWS, doc='{"a": [1, null]}')
    return database


def test_polled_numerics_are_decimals_or_texts(
    spark: SparkSession, offers: Database, tmp_path: Path
) -> None:
    with pytest.raises(PySparkException, match=WIDE):
        batch(spark, offers, table="offers").collect()
    read = batch(spark, offers, **TEXTS)
    types = {field.name: field.dataType.simpleString() for field in read.schema.fields}
    assert [types[name] for name in (*COLUMNS[1:], "doc")] == [
        *("string", "array<string>", "decimal(38,9)", "string", "string"),
    ]
    rows = read.toArrow().to_pylist()
    assert by_key(rows) == ROWS
    assert {row["doc"] for row in rows} == {'{"a": [1, null]}'}
    drain(changes(spark, offers, **TEXTS), tmp_path)
    assert by_key(parquet(tmp_path).to_pylist()) == ROWS
    write(offers, 1, 3, name="again")
    drain(changes(spark, offers, **TEXTS), tmp_path)
    later = [row for row in parquet(tmp_path).to_pylist() if row["name"] == "again"]
    assert {row["id"]: row["price"] for row in later} == {1: "NaN", 3: SMALL}


@pytest.mark.skipif(not PUSHES_FILTERS, reason="this version of Spark keeps filters to itself")
def test_filters_of_texts_are_spark_s_own(spark: SparkSession, offers: Database) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition, expected in (
            ("price = 'NaN'", {1}),
            ("price > '1'", {1, 2, 5}),
            ("price IS NULL", {4}),
            ("fits > 0", {1, 5}),
            ("fits = 1.5 AND price = 'NaN'", {1}),
        ):
            filtered = batch(spark, offers, **TEXTS, pushFilters="true").where(condition)
            assert {row.id for row in filtered.collect()} == expected, condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_streamed_numerics_are_decimals_or_texts(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(*DDL)
    begin = format_timestamp(fetch_now(database))
    write(database, *ROWS)
    with database.batch() as mutations:
        mutations.delete("offers", KeySet(keys=[[4]]))
    stream = {"capture": "change-stream", "startingTimestamp": begin}
    with pytest.raises(PySparkException, match=WIDE):
        batch(spark, database, table="offers", **stream).collect()
    drain(changes(spark, database, **stream, **TEXTS), tmp_path / "own")
    rows = parquet(tmp_path / "own").to_pylist()
    assert by_key([row for row in rows if row["_operation"] == "INSERT"]) == ROWS
    assert [row["id"] for row in rows if row["_operation"] == "DELETE"] == [4]
    wide = {"tables": "*", "envelope": "debezium"}
    drain(changes(spark, database, **stream, **wide), tmp_path / "debezium")
    values = [row["value"] for row in parquet(tmp_path / "debezium").to_pylist()]
    after = [json.loads(value)["after"] for value in values if value is not None]
    prices = {key: row[0] for key, row in ROWS.items()}
    assert {row["id"]: row["price"] for row in after if row is not None} == prices | {5: "1.5"}


@pytest.mark.parametrize("format_", [DELTA, PARQUET])
def test_a_replica_has_every_numeric(
    spark: SparkSession,
    offers: Database,
    format_: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    require_format(request, format_)
    texts = {"idleSeconds": 0, "textColumns": "offers.price,offers.history"}
    replicate = partial(replicate_by_spark, spark, offers, tmp_path, ("offers",))
    replicate(format=format_, options=texts)
    assert by_key([dict(row) for row in read_rows(tmp_path, "offers")]) == ROWS
    write(offers, 1, 2, name="again")
    replicate(format=format_, options=texts)
    rows = {row["id"]: row for row in read_rows(tmp_path, "offers")}
    assert (rows[1]["price"], rows[1]["name"]) == ("NaN", "again")
    assert_equal(offers, tmp_path)
