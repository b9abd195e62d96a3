"""Copies that Spark writes, each format alike: what a load, a merge and another writer leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from fixtures.copied_tables import KEY_VALUES, CopiedTable, ExpectedCopy
from fixtures.replicas import CONSUMER
from fixtures.spark_formats import require_format
from pyspark.sql import DataFrame, SparkSession

from watcher.model.errors import ConfigurationError, CopyConflictError, ReplicaError
from watcher.replica import loads
from watcher.replica.copies import (
    COPY_ON_WRITE,
    DELETED_COLUMN,
    MERGE_ON_READ,
    STAMP_COLUMN,
    CopyState,
    Merging,
    Needed,
)
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import ICEBERG, PARQUET, open_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.loads import LoadProgress
from watcher.replica.spark.frames import FrameChunk, FrameCopy
from watcher.replica.spark.parquet import SMALL_FILES_MAX
from watcher.runners.spark.newest import select_newest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLE = "Singers"
Row = tuple[int | None, str, int | None]
"""Key, name, and the second of the commit timestamp."""


UGLY = CopiedTable(
    pa.schema(
        [
            ("a.b", pa.float64()),
            ("s", pa.binary()),
            ("T", pa.bool_()),
            ("a`b", pa.decimal128(38, 9)),
            ('a"b', pa.int64()),
            ("select", pa.string()),
            ("_metadata", pa.date32()),
            ("_newest", pa.float32()),
            ("_row", pa.string()),
            (STAMP_COLUMN, pa.timestamp("us", "UTC")),
        ]
    ),
    ("a.b", "s", "a`b", "T", 'a"b', "select", "_metadata", "_newest"),
)


class Lake:
    """Copies of one table in a folder, and rows for them."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str) -> None:
        self._spark = spark
        self._folder = folder
        self.format = format_

    def open(self, merging: Merging | None = None) -> FrameCopy:
        """A writer of its own."""
        folder = str(self._folder)
        opened = make_open_copy(self._spark, self.format, folder, CONSUMER, merging)
        return opened(self._spark, TABLE)

    def count_deletes(self) -> int:
        """Files that say which rows of others are not there any more."""
        names = ("deletion_vector_*.bin", "*-deletes.parquet")
        return sum(len(list(self._folder.rglob(name))) for name in names)

    def frame(self, rows: Iterable[Row]) -> DataFrame:
        """Rows of the table."""
        values = [(key, name, second and at(second)) for key, name, second in rows]
        schema = f"Id BIGINT, Name STRING, {STAMP_COLUMN} TIMESTAMP"
        return self._spark.createDataFrame(values, schema)

    def changes(self, rows: Iterable[Row], *deleted: int | None) -> DataFrame:
        """Rows of a window; those with the keys ``deleted`` are removed."""
        frame = self.frame(rows)
        marks = [f"Id <=> {'NULL' if key is None else key}" for key in deleted]
        return frame.selectExpr("*", f"({' OR '.join(marks) or 'FALSE'}) AS `{DELETED_COLUMN}`")

    def load(self, copy: FrameCopy, rows: Iterable[Row], end: int) -> CopyState:
        state, _ = copy.load_frame(self.frame(rows), end)
        return state

    def merge(
        self, copy: FrameCopy, rows: Iterable[Row], end: int, *deleted: int | None
    ) -> CopyState:
        return copy.merge_frame(self.changes(rows, *deleted), ("Id",), end)

    def read(self, state: CopyState) -> Mapping[int | None, str]:
        """The names by key, as Spark and as Arrow read them."""
        by_spark = {row.Id: row.Name for row in self.open().read_frame(state.version).collect()}
        copy = open_copies(self.format, str(self._folder), CONSUMER)(TABLE)
        batches = list(copy.scan(state.version, ["Id", "Name"]))
        by_arrow = [row for batch in batches for row in batch.to_pylist()]
        assert {row["Id"]: row["Name"] for row in by_arrow} == by_spark
        assert len(by_arrow) == len(by_spark)
        assert copy.read_schema(state.version).names == ["Id", "Name", STAMP_COLUMN]
        return by_spark


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture
def lake(spark: SparkSession, lake_format: str, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path, lake_format)


