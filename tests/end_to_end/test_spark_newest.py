"""From changes to the newest row of every key, and a copy of a table in Parquet."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.spark import ROOT, changes, undo_newest_commit
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1.database import Database
from pyspark.sql import DataFrame, SparkSession

import watcher
from watcher.model.errors import ConfigurationError

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EXAMPLE = runpy.run_path(str(ROOT / "examples" / "upsert_parquet.py"))


def test_the_newest_row_of_every_key(spark: SparkSession) -> None:

    rows = [
        (1, "a", "old", "2026-01-01 00:00:00.000001"),
        (1, "a", "new", "2026-01-01 00:00:00.000002"),
        (1, "b", "never stamped", None),
        (2, "a", "never stamped", None),
        (2, "a", "stamped", "2026-01-01 00:00:00"),
        (3, None, "a NULL in the key", "2026-01-01 00:00:00"),
    ]
    text = "Id LONG, Part STRING, Name STRING, At STRING"
    df = spark.createDataFrame(rows, text).selectExpr(
        "Id", "Part", "Name", "CAST(At AS TIMESTAMP) AS _commit_timestamp"
    )
    newest = watcher.newest_per_key(df, ["Id", "Part"])
    assert newest.columns == ["Id", "Part", "Name", "_commit_timestamp"]
    assert sorted((r.Id, r.Part or "", r.Name) for r in newest.collect()) == [
        (1, "a", "new"),
        (1, "b", "never stamped"),
        (2, "a", "stamped"),
        (3, "", "a NULL in the key"),
    ]


def test_envelope_rows_know_their_key(spark: SparkSession) -> None:
    rows = [("A", '{"Id": 1}', 1), ("A", '{"Id": 1}', 2), ("B", '{"Id": 1}', 1)]
    df = spark.createDataFrame(rows, "table STRING, key STRING, At LONG").selectExpr(
        "table", "key", "timestamp_seconds(At) AS _commit_timestamp", "At AS values"
    )
    newest = watcher.newest_per_key(df).collect()
    assert sorted((r["table"], r["values"]) for r in newest) == [("A", 2), ("B", 1)]


def test_what_cannot_be_told_is_refused(spark: SparkSession, singers: Database) -> None:
    df = spark.createDataFrame([(1,)], "Id LONG").selectExpr("Id", "now() AS _commit_timestamp")
    with pytest.raises(ConfigurationError, match="no key columns were named"):
        watcher.newest_per_key(df)
    with pytest.raises(ConfigurationError, match="column Identity does not exist"):
        watcher.newest_per_key(df, ["Identity"])
    with pytest.raises(ConfigurationError, match="inside foreachBatch"):
        watcher.newest_per_key(changes(spark, singers), ["SingerId"])


def test_the_example_keeps_a_copy_of_a_table_in_parquet(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    upsert: Callable[[Path, list[str]], Callable[[DataFrame, int], None]] = EXAMPLE["upsert"]
    tables: Callable[[Path], list[Path]] = EXAMPLE["tables"]
    writer = SingersWriter(singers, seed=4, keys=40)
    for _ in range(30):
        writer.write()

    def run() -> None:
        stream = changes(spark, singers, backfillRowsPerBatch=15, maxRowsPerBatch=20)
        query = (
            stream.writeStream.foreachBatch(upsert(tmp_path, ["SingerId"]))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)

    def read_copy() -> dict[int, str]:
        rows = spark.read.parquet(str(tables(tmp_path)[-1])).collect()
        assert len({row.SingerId for row in rows}) == len(rows)
        return {row.SingerId: row.LastName for row in rows}

    with run_beside(writer.write, 0.2) as begun:
        assert begun.wait(60)
        run()
    run()
    assert read_copy() == writer.newest()
    undo_newest_commit(tmp_path / "checkpoint")
    run()
    assert read_copy() == writer.newest()
    assert len(tables(tmp_path)) == 2
