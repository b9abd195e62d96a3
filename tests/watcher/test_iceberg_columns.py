"""Columns of copies in Iceberg without Spark: they come and go with the snapshot of a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import assert_equal, list_summaries, make_replicator, replicate
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ReplicaError
from watcher.replica.cuts.cut import KIND, Cut
from watcher.replica.iceberg.catalog import open_catalog
from watcher.replica.reading import as_of
from watcher.spanner.timestamps import format_timestamp

ADD = "ALTER TABLE T ADD COLUMN Name STRING(MAX)"
DROP = "ALTER TABLE T DROP COLUMN Name"
FIVE = "ALTER TABLE T ADD COLUMN Five INT64 DEFAULT (5)"


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*watchable_ddl("T"), STREAM_DDL)


def step(database: Database, folder: Path, **more: Any) -> tuple[list[str], Cut]:
    """Replicates up to now, and compares: the tables that were loaded, and the cut."""
    replica = {"to": f"iceberg:{folder}"} | more.pop("replica", {})
    settings = {"tables": ["T"], "replica": replica} | more
    planned = make_replicator(database, folder, **settings).plan()
    loads = [plan.table for plan in planned if plan.action == "load"]
    (report,) = replicate(database, folder, **settings)
    assert list(report.loaded) == loads, "--dry-run says otherwise"
    assert report.cut.exact
    assert_equal(database, folder, report.cut)
    return loads, report.cut


def read_rows(folder: Path, cut: Cut | None = None) -> dict[int, dict[str, Any]]:
    """The rows of a cut, by default the last one, by their keys."""
    at = None if cut is None else format_timestamp(cut.end)
    rows = as_of(f"iceberg:{folder}", at).read("T").to_pylist()
    return {row["Id"]: row for row in rows}


def list_files(folder: Path) -> set[str]:
    """The data files of the copy, as pyiceberg finds them."""
    table = open_catalog(str(folder)).load("T")
    assert table is not None
    return {each.file.file_path for each in table.scan().plan_files()}


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_a_new_column_comes_with_the_snapshot_of_its_window(
    database: Database, tmp_path: Path, capture: str
) -> None:
    """In a window with rows and in one without; earlier cuts have their own columns."""
    write_table(database, *range(6), Version=1)
    loads, first = step(database, tmp_path, capture=capture)
    assert loads == ["T"]
    files = list_files(tmp_path)
    change_schema(database, ADD)
    loads, second = step(database, tmp_path, capture=capture)
    assert loads == []
    assert list_files(tmp_path) == files
    assert list_summaries(tmp_path, "T")[0][KIND] == "columns"
    write_table(database, 2, Version=2)
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    write_table(database, 3, 9, Version=3, Name="a", More=7)
    assert step(database, tmp_path, capture=capture)[0] == []
    assert list_summaries(tmp_path, "T")[0][KIND] == "merge"
    write_table(database, 4, Version=4, Name="later")
    assert step(database, tmp_path, capture=capture)[0] == []
    values = {key: (row["Name"], row["More"]) for key, row in read_rows(tmp_path).items()}
    nothing = dict.fromkeys((0, 1, 2, 5), (None, None))
    assert values == {**nothing, 3: ("a", 7), 9: ("a", 7), 4: ("later", None)}
    assert "Name" not in read_rows(tmp_path, first)[0]
    assert read_rows(tmp_path, second)[0]["Name"] is None
    assert "More" not in read_rows(tmp_path, second)[0]
    assert_equal(database, tmp_path, first)


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_dropped_column_goes_and_comes_back_without_a_load(
    database: Database, tmp_path: Path, with_rows: bool
) -> None:
    """Another column of the name has another ID, so that old values stay away."""
    dropped: dict[str, Any] = {"replica": {"dropped_columns": "drop"}}
    change_schema(database, ADD)
    write_table(database, *range(6), Version=1, Name="old")
    _, first = step(database, tmp_path, **dropped)
    files = list_files(tmp_path)
    change_schema(database, DROP)
    if with_rows:
        write_table(database, 1, Version=2)
    assert step(database, tmp_path, **dropped)[0] == []
    assert files <= list_files(tmp_path)
    assert "Name" not in read_rows(tmp_path)[0]
    change_schema(database, "ALTER TABLE T ADD COLUMN Name INT64")
    if with_rows:
        write_table(database, 2, Version=3, Name=5)
    assert step(database, tmp_path, **dropped)[0] == []
    values = {key: row["Name"] for key, row in read_rows(tmp_path).items()}
    assert values == dict.fromkeys(range(6)) | ({2: 5} if with_rows else {})
    assert {row["Name"] for row in read_rows(tmp_path, first).values()} == {"old"}


def test_a_dropped_column_is_kept(database: Database, tmp_path: Path) -> None:
    kept: dict[str, Any] = {"replica": {"dropped_columns": "keep", "compaction_small_files": 1}}
    change_schema(database, ADD)
    write_table(database, *range(6), Version=1, Name="old")
    step(database, tmp_path, **kept)
    change_schema(database, DROP)
    assert step(database, tmp_path, **kept)[0] == []
    write_table(database, 1, 9, Version=2)
    assert step(database, tmp_path, **kept)[0] == []
    names = {key: row["Name"] for key, row in read_rows(tmp_path).items()}
    assert names == dict.fromkeys(range(6), "old") | {1: None, 9: None}
    change_schema(database, ADD)
    assert step(database, tmp_path, **kept)[0] == ["T"]
    assert {row["Name"] for row in read_rows(tmp_path).values()} == {None}


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize("partitions", [[], ["Version"]])
def test_values_are_written_into_any_files(
    database: Database, tmp_path: Path, partitions: list[str], with_rows: bool
) -> None:
    """Of partitions, with deletes, in the snapshot of the window; earlier cuts lack the columns."""
    replica: dict[str, Any] = {"layout": {"T": {"partition_by": partitions}}} if partitions else {}
    write_table(database, *range(30), Version=1)
    step(database, tmp_path, replica=replica)
    write_table(database, *range(0, 30, 4), Version=2)
    before = step(database, tmp_path, replica=replica)[1]
    there = read_rows(tmp_path, before)
    change_schema(database, FIVE, "ALTER TABLE T ADD COLUMN Twice INT64 AS (Version * 2) STORED")
    if with_rows:
        write_table(database, 5, 40, Version=3, Five=6)
    assert step(database, tmp_path, replica=replica)[0] == []
    assert list_summaries(tmp_path, "T")[0][KIND] == ("merge" if with_rows else "columns")
    write_table(database, 6, Version=1, Five=7)
    assert step(database, tmp_path, replica=replica)[0] == []
    written = {key: 1 + (key % 4 == 0) for key in range(30)} | {6: 1}
    fives = dict.fromkeys(range(30), 5) | {6: 7}
    if with_rows:
        written |= {5: 3, 40: 3}
        fives |= {5: 6, 40: 6}
    assert {
        key: (row["Five"], row["Version"], row["Twice"]) for key, row in read_rows(tmp_path).items()
    } == {key: (fives[key], version, 2 * version) for key, version in written.items()}
    assert read_rows(tmp_path, before) == there


def test_what_needs_a_load_is_loaded(database: Database, tmp_path: Path) -> None:
    """A column that goes; one of the layout cannot go."""
    write_table(database, *range(6), Version=1)
    change_schema(database, FIVE)
    step(database, tmp_path)
    change_schema(database, "ALTER TABLE T DROP COLUMN Five")
    assert step(database, tmp_path)[0] == ["T"]
    layout = {"layout": {"T": {"partition_by": ["Version"]}}, "dropped_columns": "drop"}
    other = tmp_path / "other"
    step(database, other, consumer="other", replica=layout)
    change_schema(database, "ALTER TABLE T DROP COLUMN Version")
    with pytest.raises(ReplicaError, match="partitioned or sorted by Version"):
        step(database, other, consumer="other", replica={"dropped_columns": "drop"})
