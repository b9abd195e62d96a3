"""Copies in Iceberg without Spark: what is read afterwards, by whom, whatever has happened."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fixtures.copied_tables import copied_tables, layouts
from fixtures.copy_histories import EAGER, live
from fixtures.iceberg_histories import (
    TABLE,
    IcebergHistory,
    open_copy,
    open_table,
    read_by_others,
)
from fixtures.named_rows import (
    KEY,
    SCHEMA,
    load_rows,
    make_rows,
    measure_files,
    measure_merges,
    read_content,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.model.errors import ConfigurationError, CopyConflictError, ReplicaError
from watcher.replica.copies import DELETED_COLUMN, Needed
from watcher.replica.iceberg import copies as iceberg_copies
from watcher.replica.iceberg import expiry as iceberg_expiry
from watcher.replica.iceberg import files as iceberg_files
from watcher.replica.iceberg import manifests as iceberg_manifests
from watcher.replica.iceberg import table as iceberg_table
from watcher.replica.iceberg.copies import IcebergTableCopy, open_written_copies
from watcher.replica.iceberg.namespaces import SQLITE_FILE
from watcher.replica.layout import ALL, Layout
from watcher.replica.writing import compactor, new_files
from watcher.replica.writing.compaction import CompactionPolicy

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "10"))
ROWS = 1_000


@pytest.fixture
def copy(tmp_path: Path) -> IcebergTableCopy:
    """A thousand rows, loaded at 100."""
    copy = open_copy(tmp_path)
    load_rows(copy, ROWS)
    return copy


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and rewrites make several files; rewrites go on over several windows. Files that no
    snapshot has go at once."""
    monkeypatch.setattr(iceberg_expiry, "MARGIN_SECONDS", -1.0)
    monkeypatch.setattr(Layout, "file_bytes", 600)
    monkeypatch.setattr(compactor, "SMALL_SHARE", 1e-4)
    monkeypatch.setattr(new_files, "GROUP_ROWS", 2)
    monkeypatch.setattr(iceberg_files, "BATCH_ROWS", 2)


def content(folder: Path) -> dict[int, str]:
    return read_content(open_copy(folder))


# What is read afterwards.


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_histories_are_read_by_everyone(small_groups: None, data: st.DataObject) -> None:
    """Plain Python, pyiceberg, polars, and the product."""
    with tempfile.TemporaryDirectory() as folder:
        table = data.draw(copied_tables())
        table = replace(table, layout=data.draw(layouts(table, ALL)))
        history = IcebergHistory(folder, table)
        live(data, history, ("nothing",))
        history.check()


def test_a_merge_costs_the_rows_that_change(tmp_path: Path) -> None:
    """However many rows the copy has."""
    written = measure_merges(tmp_path, open_copy)
    assert written[40_000] < 1.5 * written[2_000]
    assert written[40_000] < 32_768


def test_rows_without_change_make_no_snapshot(copy: IcebergTableCopy, tmp_path: Path) -> None:
    rows = make_rows({1: "new"}, 1)
    copy.merge(rows, KEY, 101)
    before = open_table(tmp_path).metadata.current_snapshot_id
    assert copy.merge(rows, KEY, 102).end == 101, "a window that comes again"
    assert open_table(tmp_path).metadata.current_snapshot_id == before


def test_versions_before_a_merge_are_read_after_it(copy: IcebergTableCopy) -> None:
    copy.merge(make_rows({1: "new", 2: None}, 1), KEY, 101)
    there = {row["Id"]: row["Name"] for batch in copy.scan(100) for row in batch.to_pylist()}
    assert there == {number: f"n{number}" for number in range(ROWS)}
    with pytest.raises(ReplicaError, match=r"no such snapshot.*use a later cut"):
        next(copy.scan(99))


def test_other_columns_are_loaded_into_the_same_table(
    copy: IcebergTableCopy, tmp_path: Path
) -> None:
    """A column that has the name of an earlier one has an ID of its own."""
    for end, type_ in ((101, pa.string()), (102, pa.int64()), (103, pa.string())):
        schema = SCHEMA.insert(1, pa.field("More", type_))
        rows = pa.table({name: pa.nulls(1, schema.field(name).type) for name in schema.names})
        state = copy.load(schema, rows.cast(schema).to_batches(), end)
        assert state.schema == schema
    ids = [
        each.find_field("More").field_id
        for each in open_table(tmp_path).schemas().values()
        if "More" in each.column_names
    ]
    assert len(set(ids)) == 3
    assert copy.read_schema(100) == SCHEMA
    assert sum(batch.num_rows for batch in copy.scan(100)) == ROWS
    for rows in read_by_others(tmp_path):
        assert rows.num_rows == 1