def test_a_merge_leaves_the_newest_row_of_each_key(lake: Lake) -> None:
    copy = lake.open()
    assert copy.read_state() is None
    first = lake.load(copy, [(1, "a", None), (2, "b", 20), (None, "c", 20), (4, "d", 20)], 100)
    rows: list[Row] = [(1, "new", 30), (2, "old", 10), (None, "n", 30), (4, "", 30), (5, "e", 30)]
    second = lake.merge(copy, [*rows, (6, "", 30)], 200, 4, 6)
    assert lake.read(second) == {1: "new", 2: "b", None: "n", 5: "e"}
    assert lake.read(first) == {1: "a", 2: "b", None: "c", 4: "d"}, "versions stay"
    assert (second.end, lake.open().read_state()) == (200, second)


MANY: list[Row] = [(number, "loaded", 10) for number in range(50)]


def test_new_copies_are_merged_on_read_and_others_as_they_were_made(lake: Lake) -> None:
    """Also when they are loaded again; ``merging`` changes one. Parquet has files alone."""
    if lake.format == PARQUET:
        with pytest.raises(ConfigurationError, match="copy-on-write"):
            lake.open(MERGE_ON_READ)
        return
    lake.load(lake.open(COPY_ON_WRITE), MANY, 100)
    lake.merge(lake.open(), [(1, "a", 20)], 200)
    lake.load(lake.open(), MANY, 300)
    lake.merge(lake.open(), [(2, "b", 20)], 400)
    assert lake.count_deletes() == 0
    state = lake.merge(lake.open(MERGE_ON_READ), [(3, "c", 20), (4, "", 20)], 500, 4)
    assert lake.count_deletes() == 1
    names = {number: "loaded" for number, _, _ in MANY} | {2: "b", 3: "c"}
    del names[4]
    assert lake.read(state) == names
    state = lake.merge(lake.open(COPY_ON_WRITE), [(5, "d", 20)], 600)
    assert lake.count_deletes() == 1
    assert lake.read(state) == names | {5: "d"}


def test_a_new_copy_is_merged_on_read(lake: Lake) -> None:
    copy = lake.open()
    lake.load(copy, MANY, 100)
    states = [
        lake.merge(copy, [(n, "new", 20 + n), (n + 9, "", 20)], 200 + n, n + 9) for n in (1, 2)
    ]
    assert (lake.count_deletes() > 0) == (lake.format != PARQUET)
    names = {n: "loaded" for n, _, _ in MANY if n not in (10, 11)} | {1: "new", 2: "new"}
    assert lake.read(states[1]) == names
    assert lake.read(states[0]) == names | {2: "loaded", 11: "loaded"}


def test_a_window_that_comes_again_changes_nothing(lake: Lake) -> None:
    copy = lake.open()
    lake.load(copy, [(1, "a", 10)], 100)
    merged = lake.merge(copy, [(1, "b", 20)], 200)
    assert lake.load(lake.open(), [(1, "other", 10)], 100) == merged
    again = lake.load(lake.open(), [(2, "c", 30)], 300)
    assert lake.read(again) == {2: "c"}, "a load replaces"


def test_a_table_may_be_empty(lake: Lake) -> None:
    copy = lake.open()
    empty = lake.load(copy, [], 100)
    assert lake.read(empty) == {}
    full = lake.merge(copy, [(1, "a", 20)], 200)
    assert lake.read(full) == {1: "a"}
    assert lake.read(lake.merge(copy, [(1, "", 30)], 300, 1)) == {}


def test_any_key_and_any_name_is_merged_as_plain_python_does(
    spark: SparkSession, lake_format: str, tmp_path: Path
) -> None:
    """NULL, NaN, -0.0 and bytes in a key of eight columns; names that are SQL, or look like it."""
    table, random = UGLY, Random(7)
    expected = ExpectedCopy(table)
    copy = make_open_copy(spark, lake_format, str(tmp_path), CONSUMER)(spark, "T")
    order = (STAMP_COLUMN,)

    def make_rows(window: int) -> list[dict[str, Any]]:
        rows = []
        for _ in range(60):
            row = {f.name: random.choice([None, *KEY_VALUES[f.type][:2]]) for f in table.schema}
            # Keys that differ in two places at most: else none would come twice.
            row |= {name: KEY_VALUES[table.schema.field(name).type][0] for name in table.key[3:]}
            row[STAMP_COLUMN] = at(10 * window + random.randrange(20))
            rows.append(row | {DELETED_COLUMN: random.random() < 0.3})
        return rows

    loaded = list({table.identify(row): row for row in make_rows(0)}.values())
    expected.load(loaded)
    copy.load_frame(spark.createDataFrame(table.make_rows(loaded)), 100)
    rows = make_rows(1)
    # Of one key and one timestamp Spark may take either.
    rows = list({(*table.identify(r), r[STAMP_COLUMN]): r for r in rows}.values())
    expected.merge(rows)
    newest = select_newest(spark.createDataFrame(table.make_changes(rows)), table.key, order)
    state = copy.merge_frame(newest, table.key, 200)
    for reader in (copy, open_copies(lake_format, str(tmp_path), CONSUMER)("T")):
        batches = reader.scan(state.version, table.schema.names)
        expected.assert_equals([row for batch in batches for row in batch.to_pylist()])


