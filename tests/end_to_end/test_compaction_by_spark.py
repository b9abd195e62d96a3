"""Compaction and retention of copies that Spark writes: rows stay, files become few, and what a cut
names is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable
from fixtures.changing_schemas import watchable_ddl, write_everywhere
from fixtures.old_files import age_files
from fixtures.replicas import CONSUMER, assert_equal
from fixtures.server import CreateDatabase
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from prometheus_client import generate_latest
from pyspark.sql import DataFrame, SparkSession

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN, CompactionRun, Needed
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import ICEBERG, open_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.layout import Layout
from watcher.replica.spark.file_ranges import choose_share, choose_size
from watcher.replica.spark.frames import FrameCopy
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.runners.metrics import Metrics

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLE, KEY = "Singers", ("Id",)
EAGER = CompactionPolicy(10, 3, 1_000, deleted_rows=2)
Content = dict[int, str]


class History:
    """Merges into one copy, whose versions are all known. ``deleted``: rows go, too."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str, layout: Layout) -> None:
        self._spark = spark
        self._random = Random(5)
        self._layout = layout
        self.folder = folder
        self.format = format_
        self.copy = self.open(EAGER)
        self.rows: Content = dict.fromkeys(range(400), "loaded")
        self.versions: dict[int, Content] = {}
        self.end = 1
        state, _ = self.copy.load_frame(self._frame(self.rows, ()).drop(DELETED_COLUMN), self.end)
        self.versions[state.version] = dict(self.rows)

    def open(self, policy: CompactionPolicy | None = None) -> FrameCopy:
        opened = make_open_copy(self._spark, self.format, str(self.folder), CONSUMER, None, policy)
        return opened(self._spark, TABLE, self._layout)

    def _frame(self, rows: Content, deleted: Sequence[int]) -> DataFrame:
        stamp = f"timestamp_seconds({self.end}) AS `{STAMP_COLUMN}`"
        values = [(number, name, number % 2, number in deleted) for number, name in rows.items()]
        schema = f"Id BIGINT, Name STRING, Half BIGINT, `{DELETED_COLUMN}` BOOLEAN"
        frame = self._spark.createDataFrame(values, schema)
        return frame.selectExpr("Id", "Name", "Half", stamp, f"`{DELETED_COLUMN}`")

    def merge(self, count: int) -> None:
        """Some rows change, some come, and some go."""
        self.end += 1
        keys = self._random.sample(range(450), count)
        gone = [number for number in keys if number in self.rows][: count // 4]
        changed = dict.fromkeys(keys, f"{self.end}")
        state = self.copy.merge_frame(self._frame(changed, gone), KEY, self.end)
        self.rows |= changed
        for number in gone:
            del self.rows[number]
        self.versions[state.version] = dict(self.rows)

    def compact(self) -> int:
        """All that there is to do; the rows stay as they are. Returns how many files were
        replaced."""
        replaced = 0
        while (run := self.copy.compact(KEY, whole=True)).replaced:
            replaced += run.replaced
            if run.version is not None:
                self.versions[run.version] = dict(self.rows)
        return replaced

    def read(self, version: int) -> Content:
        """A version, as this process reads it."""
        stored = open_copies(self.format, str(self.folder), CONSUMER)(TABLE)
        batches = stored.scan(version, ["Id", "Name"])
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert len({row["Id"] for row in rows}) == len(rows)
        return {row["Id"]: row["Name"] for row in rows}

    def read_by_spark(self, version: int) -> Content:
        """The same, as Spark reads it."""
        return {row.Id: row.Name for row in self.copy.read_frame(version).collect()}

    def list_data_files(self) -> list[Path]:
        """Those that are there, of all versions."""
        return [p for p in self.folder.rglob("*.parquet") if "_delta_log" not in p.parts]


@pytest.fixture(params=[DELTA, ICEBERG])
def format_(request: pytest.FixtureRequest) -> str:
    require_format(request, request.param)
    return str(request.param)


@pytest.mark.parametrize("layout", [Layout(), Layout(("Half",))], ids=["plain", "partitioned"])
def test_compaction_changes_no_version_and_leaves_few_files(
    spark: SparkSession, tmp_path: Path, format_: str, layout: Layout
) -> None:
    """A history of merges, in which the copy is compacted; then what no cut names is removed."""
    history = History(spark, tmp_path, format_, layout)
    replaced = 0
    for _ in range(2):
        history.merge(60)
        history.merge(20)
        replaced += history.compact()
        run = history.copy.compact(KEY, whole=True)
        parts = 2 if layout.partition_by else 1
        assert run.files <= EAGER.small_files * parts
        assert run.deleted <= len(history.rows) * 0.1
    assert replaced > 2
    assert history.open().list_outside(None, max(history.versions)) in ((), [])
    for version, rows in history.versions.items():
        assert history.read(version) == rows, version
    age_files(history.folder, 30)
    named = sorted(history.versions)[-2]
    before = len(history.list_data_files())
    history.copy.remove_before(Needed(int(time.time()) * 1_000_000, named))
    assert len(history.list_data_files()) < before
    kept = {version: rows for version, rows in history.versions.items() if version >= named}
    for version, rows in kept.items():
        assert history.read(version) == rows, "a cut names it, or a later one"
    history.merge(20)
    newest = max(history.versions)
    assert history.read(newest) == history.read_by_spark(newest) == history.rows
    if format_ == ICEBERG:
        with pytest.raises(ReplicaError, match="cannot read version 1 "):
            history.read(1)


def test_a_copy_is_the_owners_without_a_policy(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    history = History(spark, tmp_path, format_, Layout())
    history.merge(60)
    age_files(history.folder, 400)
    files = set(history.list_data_files())
    copy = history.open()
    assert copy.compact(KEY, whole=True) == CompactionRun()
    copy.remove_before(Needed(int(time.time()) * 1_000_000, max(history.versions)))
    assert set(history.list_data_files()) == files


def test_a_replica_is_compacted_between_windows(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path, format_: str
) -> None:
    """After the cut of a window; what is done is counted as without Spark."""
    database = create_database(*watchable_ddl("A"))
    metrics = Metrics(CONSUMER)
    for number in range(3):
        write_everywhere(database, ("A",), number)
        replicate_by_spark(
            spark,
            database,
            tmp_path / "on",
            ("A",),
            format=format_,
            compaction_small_files=1,
            metrics=metrics,
        )
        assert_equal(database, tmp_path / "on")
    counted = generate_latest(metrics.registry).decode()
    labels = f'consumer="{CONSUMER}",table="A"'
    assert f'compactions_total{{consumer="{CONSUMER}",outcome="committed",table="A"}}' in counted
    assert f"spanner_watcher_copy_files{{{labels}}} 1.0" in counted
    assert f"spanner_watcher_copy_deleted_rows{{{labels}}}" in counted
    if format_ == DELTA:
        assert len(DeltaTable(str(tmp_path / "on" / "A")).file_uris()) == 1


def test_nobody_asks_for_what_no_copy_can_have(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="small files"):
        CompactionPolicy(small_files=0)


@dataclass(frozen=True)
class Small:
    """A file."""

    path: str
    size: int
    partition: tuple[int, ...] = ()
    vector: None = None
    rows: int = 1


def test_a_run_rewrites_what_its_budget_allows() -> None:
    """Of worn files the most worn; of small ones the smallest, two at least; and files that have to
    go with these are counted."""
    policy = CompactionPolicy(5, 3, 1)
    shares = [(0.5, 10), (0.4, 10), (0.3, 10), (0.04, 10), (0.0, 10)]
    assert choose_share(shares, 0.5, policy, 25) == 0.4
    assert choose_share(shares, 0.5, policy, 5) == 0.5
    assert choose_share(shares, 0.5, policy, 1e9) == 0.3
    files = [Small(f"{size}", size) for size in (1, 2, 3, 4)]
    assert choose_size(files, files, 6) == 4
    assert choose_size(files, files, 0) == 3
    assert choose_size(files, files, 1e9) == 5
    elsewhere = [Small("x", 2, (1,)), Small("y", 2, (1,)), Small("alone", 1, (2,))]
    assert choose_size([*files, *elsewhere], files, 7) == 3
