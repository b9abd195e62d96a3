"""``replicate --dry-run`` says what a query of Spark would do with copies that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import change_schema
from fixtures.replicas import CONSUMER
from fixtures.singers import address_of, write_singers
from fixtures.spark import wait_until
from fixtures.spark_replicas import replicate_by_spark, start_replica
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.formats import PARQUET
from watcher.replica.replica_window import CutReport
from watcher.runners.replicator import Replicator, TablePlan
from watcher.runners.spark_job import repeat_late_starts
from watcher.settings.watcher import parse_watch_config

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def plan(database: Database, folder: Path, format_: str, **more: Any) -> TablePlan:
    config = {
        "database": str(address_of(database)),
        "consumer": CONSUMER,
        "tables": ["Singers"],
        "replica": {"to": f"{format_}:{folder}", "engine": "spark", **more},
    }
    (planned,) = Replicator(parse_watch_config(config)).plan()
    return planned


def test_a_plan_tells_of_copies_by_spark(
    spark: SparkSession, singers: Database, tmp_path: Path, lake_format: str
) -> None:
    write_singers(singers, range(9), "first")
    assert plan(singers, tmp_path, lake_format) == TablePlan("Singers", "load", "there is no copy")
    (*_, last) = replicate_by_spark(spark, singers, tmp_path, format=lake_format)
    version = f"version {last.cut.tables['Singers'].version}"
    assert plan(singers, tmp_path, lake_format) == TablePlan("Singers", "merge", version)
    change_schema(singers, "ALTER TABLE Singers ADD COLUMN More INT64")
    if lake_format == PARQUET:
        reason = "its columns have changed (new: More)"
        assert plan(singers, tmp_path, lake_format) == TablePlan("Singers", "load", reason)
        return
    assert plan(singers, tmp_path, lake_format) == TablePlan(
        "Singers", "merge", f"{version}, with new columns: More"
    )
    with pytest.raises(ConfigurationError, match="mode = 'latest'"):
        plan(singers, tmp_path, lake_format, mode="history")
    change_schema(singers, "ALTER TABLE Singers ADD COLUMN Kind INT64 DEFAULT (5)")
    reason = f"{version}, with new columns: More, Kind"
    reason += ", whose constants are written into its files: Kind"
    assert plan(singers, tmp_path, lake_format) == TablePlan("Singers", "merge", reason)


def test_a_plan_tells_how_far_a_load_by_spark_is(
    spark: SparkSession, singers: Database, tmp_path: Path, lake_format: str
) -> None:
    if lake_format == PARQUET:
        pytest.skip("its loads have no chunks")
    write_singers(singers, range(9), "first")
    reports: list[CutReport] = []
    more: dict[str, Any] = {"load_rows": 4, "load_seconds": 0.001, "interval_seconds": 3_600.0}

    def run() -> None:
        query = start_replica(
            spark, singers, tmp_path, format=lake_format, report=reports.append, **more
        )
        wait_until(query, lambda: bool(reports))
        query.stop()

    repeat_late_starts(run)
    planned = plan(singers, tmp_path, lake_format)
    assert planned.action == "load"
    assert planned.reason.endswith("it goes on from there")
