"""A query as a consumer: its name is its own, clearing follows it, operators are obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.singers import address_of, capture_of
from fixtures.spark import changes, drain, names_of, start, wait_until
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner

from watcher.cli.ctl import app
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import TABLE, SpannerPositions
from watcher.consumers.states import State
from watcher.spanner.timestamps import to_datetime

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LEASE = {"consumer": "job", "leaseSeconds": "3", "idleSeconds": "0"}


def write(database: Database, keys: range, name: str) -> None:
    with database.batch() as batch:
        rows = [(k, name) for k in keys]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)


def ctl(database: Database, command: str) -> None:
    result = CliRunner().invoke(app, [command, "job", "--database", str(address_of(database))])
    assert result.exit_code == 0, result.output


def state_of(database: Database) -> State | None:
    status = Consumers(database, TABLE).status("job")
    return status.state if status is not None and status.alive else None


def wait_for_rows(query: StreamingQuery, folder: Path, count: int) -> None:
    log = folder / "parquet" / "_spark_metadata"
    wait_until(query, lambda: log.exists() and len(names_of(folder)) >= count)


def test_a_live_query_keeps_its_name_and_obeys(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(5), "first")
    query = start(changes(spark, singers, **LEASE), tmp_path, processingTime="0 seconds")
    wait_for_rows(query, tmp_path, 5)
    with pytest.raises(PySparkException, match="another instance runs as consumer 'job'"):
        drain(changes(spark, singers, **LEASE), tmp_path / "another")

    ctl(singers, "pause")
    wait_until(query, lambda: state_of(singers) is State.PAUSED)
    write(singers, range(5, 8), "while paused")
    wait_until(query, lambda: query.status["message"] == "Waiting for data to arrive")
    ctl(singers, "resume")
    wait_for_rows(query, tmp_path, 8)
    assert names_of(tmp_path)[5:] == [(k, "while paused") for k in range(5, 8)]

    ctl(singers, "stop")
    with pytest.raises(PySparkException, match="an operator asked consumer 'job' to stop"):
        query.awaitTermination(120)
    assert state_of(singers) is None
    ctl(singers, "resume")
    write(singers, range(8, 9), "last")
    drain(changes(spark, singers, **LEASE), tmp_path)
    assert names_of(tmp_path)[8:] == [(8, "last")]


def test_clearing_follows_the_commits(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    positions = SpannerPositions(singers)
    write(singers, range(30), "first")
    query = start(
        changes(spark, singers, **LEASE, backfillRowsPerBatch=10),
        tmp_path,
        processingTime="0 seconds",
    )
    wait_for_rows(query, tmp_path, 30)
    write(singers, range(10), "second")
    wait_for_rows(query, tmp_path, 40)
    newest = max(batch_committed(singers))
    wait_until(query, lambda: (positions.load_all("job") or {}).get("Singers", 0) >= newest)
    clearing = Clearing(singers, capture_of(singers).table, positions, margin_seconds=0)
    assert clearing.clear().rows == 30
    write(singers, range(3), "third")
    wait_for_rows(query, tmp_path, 43)
    query.stop()
    assert names_of(tmp_path) == sorted(
        [(k, "first") for k in range(30)]
        + [(k, "second") for k in range(10)]
        + [(k, "third") for k in range(3)]
    )


def batch_committed(database: Database) -> list[int]:
    """The commit timestamps in the index."""
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql("SELECT UNIX_MICROS(LastModified) FROM Singers")
        return [row[0] for row in result]


def test_a_start_before_the_position_takes_it_back(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    positions = SpannerPositions(singers)
    write(singers, range(5), "first")
    begin = capture_of(singers).look(0)[0].end
    write(singers, range(5), "second")
    for folder in ("once", "twice"):
        drain(changes(spark, singers, **LEASE), tmp_path / folder)
        write(singers, range(5, 6), folder)
    before = positions.load_all("job")["Singers"]
    assert before > begin
    earlier = {"startingTimestamp": to_datetime(begin).isoformat()}
    drain(changes(spark, singers, **LEASE, **earlier), tmp_path / "again")
    assert positions.load_all("job")["Singers"] == begin, (
        "its one batch is not known to be done yet"
    )
    assert names_of(tmp_path / "again") == [*((k, "second") for k in range(5)), (5, "twice")]
