"""Snapshots by Spanner's partitions: each row once, as of the timestamp, in any process."""

from __future__ import annotations

import base64
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import pytest
from fixtures.singers import capture_of
from fixtures.spark import options_of, read_keys
from google.cloud.spanner_v1.database import Database
from pyspark.sql.datasource import DataSourceReader

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import TableRows
from watcher.captures.snapshot import SnapshotCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.runners.spark.batch import SlicePartition, make_batch_reader
from watcher.runners.spark.few_rows import FEW_BYTES, FEW_ROWS
from watcher.runners.spark.resolution import resolve_snapshot_scan
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.stream import QueryStream
from watcher.tables.predicates import Compare, RowFilter

ROWS = 500


def fill(database: Database, name: str, rows_: int = ROWS) -> None:
    with database.batch() as batch:
        rows = [(key, name) for key in range(rows_)]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)


def now(database: Database) -> Window:
    window, _ = capture_of(database).look(0)
    return window


def rows_of(parts: list[TableRows]) -> list[tuple[int, str]]:
    rows = [row for part in parts for row in part.batch.to_pylist()]
    return sorted((row["SingerId"], row["LastName"]) for row in rows)


def read_part(pickled: bytes) -> list[tuple[int, str]]:
    capture, part = pickle.loads(pickled)
    return rows_of(list(capture.read(part)))


def test_the_parts_together_are_the_table_as_it_was(singers: Database) -> None:
    fill(singers, "then")
    window = now(singers)
    fill(singers, "later")
    capture = SnapshotCapture(capture_of(singers))
    parts = capture.plan(window)
    assert len(parts) > 1
    rows_by_part = [rows_of(list(capture.read(part))) for part in parts]
    assert sorted(row for rows in rows_by_part for row in rows) == [
        (k, "then") for k in range(ROWS)
    ]


def test_parts_are_read_in_another_process(singers: Database) -> None:
    fill(singers, "name")
    capture = SnapshotCapture(capture_of(singers))
    pickled = [pickle.dumps((capture, part)) for part in capture.plan(now(singers))]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        contents = [row for rows in pool.map(read_part, pickled) for row in rows]
    assert sorted(contents) == [(k, "name") for k in range(ROWS)]


def plan(
    database: Database, where: str | None = None, **options: object
) -> tuple[DataSourceReader, list[SlicePartition]]:
    filtered = {"where": where} if where else {}
    given = parse_source_options(options_of(database, **options) | filtered)
    reader = make_batch_reader(resolve_snapshot_scan(given))
    return reader, [each for each in reader.partitions() if isinstance(each, SlicePartition)]


def test_spark_has_at_most_as_many_tasks_as_it_asks_for(singers: Database) -> None:
    rows = FEW_ROWS + 1
    fill(singers, "name", rows)
    _, each_its_own = plan(singers)
    assert len(each_its_own) > 3
    for most in (1, 3, 1_000):
        reader, parts = plan(singers, maxPartitions=most)
        assert len(parts) == min(most, len(each_its_own))
        assert read_keys(reader, parts) == list(range(rows))


def test_a_small_table_comes_with_its_task_as_it_was(singers: Database) -> None:
    fill(singers, "then")
    reader, parts = plan(singers)
    fill(singers, "later", ROWS + 1)
    assert [len(part.planned) for part in parts] == [1]
    with patch.object(QueryStream, "_stream", side_effect=AssertionError("Spanner was asked")):
        batches: list[Any] = [batch for part in parts for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert sorted(row["SingerId"] for row in rows) == list(range(ROWS))
    assert {row["LastName"] for row in rows} == {"then"}


@pytest.mark.parametrize("options", [{"dataBoost": "true"}, {"where": "SingerId >= 0"}])
def test_the_driver_reads_nothing_that_spanner_may_have_to_search_or_others_are_to_read(
    singers: Database, options: dict[str, str]
) -> None:
    fill(singers, "name")
    reader, parts = plan(singers, **options)
    assert len(parts) > 1
    assert read_keys(reader, parts) == list(range(ROWS))


def test_few_large_rows_are_read_by_tasks(singers: Database) -> None:
    with singers.batch() as batch:
        rows = [(key, base64.b64encode(bytes(FEW_BYTES // 8))) for key in range(10)]
        batch.insert_or_update("Singers", ("SingerId", "Picture"), rows)
    reader, parts = plan(singers)
    assert len(parts) > 1
    assert read_keys(reader, parts) == list(range(10))


def test_rows_that_were_never_stamped_are_there_too(singers: Database) -> None:
    fill(singers, "name")
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastModified"), [(1, None)])
    capture = SnapshotCapture(capture_of(singers))
    window = now(singers)
    rows = [r for p in capture.plan(window) for b in capture.read(p) for r in b.batch.to_pylist()]
    assert len(rows) == ROWS
    assert [row["SingerId"] for row in rows if row["_commit_timestamp"] is None] == [1]


def test_a_condition_is_asked_of_spanner(singers: Database) -> None:
    fill(singers, "name")
    few = RowFilter(Compare("SingerId", "<", 3), (("SingerId", Type(TypeCode.INT64)),))
    poll = capture_of(singers)
    kept = replace(poll, table=replace(poll.table, row_filter=few))
    capture = SnapshotCapture(kept, data_boost=True)
    batches = [b for part in capture.plan(now(singers)) for b in capture.read(part)]
    assert rows_of(batches) == [(k, "name") for k in range(3)]


def test_a_timestamp_that_is_too_old_is_refused(singers: Database) -> None:
    with pytest.raises(VersionExpiredError):
        SnapshotCapture(capture_of(singers)).plan(Window(0, 1_000_000))
