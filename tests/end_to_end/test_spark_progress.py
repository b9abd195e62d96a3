"""``watcher.progress``: how far streaming queries are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fixtures.singers import fetch_now
from fixtures.spark import SECONDS_MAX, changes, start
from fixtures.versions import TABLES, Writes
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

import watcher
from watcher.runners.spark.progress import QueryProgress, SourceProgress, read_sources
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"


def wait_for_rows(progress: SourceProgress) -> QueryProgress:
    """The newest progress of the only query, once a batch has had rows."""
    ends_at = time.monotonic() + SECONDS_MAX
    while True:
        rows = [each for each in progress.list_queries() if each.rows]
        if rows:
            return rows[0]
        assert time.monotonic() < ends_at, progress.list_queries()
        time.sleep(0.05)


@pytest.mark.ddl(*TABLES, STREAM)
def test_it_says_how_far_a_query_is(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    begin = format_timestamp(fetch_now(database))
    writes = Writes(database, 1)
    writes.write(5)
    progress = watcher.progress(spark)
    stream = changes(spark, database, tables="*", capture="change-stream", startingTimestamp=begin)
    query = start(stream, tmp_path, processingTime="1 hour")
    try:
        told = wait_for_rows(progress)
    finally:
        query.stop()
        spark.streams.removeListener(progress)
    assert told.query == query.id
    assert told.database == database.name
    assert told.rows == sum(len(each) for each in writes.truth.values())
    assert told.position is not None
    assert told.position > begin
    assert told.seconds_behind is None or told.seconds_behind >= 0
    assert f"{told.rows} rows" in told.describe()


def test_sources_of_others_are_left_out() -> None:
    end = {"version": 2, "database": "d", "source": "T", "position": "2026-01-31T12:00:00Z"}
    newest = end | {"position": "2026-01-31T12:00:07.5Z", "rowsBehind": 10_000}
    told = {
        "id": "q",
        "name": None,
        "batchId": 3,
        "sources": [
            {"endOffset": 17},
            {"endOffset": '{"topic": {"0": 4}}'},
            {"endOffset": end, "latestOffset": newest, "numInputRows": 4},
        ],
    }
    (progress,) = read_sources(told)
    assert (progress.query, progress.source, progress.seconds_behind) == ("q", "T", 7.5)
    assert "7.5 s and 10000+ rows behind" in progress.describe()