# Conflicts and crashes.


def test_a_stale_writer_is_refused(copy: IcebergTableCopy, tmp_path: Path) -> None:
    other = open_copy(tmp_path)
    other.merge(make_rows({1: "by another"}, 1), KEY, 101)
    with pytest.raises(CopyConflictError, match="another writer has changed"):
        copy.merge(make_rows({2: "stale"}, 1), KEY, 101)
    with pytest.raises(CopyConflictError, match="another writer has changed"):
        copy.load(SCHEMA, make_rows({2: "stale"}, 1).drop([DELETED_COLUMN]).to_batches(), 102)
    assert content(tmp_path)[1] == "by another"
    assert len(content(tmp_path)) == ROWS


def test_a_commit_of_somebody_else_between_look_and_commit_is_built_upon(
    copy: IcebergTableCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no instance of ours: the merge is made again on top of it."""

    race(monkeypatch, lambda: open_table(tmp_path).append(outside_rows()))
    copy.merge(make_rows({1: "ours"}, 1), KEY, 101)
    assert content(tmp_path) == {n: f"n{n}" for n in range(ROWS)} | {1: "ours", ROWS: "outside"}
    (outside,) = copy.list_outside(100, 101)
    assert "append by somebody else" in outside.detail


def test_of_two_instances_that_commit_at_once_one_is_refused(
    copy: IcebergTableCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_copy(tmp_path)
    race(monkeypatch, lambda: other.merge(make_rows({1: "other"}, 1), KEY, 101))
    with pytest.raises(CopyConflictError, match="another writer has changed"):
        copy.merge(make_rows({1: "ours", 2: "ours"}, 2), KEY, 101)
    assert content(tmp_path) == {n: f"n{n}" for n in range(ROWS)} | {1: "other"}


def outside_rows() -> pa.Table:
    return make_rows({ROWS: "outside"}, 1).drop([DELETED_COLUMN])


def race(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Does something once, when a commit has all of its files."""
    commit = iceberg_manifests.commit_snapshot

    def commit_late(*arguments: Any) -> bool:
        monkeypatch.setattr(iceberg_table, "commit_snapshot", commit)
        act()
        return commit(*arguments)

    monkeypatch.setattr(iceberg_table, "commit_snapshot", commit_late)


def test_a_load_whose_rows_fail_changes_nothing(copy: IcebergTableCopy, tmp_path: Path) -> None:
    def fail() -> Any:
        yield from make_rows({1: "half"}, 1).drop([DELETED_COLUMN]).to_batches()
        raise TimeoutError("no more rows")

    before = sorted((tmp_path / TABLE).rglob("*.parquet"))
    with pytest.raises(TimeoutError, match="no more rows"):
        copy.load(SCHEMA, fail(), 101)
    assert sorted((tmp_path / TABLE).rglob("*.parquet")) == before
    assert len(content(tmp_path)) == ROWS


# Compaction.


def test_small_files_deletes_and_manifests_become_one(tmp_path: Path) -> None:
    copy = open_copy(tmp_path, CompactionPolicy(5, 4, 32))
    expected: dict[int, str | None] = dict(load_rows(copy, ROWS))
    for window in range(1, 30):
        changes = dict.fromkeys(range(window, ROWS, 97), f"w{window}") | {window: None}
        copy.merge(make_rows(changes, window), KEY, 100 + window)
        expected |= changes
        copy.compact(KEY)
    summary = read_summary(tmp_path)
    assert int(summary["total-data-files"]) < 16
    assert int(summary["total-delete-files"]) < 10
    table = open_table(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) < 16
    there = {number: name for number, name in expected.items() if name is not None}
    assert content(tmp_path) == there
    for rows in read_by_others(tmp_path):
        assert dict(zip(rows["Id"].to_pylist(), rows["Name"].to_pylist(), strict=True)) == there
    assert copy.list_outside(100, 129) == [], "it is maintenance"


def test_a_file_that_has_lost_many_rows_is_written_anew_and_its_deletes_go(
    tmp_path: Path,
) -> None:
    copy = open_copy(tmp_path, CompactionPolicy(5, 100, 32, deleted_rows=10))
    load_rows(copy, ROWS)
    copy.merge(make_rows(dict.fromkeys(range(100)), 1), KEY, 101)
    assert int(read_summary(tmp_path)["total-position-deletes"]) == 100
    run = copy.compact(KEY, whole=True)
    assert (run.replaced, run.deleted) == (1, 0)
    summary = read_summary(tmp_path)
    assert (summary["total-records"], summary["total-delete-files"]) == ("900", "0")
    assert content(tmp_path) == {n: f"n{n}" for n in range(100, ROWS)}


def test_a_rewrite_that_meets_a_merge_has_its_rows(tmp_path: Path, small_groups: None) -> None:
    copy = open_copy(tmp_path, EAGER)
    expected: dict[int, str | None] = dict(load_rows(copy, 50))
    for window in range(1, 40):
        changes: dict[int, str | None] = {window: f"w{window}", 60 - window: None}
        copy.merge(make_rows(changes, window), KEY, 100 + window)
        expected |= changes
        copy.compact(KEY)
        there = {number: name for number, name in expected.items() if name is not None}
        assert content(tmp_path) == there


def test_a_rewrite_keeps_its_files_however_long_it_takes(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    copy = open_copy(tmp_path, EAGER)
    load_rows(copy, 50)
    request.getfixturevalue("small_groups")
    version = copy.merge(make_rows(dict.fromkeys(range(0, 50, 3)), 1), KEY, 101).version
    runs = [copy.compact(KEY)]
    while not runs[-1].replaced:
        copy.remove_before(Needed(0, version))
        runs.append(copy.compact(KEY))
    assert len(runs) > 3
    assert content(tmp_path) == {n: f"n{n}" for n in range(50) if n % 3}
    for rows in read_by_others(tmp_path):
        assert sorted(rows["Id"].to_pylist()) == [n for n in range(50) if n % 3]


def test_of_a_compaction_and_another_commit_at_once_the_compaction_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = open_copy(tmp_path, CompactionPolicy(0, 100, 32, deleted_rows=1))
    load_rows(copy, ROWS)
    copy.merge(make_rows({1: None}, 1), KEY, 101)
    race(monkeypatch, lambda: open_table(tmp_path).append(outside_rows()))
    for done in (False, True):
        run = copy.compact(KEY, whole=True)
        assert (run.abandoned, run.replaced) == (not done, int(done))
        for rows in read_by_others(tmp_path):
            assert sorted(rows["Id"].to_pylist()) == [0, *range(2, ROWS + 1)]


def test_snapshots_that_no_cut_names_go_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_expiry, "MARGIN_SECONDS", -1.0)
    copy = open_copy(tmp_path, CompactionPolicy(0, 100, 32, deleted_rows=1))
    load_rows(copy, ROWS)
    for window in range(1, 6):
        copy.merge(make_rows({window: "new"}, window), KEY, 100 + window)
        copy.compact(KEY, whole=True)
    before = measure_files(tmp_path)
    copy.remove_before(Needed(0, 104))
    assert measure_files(tmp_path) < before
    for version in (104, 105):
        assert sum(batch.num_rows for batch in copy.scan(version)) == ROWS
    with pytest.raises(ReplicaError, match="use a later cut"):
        next(copy.scan(103))
    assert len(content(tmp_path)) == ROWS


def test_a_table_keeps_a_bounded_number_of_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its metadata are written with each commit."""
    for module in (iceberg_expiry, iceberg_copies):
        monkeypatch.setattr(module, "SNAPSHOTS_MAX", 5)
        monkeypatch.setattr(module, "SNAPSHOTS_SLACK", 2)
    copy = open_copy(tmp_path, CompactionPolicy(5, 100, 32))
    load_rows(copy, ROWS)
    for window in range(1, 20):
        copy.merge(make_rows({window: "new"}, window), KEY, 100 + window)
        copy.compact(KEY)
        assert len(open_table(tmp_path).metadata.snapshots) <= 7
    assert sum(batch.num_rows for batch in copy.scan(116)) == ROWS


def read_summary(folder: Path) -> dict[str, str]:
    """What the current snapshot says of itself."""
    snapshot = open_table(folder).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return snapshot.summary.additional_properties


# What is refused.


def test_a_folder_that_spark_has_written_is_refused(tmp_path: Path) -> None:
    metadata = tmp_path / TABLE / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "version-hint.text").write_text("1")
    with pytest.raises(ReplicaError, match=r"written by Spark.*engine = 'spark'"):
        open_copy(tmp_path)
    assert not (tmp_path / SQLITE_FILE).exists()


def test_an_object_store_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="SQLite file"):
        open_written_copies("s3://bucket/lake", "c")


def test_a_table_that_somebody_has_partitioned_is_refused(
    copy: IcebergTableCopy, tmp_path: Path
) -> None:
    with open_table(tmp_path).update_spec() as change:
        change.add_identity("Name")
    with pytest.raises(ReplicaError, match=r"partitions.*use engine = 'spark'"):
        open_copy(tmp_path)
