"""Copies by Spark that keep deleted rows, or every version: random histories against plain Python,
and what the tests have written to Spanner."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from fixtures.changing_schemas import change_schema
from fixtures.copied_tables import CopiedTable, copied_tables
from fixtures.kept_copies import ExpectedRows, make_changes, merge_random_changes, moment
from fixtures.replicas import CONSUMER, assert_equal, last_cut, read_rows
from fixtures.server import CreateDatabase
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from fixtures.versions import TABLES, Writes, list_versions, rows_at, truth_since
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN, CopyState, KeepingCopy
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, LATEST, TRANSACTION, Mode
from watcher.replica.formats import ICEBERG, open_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.frame_reading import as_of as as_of_frames
from watcher.replica.reading import as_of
from watcher.replica.row_versions import KEY_ONLY, extend_schema, keep_valid
from watcher.replica.spark.kept_rows import SEQUENCE_COLUMN
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
NAMES = ("Id", "Version", "Text")
EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "2"))


@pytest.fixture(params=[DELTA, ICEBERG])
def kept_format(request: pytest.FixtureRequest) -> str:
    format_: str = request.param
    require_format(request, format_)
    return format_


class WrittenRows:
    """A copy by Spark, as ``merge_random_changes`` writes it."""

    def __init__(self, spark: SparkSession, folder: str, format_: str, mode: Mode) -> None:
        self._spark = spark
        self._open = make_open_copy(spark, format_, folder, CONSUMER, mode=mode)
        self.reopen()

    def reopen(self) -> WrittenRows:
        """The copy as a process that starts finds it."""
        self.frames = self._open(self._spark, "T")
        self.state = self.frames.read_state()
        return self

    def load(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], end: int) -> None:
        """As ``TableCopy.load``."""
        rows = self._spark.createDataFrame(pa.Table.from_batches(batches, schema))
        self.state, _ = self.frames.load_frame(rows, end)

    def merge(self, rows: pa.Table, key: Any, end: int) -> None:
        """As ``TableCopy.merge``; the places of rows tell the order of a transaction's changes."""
        numbers = pa.array([f"{number:08d}" for number in range(rows.num_rows)])
        frame = self._spark.createDataFrame(rows.append_column(SEQUENCE_COLUMN, numbers))
        self.state = self.frames.merge_frame(frame, key, end)


def check(state: CopyState, copies: Iterable[Any], expected: ExpectedRows) -> None:
    """What Spark reads, and the product without it."""
    schema = expected.table.schema
    whole = extend_schema(schema, expected.mode)
    for copy in copies:
        assert isinstance(copy, KeepingCopy)
        assert copy.read_schema(state.version).names == schema.names
        rows = pa.Table.from_batches(list(copy.scan(state.version, schema.names)), schema)
        expected.assert_live(rows.to_pylist())
        everything = pa.Table.from_batches(
            [each.cast(whole) for each in copy.scan_all(state.version)], whole
        )
        expected.assert_all(everything.to_pylist())
        if expected.mode == HISTORY:
            for at in sorted({row["_valid_from"] for row in everything.to_pylist()}):
                micros = int(at.timestamp() * 1e6 + 0.5)
                expected.assert_valid(keep_valid(everything, micros).to_pylist(), at)


KEYED = CopiedTable(
    pa.schema(
        [
            ("Id", pa.int64()),
            ("Part", pa.float64()),
            ("a.b", pa.string()),
            (STAMP_COLUMN, pa.timestamp("us", "UTC")),
        ]
    ),
    ("Id", "Part"),
)


def row(key: int | None, part: float, text: str | None, at: int, gone: str = "") -> dict[str, Any]:
    """A row, or a change of one: ``gone`` says that it is deleted, and whether the key is all that
    is known of it."""
    values = {"Id": key, "Part": part, "a.b": text, STAMP_COLUMN: moment(at)}
    details = {DELETED_COLUMN: bool(gone), KEY_ONLY: gone == "key", TRANSACTION: f"t{at}"}
    return values | details


