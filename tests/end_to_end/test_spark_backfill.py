"""From the earliest on: the whole table as it was at one timestamp, then every change since, while
others write and the query is restarted in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.spark import changes, drain, newest_offset, parquet, start, wait_until
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.runners.spark.offsets import parse_micros
from watcher.spanner.timestamps import to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROWS = 400


def read_delivered(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet(folder).to_pylist()
    return rows


def version(row: dict[str, Any]) -> tuple[int, int, str]:
    return row["SingerId"], to_micros(row["_commit_timestamp"]), row["LastName"]


def offsets(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    return [json.loads(path.read_text().splitlines()[-1]) for path in files]


def test_backfill_and_changes_have_no_gap_and_no_overlap(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    writer = SingersWriter(singers, seed=1, keys=ROWS)
    while len(writer.versions) < ROWS * 3 // 4:
        writer.write()
    pages = {"backfillRowsPerBatch": 50, "rowsPerSlice": 20, "limitFirstBatch": True}
    with run_beside(writer.write, 0.05) as begun:
        assert begun.wait(60)
        query = start(changes(spark, singers, **pages), tmp_path, processingTime="0 seconds")
        wait_until(query, lambda: bool(query.lastProgress and query.lastProgress["batchId"] >= 2))
        query.stop()
        assert newest_offset(tmp_path)["backfill"]["table"] == "Singers", "it was over already"
        query = start(changes(spark, singers, **pages), tmp_path, processingTime="0 seconds")
        wait_until(query, lambda: "backfill" not in newest_offset(tmp_path))
        paged = len(offsets(tmp_path))
        wait_until(query, lambda: len(offsets(tmp_path)) > paged + 2)
        query.stop()
    drain(changes(spark, singers, **pages), tmp_path)

    rows = read_delivered(tmp_path)
    versions = [version(row) for row in rows]
    assert len(set(versions)) == len(versions), "a version came twice"
    assert len({row["_change_id"] for row in rows}) == len(versions)
    places = offsets(tmp_path)
    at = parse_micros(places[0]["position"])
    truth = writer.rows_at(at)
    assert {each for each in versions if each[1] <= at} == truth, "the snapshot"
    windows = sorted({parse_micros(each["position"]) for each in places})
    expected = set(truth)
    for end in windows[1:]:
        expected |= writer.rows_at(end)
    assert set(versions) == expected, "the newest version of every window"
    assert writer.rows_at(2**60) <= expected