def test_columns_change_with_a_load(lake: Lake) -> None:
    copy = lake.open()
    first = lake.load(copy, [(1, "a", 10)], 100)
    wider = lake.frame([(1, "a", 10)]).selectExpr("Id", "Name", "1L AS More", STAMP_COLUMN)
    second, count = copy.load_frame(wider, 200)
    assert (second.schema.field("More").type, count) == (pa.int64(), 1)
    assert lake.read(first) == {1: "a"}


def test_a_stale_writer_is_refused(lake: Lake) -> None:
    stale, successor = lake.open(), lake.open()
    lake.load(stale, [(1, "a", 10)], 100)
    assert successor.read_state() is not None
    newest = lake.merge(successor, [(1, "b", 30)], 300)
    with pytest.raises(CopyConflictError, match=f"run one instance of consumer '{CONSUMER}'"):
        lake.merge(stale, [(1, "old", 20)], 200)
    assert lake.read(newest) == {1: "b"}


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_a_chunk_by_a_writer_that_is_taken_over_is_in_no_version(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_: str,
) -> None:
    """Its successor appends the same chunk while it is about to."""
    require_format(request, format_)
    lake = Lake(spark, tmp_path, format_)
    stale, successor, states = lake.open(), lake.open(), list[CopyState]()
    stale.load_frame(lake.frame([(1, "a", 10)]), 100, make_chunk(1))

    def be_faster(_place: str) -> None:
        if not states:
            states.append(successor.read_state() or pytest.fail("there is no copy"))
            state, _ = successor.load_frame(lake.frame([(2, "b", 10)]), 100, make_chunk(2))
            states.append(state)

    monkeypatch.setattr(loads, "failpoint", be_faster)
    with pytest.raises(CopyConflictError):
        stale.load_frame(lake.frame([(2, "b", 10)]), 100, make_chunk(2))
    assert states[-1].progress == make_chunk(2).progress
    assert lake.read(states[-1]) == {1: "a", 2: "b"}
    with_rows_twice = format_ == ICEBERG
    assert (lake.open().read_state() is None) == with_rows_twice, "it is loaded from the beginning"


def make_chunk(number: int) -> FrameChunk:
    """A chunk of a row, up to its number."""
    return FrameChunk(number == 1, LoadProgress((str(number),), number, 0, number, 100))


def test_a_version_that_is_gone_is_named(lake: Lake) -> None:
    lake.load(lake.open(), [(1, "a", 10)], 100)
    with pytest.raises(ReplicaError, match="cannot read version 7 of"):
        lake.open().read_frame(7).collect()


def test_parquet_has_as_many_files_as_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, PARQUET)
    copy = lake.open()
    states = [lake.load(copy, [(0, "0", 1)], 1)]
    for number in range(1, SMALL_FILES_MAX + 4):
        states.append(lake.merge(copy, [(number, str(number), number)], number + 1))
    names = {number: str(number) for number in range(SMALL_FILES_MAX + 4)}
    assert lake.read(states[-1]) == names
    assert count_files(tmp_path) > SMALL_FILES_MAX + 3, "old versions have theirs"
    last, earlier = states[-1], states[-3]
    copy.remove_before(Needed(earlier.version))
    assert lake.read(earlier) == dict(list(names.items())[:-2])
    with pytest.raises(ReplicaError, match="it was removed; use a later cut"):
        lake.read(states[0])
    copy.remove_before(Needed(last.version + 5))
    assert lake.read(last) == names
    assert count_files(tmp_path) <= SMALL_FILES_MAX


def count_files(folder: Path) -> int:
    return len(list(folder.rglob("*.parquet")))
