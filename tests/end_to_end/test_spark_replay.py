"""Exactly once: a micro-batch that is executed again is the same, whatever happened since."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fixtures.spark import (
    changes,
    copy_checkpoint,
    drain,
    names_of,
    newest_offset,
    parquet,
    start,
    undo_newest_commit,
    wait_until,
)
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from watcher.runners.spark.offsets import parse_micros
from watcher.runners.spark.spark_versions import PLANS_FROM_START
from watcher.spanner.timestamps import to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def write(database: Database, keys: range, name: str) -> None:
    with database.batch() as batch:
        rows = [(k, name) for k in keys]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)


def files(folder: Path, number: int) -> dict[str, Path]:
    """The files of a batch, by task."""
    log = folder / "parquet" / "_spark_metadata" / str(number)
    names = [json.loads(line)["path"].rsplit("/", 1)[1] for line in log.read_text().split()[1:]]
    return {name.split("-")[1]: folder / "parquet" / name for name in names}


def rows(path: Path) -> list[str]:
    """The rows of a file. Spanner promises no order, so that of a window's rows is not kept."""
    return sorted(str(row) for row in pq.read_table(path).to_pylist())


@pytest.mark.parametrize(
    "options",
    [{"nanoseconds": "string", "maxRowsPerBatch": 1000}, {"tables": "Singers"}],
    ids=["a table", "an envelope"],
)
def test_a_batch_again_has_the_same_rows_in_the_same_files(
    spark: SparkSession, singers: Database, tmp_path: Path, options: dict[str, object]
) -> None:
    options = {"rowsPerSlice": 20} | options
    for key in range(0, 100, 10):
        write(singers, range(key, key + 10), "before")
    drain(changes(spark, singers, **options), tmp_path)
    copy_checkpoint(tmp_path, tmp_path / "page")
    write(singers, range(50, 150), "planned")
    drain(changes(spark, singers, **options), tmp_path)
    copy_checkpoint(tmp_path, tmp_path / "window")
    write(singers, range(150), "later")
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[60]]))
    for number, place in enumerate(("page", "window")):
        undo_newest_commit(tmp_path / place / "checkpoint")
        drain(changes(spark, singers, **options), tmp_path / place)
        first, again = files(tmp_path, number), files(tmp_path / place, number)
        assert again.keys() == first.keys()
        assert len(first) > 1, "several slices"
        for task, path in first.items():
            assert rows(again[task]) == rows(path)
            if place == "page":
                assert again[task].read_bytes() == path.read_bytes()


def test_available_now_ends_at_what_was_there(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    writer = SingersWriter(singers, seed=2, keys=60)
    for _ in range(60):
        writer.write()
    there = writer.newest()
    drain(changes(spark, singers), tmp_path)
    for _ in range(20):
        writer.write()
    with run_beside(writer.write, 0.1) as begun:
        assert begun.wait(60)
        query = drain(changes(spark, singers, maxRowsPerBatch=20), tmp_path)
    assert {name for _, name in names_of(tmp_path)} >= set(there.values())
    end = parse_micros(newest_offset(tmp_path)["position"])
    assert writer.rows_at(end) != writer.rows_at(2**60), "there was more, and the query has ended"
    newest: dict[int, tuple[int, str]] = {}
    for row in parquet(tmp_path).to_pylist():
        version = to_micros(row["_commit_timestamp"]), row["LastName"]
        newest[row["SingerId"]] = max(newest.get(row["SingerId"], version), version)
    assert {(key, *value) for key, value in newest.items()} == writer.rows_at(end)
    sizes = sizes_of(query)
    if not PLANS_FROM_START:
        assert len(sizes) == 1, "one batch in versions of Spark that ask for one end"
        return
    assert len(sizes) > 2
    # A commit of up to five rows is never parted.
    assert max(sizes) < 20 + 5


def sizes_of(query: StreamingQuery) -> list[int]:
    """The rows of each batch that had some."""
    sizes = [int(progress["numInputRows"]) for progress in query.recentProgress]
    return [size for size in sizes if size]


def test_limits_hold_in_every_batch_of_another_trigger(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    since = {"startingTimestamp": "1970-01-02T00:00:00Z"}
    limits = {"maxRowsPerBatch": 20, "limitFirstBatch": True}
    for key in range(0, 100, 5):
        write(singers, range(key, key + 5), "name")
    sizes: list[int] = []
    for least in (40, 20):
        stream = changes(spark, singers, **since, **limits)
        query = start(stream, tmp_path, processingTime="0 seconds")
        wait_until(query, lambda: sum(sizes_of(query)) >= least)  # noqa: B023 (called here)
        query.stop()
        sizes += sizes_of(query)
    drain(changes(spark, singers, **since), tmp_path)
    assert names_of(tmp_path) == [(key, "name") for key in range(100)]
    assert max(sizes) <= 20


def test_offsets_are_small_and_those_of_version_1_are_read(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    write(singers, range(10), "first")
    drain(changes(spark, singers), tmp_path)
    write(singers, range(5), "second")
    drain(changes(spark, singers), tmp_path)
    offset = newest_offset(tmp_path)
    assert offset == {
        "version": 2,
        "database": singers.name,
        "source": "Singers",
        "position": offset["position"],
    }
    for path in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*"):
        *head, last = path.read_text().splitlines()
        old = json.loads(last)
        table = old.pop("source")
        old |= {"version": 1, "table": table}
        if old.get("from") == "earliest":
            old["from"] = "1970-01-01T00:00:00.000000Z"
        path.write_text("\n".join([*head, json.dumps(old)]))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    undo_newest_commit(tmp_path / "checkpoint")
    copy_checkpoint(tmp_path, tmp_path / "old")
    write(singers, range(3), "third")
    drain(changes(spark, singers), tmp_path / "old")
    expected = [(k, "second") for k in range(5)] + [(k, "third") for k in range(3)]
    assert names_of(tmp_path / "old") == sorted(expected)
    assert newest_offset(tmp_path / "old")["version"] == 2