WINDOWS: tuple[list[dict[str, Any]], ...] = (
    [
        row(1, 0.0, "one", 1001),
        row(2, 0.0, None, 1002, "key"),
        row(None, 0.0, "null", 1003),
        row(4, -0.0, "other zero", 1004),
        row(5, 1.5, "comes", 1004),
        row(5, 1.5, None, 1005, "key"),
        row(6, 0.0, None, 1006, "key"),
    ],
    [
        row(1, 0.0, "first of two", 2001),
        row(1, 0.0, "last of two", 2001),
        row(2, 0.0, "again", 2002),
        row(3, math.nan, "with values", 2003, "whole"),
        row(None, 0.0, None, 2004, "key"),
        row(5, 1.5, "back", 2005),
    ],
)
"""Rows that come, change, go and come back; that were never there; two changes in one
transaction."""


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_changes_leave_what_plain_python_leaves(
    spark: SparkSession, kept_format: str, mode: Mode, tmp_path: Path
) -> None:
    expected = ExpectedRows(KEYED, mode)
    written = WrittenRows(spark, str(tmp_path), kept_format, mode)
    loaded = [row(n, 0.0, "loaded", 500) for n in (1, 2, 4)]
    loaded += [row(3, math.nan, "loaded", 500), row(None, 0.0, "loaded", 500)]
    expected.load(loaded, 1000)
    written.load(KEYED.schema, KEYED.make_rows(loaded).to_batches(), 1000)
    for number, changes in enumerate(WINDOWS):
        expected.merge(changes)
        written.merge(make_changes(KEYED, changes), KEYED.key, 2000 + 1000 * number)
    assert written.state is not None
    read = open_copies(kept_format, str(tmp_path), CONSUMER)("T")
    check(written.state, (written.frames, read), expected)


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_histories_leave_what_plain_python_leaves(
    data: st.DataObject, spark: SparkSession, kept_format: str, mode: Mode
) -> None:
    table = data.draw(copied_tables())
    expected = ExpectedRows(table, mode)
    with TemporaryDirectory() as folder:
        written = WrittenRows(spark, folder, kept_format, mode)
        restarts = st.booleans()
        merge_random_changes(
            data, expected, written, lambda c: c.reopen() if data.draw(restarts) else c, 4
        )
        assert written.state is not None
        read = open_copies(kept_format, folder, CONSUMER)("T")
        check(written.state, (written.frames, read), expected)


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*TABLES, STREAM)


def copy(spark: SparkSession, database: Database, folder: Path, **more: Any) -> None:
    replicate_by_spark(spark, database, folder, ("T", "U"), stream="S", **more)


def test_a_history_has_every_version_and_reads_as_of_any_time(
    spark: SparkSession, database: Database, tmp_path: Path, kept_format: str
) -> None:
    """The load has several chunks, and windows between them."""
    writes = Writes(database, 5)
    writes.write(6)
    more: Mapping[str, Any] = {"format": kept_format, "mode": HISTORY}
    copy(spark, database, tmp_path, load_rows=4, **more)
    since, to = last_cut(tmp_path).end, f"{kept_format}:{tmp_path}"
    for _ in range(2):
        writes.write(10)
        copy(spark, database, tmp_path, **more)
        assert_equal(database, tmp_path)
    assert list_versions(to, since) == truth_since(writes, since)
    end = last_cut(tmp_path).end
    moments = {v.at + d for listed in writes.truth.values() for v in listed for d in (-1, 0)}
    for at in sorted(m for m in moments if since <= m <= end)[::3]:
        replica = as_of(to, format_timestamp(at))
        for name in ("T", "U"):
            rows = replica.read(name).to_pylist()
            assert sorted((row["Id"], row["Version"]) for row in rows) == sorted(
                rows_at(writes, name, at)
            )
    with pytest.raises(ReplicaError, match="the history of T begins at"):
        as_of(to, format_timestamp(since - 1)).read("T")
    by_spark = as_of_frames(spark, to).read("T").collect()
    assert sorted((row.Id, row.Version) for row in by_spark) == sorted(rows_at(writes, "T", end))


def test_deleted_rows_stay_with_what_they_were(
    spark: SparkSession, database: Database, tmp_path: Path, kept_format: str
) -> None:
    more: Mapping[str, Any] = {"format": kept_format, "mode": KEEP_DELETED}
    with database.batch() as batch:
        batch.insert("T", NAMES, [(n, n, "a") for n in range(3)])
    copy(spark, database, tmp_path, **more)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[1]]))
    deleted = batch.committed
    with database.batch() as batch:
        batch.insert("T", NAMES, [(8, 8, "short")])
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[8]]))
    gone = batch.committed
    copy(spark, database, tmp_path, **more)
    assert_equal(database, tmp_path)
    assert sorted(row["Id"] for row in read_rows(tmp_path, "T")) == [0, 2]
    marks = read_marks(kept_format, tmp_path)
    assert marks == {0: ("a", None), 1: ("a", deleted), 2: ("a", None), 8: ("short", gone)}
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    with database.batch() as batch:
        batch.insert("T", (*NAMES, "More"), [(1, 11, "again", 5)])
    copy(spark, database, tmp_path, **more)
    assert_equal(database, tmp_path)
    marks = read_marks(kept_format, tmp_path)
    assert marks[1] == ("again", None), "it is there again"
    assert marks[8] == ("short", gone), "new columns leave the marks"
    with pytest.raises(ConfigurationError, match=f"use --mode {KEEP_DELETED}, or another"):
        copy(spark, database, tmp_path, format=kept_format, mode=LATEST)


def read_marks(format_: str, folder: Path) -> dict[int, tuple[str, Any]]:
    rows = as_of(f"{format_}:{folder}").read("T", all_rows=True).to_pylist()
    assert len({row["Id"] for row in rows}) == len(rows)
    return {row["Id"]: (row["Text"], row["_deleted_at"]) for row in rows}
