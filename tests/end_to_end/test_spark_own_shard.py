"""A shard that applications write, such as the hour: the options of Spark say so."""

from __future__ import annotations

import json

import pytest
from fixtures.spark import batch
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EVENTS = (
    "CREATE TABLE Ev (Id INT64, Hour STRING(20), TheTime TIMESTAMP"
    " OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)"
)
BY_HOUR = "CREATE NULL_FILTERED INDEX EvByHour ON Ev(Hour, TheTime)"


@pytest.mark.ddl(EVENTS, BY_HOUR)
def test_a_table_with_a_shard_of_its_own_is_read(spark: SparkSession, database: Database) -> None:
    with database.batch() as commit:
        rows = [(key, f"2026-01-01T0{key}", COMMIT_TIMESTAMP) for key in range(5)]
        commit.insert("Ev", ("Id", "Hour", "TheTime"), rows)
    of_table = {"shard": "time", "shardColumn": "Hour"}
    start = {"startingTimestamp": "earliest"}
    with pytest.raises(PySparkException, match="shardColumn = Hour"):
        batch(spark, database, table="Ev", **start).collect()
    one = batch(spark, database, table="Ev", **start, **of_table)
    assert sorted(row.Id for row in one.collect()) == list(range(5))
    told = json.dumps({"Ev": of_table})
    several = batch(spark, database, tables="E*", tableOptions=told, **start)
    keys = [json.loads(row.key)["Id"] for row in several.collect()]
    assert sorted(keys) == list(range(5))
