"""Columns that a table loses, and other changes of its schema: what is loaded again, and what not.
``verify`` compares after each, and ``--dry-run`` says the same before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import (
    assert_equal,
    last_cut,
    list_commits,
    make_replicator,
    open_table,
    read_delta,
    read_rows,
    replicate,
)
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database

from watcher.replica.delta.log import GONE
from watcher.replica.reading import as_of
from watcher.spanner.timestamps import format_timestamp

ADD = "ALTER TABLE T ADD COLUMN Name STRING(MAX)"
DROP = "ALTER TABLE T DROP COLUMN Name"


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*watchable_ddl("T"), ADD)


def step(database: Database, folder: Path, capture: str = "poll", **replica: Any) -> str:
    """Replicates up to now, and compares: why the table was loaded, or empty."""
    more: dict[str, Any] = {"tables": ["T"], "capture": capture}
    more |= {"replica": {"to": f"delta:{folder}"} | replica}
    (planned,) = make_replicator(database, folder, **more).plan()
    (report,) = replicate(database, folder, **more)
    assert list(report.loaded) == (["T"] if planned.action == "load" else [])
    assert report.cut.exact
    assert_equal(database, folder, report.cut)
    return planned.reason if planned.action == "load" else ""


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
@pytest.mark.parametrize("merge", ["merge-on-read", "copy-on-write"])
def test_a_dropped_column_is_kept(
    database: Database, tmp_path: Path, merge: str, capture: str
) -> None:
    """In a commit without data; rows that are written since have NULL in it. Compaction keeps it,
    too."""
    kept: dict[str, Any] = {"dropped_columns": "keep", "merge": merge, "compaction_small_files": 1}
    if capture == "change-stream":
        change_schema(database, STREAM_DDL)
        kept["capture"] = capture
    write_table(database, *range(4), Version=1, Name="old")
    assert step(database, tmp_path, **kept) == "there is no copy"
    files = sorted(open_table(tmp_path, "T").file_uris())
    change_schema(database, DROP)
    assert step(database, tmp_path, **kept) == ""
    assert sorted(open_table(tmp_path, "T").file_uris()) == files
    assert list_commits(tmp_path, "T")[0]["operation"] == "CHANGE COLUMNS"
    write_table(database, 1, 9, Version=2)
    assert step(database, tmp_path, **kept) == ""
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    write_table(database, 2, Version=3, More=5)
    assert step(database, tmp_path, **kept) == ""
    names = {row["Id"]: row["Name"] for row in read_rows(tmp_path, "T")}
    assert names == {0: "old", 1: None, 2: None, 3: "old", 9: None}
    there = pl.read_delta(str(tmp_path / "T")).to_dicts()
    assert {row["Id"]: (row["Name"], row["More"]) for row in there} == {
        key: (name, 5 if key == 2 else None) for key, name in names.items()
    }
    write_table(database, 3, Version=4, More=6)
    change_schema(database, "ALTER TABLE T DROP COLUMN More")
    assert step(database, tmp_path, **kept) == ""
    more = {row["Id"]: (row["Name"], row["More"]) for row in read_rows(tmp_path, "T")}
    assert (more[2], more[3]) == ((None, 5), (None, None))


def test_a_dropped_column_that_comes_back_is_loaded(database: Database, tmp_path: Path) -> None:
    """Its old values are none of the new column."""
    write_table(database, *range(4), Version=1, Name="old")
    step(database, tmp_path)
    change_schema(database, DROP)
    assert step(database, tmp_path, dropped_columns="keep") == ""
    change_schema(database, ADD)
    assert "changed (changed: Name" in step(database, tmp_path, dropped_columns="keep")
    assert {row["Name"] for row in read_rows(tmp_path, "T")} == {None}


def test_without_keeping_a_dropped_column_is_gone(database: Database, tmp_path: Path) -> None:
    write_table(database, *range(4), Version=1, Name="old")
    step(database, tmp_path)
    change_schema(database, DROP)
    assert "(dropped: Name)" in step(database, tmp_path)
    assert "Name" not in read_rows(tmp_path, "T")[0]


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE T ALTER COLUMN Name STRING(40)"],
        ["ALTER TABLE T ALTER COLUMN Name STRING(MAX) NOT NULL"],
        ["ALTER TABLE T ALTER COLUMN Name SET DEFAULT ('x')"],
        ["CREATE INDEX ByName ON T (Name)"],
    ],
)
def test_what_changes_no_value_is_not_loaded(
    database: Database, tmp_path: Path, statements: Sequence[str]
) -> None:
    write_table(database, *range(4), Version=1, Name="old")
    step(database, tmp_path)
    files = open_table(tmp_path, "T").file_uris()
    change_schema(database, *statements)
    write_table(database, 9, Version=2, Name="new")
    assert step(database, tmp_path) == ""
    assert set(files) <= set(open_table(tmp_path, "T").file_uris())


def test_another_type_says_which_column(database: Database, tmp_path: Path) -> None:
    write_table(database, 1, Version=1, Name="old")
    step(database, tmp_path)
    change_schema(database, "ALTER TABLE T ALTER COLUMN Name BYTES(MAX)")
    assert "(changed: Name)" in step(database, tmp_path)


def test_a_table_that_is_created_again_is_loaded(database: Database, tmp_path: Path) -> None:
    """Versions of the one before stay for older cuts."""
    write_table(database, 1, Version=1, Name="old")
    step(database, tmp_path)
    version = open_table(tmp_path, "T").version()
    change_schema(database, "DROP INDEX TByTime", "DROP TABLE T", *watchable_ddl("T"), ADD)
    write_table(database, 2, Version=1)
    assert "dropped and created again" in step(database, tmp_path)
    assert [row["Id"] for row in read_rows(tmp_path, "T")] == [2]
    before = open_table(tmp_path, "T")
    before.load_as_version(version)
    assert before.count() == 1


@pytest.mark.parametrize("merge", ["merge-on-read", "copy-on-write"])
def test_a_dropped_column_leaves_the_copy_without_a_load(
    database: Database, tmp_path: Path, merge: str
) -> None:
    """In a commit without data; earlier cuts have it. Files keep it until they are written anew,
    and no reader shows it."""
    dropped: dict[str, Any] = {"dropped_columns": "drop", "merge": merge}
    write_table(database, *range(40), Version=1, Name="old")
    step(database, tmp_path, **dropped)
    before, files = last_cut(tmp_path), sorted(open_table(tmp_path, "T").file_uris())
    change_schema(database, DROP)
    assert step(database, tmp_path, **dropped) == ""
    assert sorted(open_table(tmp_path, "T").file_uris()) == files
    assert list_commits(tmp_path, "T")[0]["operation"] == "CHANGE COLUMNS"
    for key in range(9):
        write_table(database, key, 50 + key, Version=2)
        assert step(database, tmp_path, **dropped) == ""
    expected = {key: 2 if key < 9 or key > 49 else 1 for key in [*range(40), *range(50, 59)]}
    others = [read_delta(open_table(tmp_path, "T")), pl.read_delta(str(tmp_path / "T")).to_arrow()]
    for table in (pa.Table.from_pylist(read_rows(tmp_path, "T")), *others):
        assert "Name" not in table.column_names
        assert {row["Id"]: row["Version"] for row in table.to_pylist()} == expected
    earlier = as_of(f"delta:{tmp_path}", format_timestamp(before.end)).read("T")
    assert set(earlier.column("Name").to_pylist()) == {"old"}
    open_table(tmp_path, "T").optimize.compact()
    assert step(database, tmp_path, **dropped, compaction_small_files=1) == ""
    assert read_delta(open_table(tmp_path, "T")).num_rows == len(expected)


@pytest.mark.parametrize("dropped", ["keep", "drop"])
def test_a_column_that_came_and_goes_while_nothing_is_written(
    database: Database, tmp_path: Path, dropped: str
) -> None:
    """The commit that has added it has the end of the load."""
    write_table(database, 1, Version=1)
    step(database, tmp_path)
    change_schema(database, "ALTER TABLE T ADD COLUMN Five INT64 DEFAULT (5)")
    assert step(database, tmp_path) == ""
    change_schema(database, "ALTER TABLE T DROP COLUMN Five")
    assert step(database, tmp_path, dropped_columns=dropped) == ""
    assert ("Five" in read_rows(tmp_path, "T")[0]) == (dropped == "keep")


@pytest.mark.parametrize("type_", ["STRING(MAX)", "INT64", "STRING(MAX) DEFAULT ('new')"])
def test_a_column_that_has_left_the_copy_does_not_come_back_with_its_old_values(
    database: Database, tmp_path: Path, type_: str
) -> None:
    write_table(database, *range(40), Version=1, Name="old")
    step(database, tmp_path)
    change_schema(database, DROP)
    assert step(database, tmp_path, dropped_columns="drop") == ""
    write_table(database, 1, Version=2)
    assert step(database, tmp_path, dropped_columns="drop") == ""
    change_schema(database, f"ALTER TABLE T ADD COLUMN name {type_}")
    assert "(new: name)" in step(database, tmp_path, dropped_columns="drop")
    value = "new" if "DEFAULT" in type_ else None
    assert {row["name"] for row in read_rows(tmp_path, "T")} == {value}
    assert GONE not in open_table(tmp_path, "T").metadata().configuration
    change_schema(
        database, "ALTER TABLE T ADD COLUMN More INT64 DEFAULT (5)", DROP.replace("Name", "name")
    )
    assert step(database, tmp_path, dropped_columns="drop") == ""
    assert {row["More"] for row in read_rows(tmp_path, "T")} == {5}
