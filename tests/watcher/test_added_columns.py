"""Columns that a table gets: a copy gets them without a load where no row has a value in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fixtures.changing_schemas import change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import (
    assert_equal,
    list_commits,
    make_replicator,
    open_table,
    read_delta,
    read_rows,
    replicate,
)
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from watcher.replica.delta.copy import DeltaCopy
from watcher.spanner.schema_changes import SchemaChange
from watcher.tables.added import find_column_steps

PLAIN = "ALTER TABLE T ADD COLUMN Added STRING(MAX)"


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*watchable_ddl("T"))


def step(database: Database, folder: Path, **more: Any) -> list[str]:
    """Replicates up to now, and compares: the tables that were loaded."""
    planned = make_replicator(database, folder, tables=["T"], **more).plan()
    loads = [plan.table for plan in planned if plan.action == "load"]
    (report,) = replicate(database, folder, tables=["T"], **more)
    assert list(report.loaded) == loads, "--dry-run says otherwise"
    assert report.cut.exact
    assert_equal(database, folder, report.cut)
    return list(report.loaded)


@pytest.mark.parametrize("merge", ["merge-on-read", "copy-on-write"])
def test_a_new_column_is_a_commit_without_files(
    database: Database, tmp_path: Path, merge: str
) -> None:
    """With values for the rows that were written since, in the same window or later."""
    more = {"replica": {"to": f"delta:{tmp_path}", "merge": merge}}
    write_table(database, *range(6), Version=1)
    assert step(database, tmp_path, **more) == ["T"]
    files = sorted(open_table(tmp_path, "T").file_uris())
    change_schema(database, PLAIN)
    assert step(database, tmp_path, **more) == []
    assert sorted(open_table(tmp_path, "T").file_uris()) == files
    assert list_commits(tmp_path, "T")[0]["operation"] == "ADD COLUMNS"
    write_table(database, 2, Version=2)
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    write_table(database, 3, 9, Version=3, Added="a", More=7)
    assert step(database, tmp_path, **more) == []
    write_table(database, 4, Version=4, Added="later")
    assert step(database, tmp_path, **more) == []
    values = {row["Id"]: (row["Added"], row["More"]) for row in read_rows(tmp_path, "T")}
    nothing = dict.fromkeys((0, 1, 2, 5), (None, None))
    assert values == {**nothing, 3: ("a", 7), 9: ("a", 7), 4: ("later", None)}
    others = [read_delta(open_table(tmp_path, "T")), pl.read_delta(str(tmp_path / "T")).to_arrow()]
    for table in others:
        assert {row["Id"]: (row["Added"], row["More"]) for row in table.to_pylist()} == values


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE T ADD COLUMN Added STRING(MAX) DEFAULT ('x')"],
        [
            "ALTER TABLE T ADD COLUMN Added STRING(MAX) DEFAULT ('x')",
            "ALTER TABLE T ALTER COLUMN Added DROP DEFAULT",
        ],
        ["ALTER TABLE T ADD COLUMN Added INT64 AS (Id * 2) STORED"],
        [PLAIN, "ALTER TABLE T DROP COLUMN Version"],
        [PLAIN, "ALTER TABLE T ALTER COLUMN Version STRING(MAX)"],
    ],
)
def test_whatever_may_have_a_value_is_loaded(
    create_database: CreateDatabase, tmp_path: Path, statements: Sequence[str]
) -> None:
    """Also where nothing at the end of the window shows it."""
    database = create_database(*watchable_ddl("T"))
    if "Version STRING" in statements[-1]:
        statements = [PLAIN, "ALTER TABLE T ADD COLUMN Other BOOL NOT NULL DEFAULT (TRUE)"]
    write_table(database, *range(6), Version=1)
    step(database, tmp_path)
    change_schema(database, *statements)
    assert step(database, tmp_path) == ["T"]


def test_a_column_that_was_left_out_before_is_loaded(database: Database, tmp_path: Path) -> None:
    """It is no new one."""
    change_schema(database, PLAIN)
    write_table(database, *range(6), Version=1, Added="there")
    step(database, tmp_path, table={"T": {"exclude_columns": ["Added"]}})
    assert step(database, tmp_path) == ["T"]
    assert {row["Added"] for row in read_rows(tmp_path, "T")} == {"there"}


def test_a_crash_between_the_columns_and_the_rows(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(database, *range(6), Version=1)
    step(database, tmp_path)
    change_schema(database, PLAIN)
    write_table(database, 3, Version=2, Added="a")

    class CrashError(Exception):
        pass

    def crash(*_: object) -> None:
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(DeltaCopy, "merge", crash)
        with pytest.raises(CrashError):
            replicate(database, tmp_path, tables=["T"])
    assert_equal(database, tmp_path)
    assert step(database, tmp_path) == []
    assert {r["Id"]: r["Added"] for r in read_rows(tmp_path, "T")}[3] == "a"


@pytest.mark.parametrize(
    ("statements", "added"),
    [
        ([PLAIN], {"Added"}),
        ([PLAIN, "ALTER TABLE T ADD COLUMN More INT64"], {"Added", "More"}),
        ([PLAIN, "CREATE INDEX I ON T(Added)", "DROP TABLE U"], {"Added"}),
        ([PLAIN, "ALTER TABLE U ADD COLUMN X INT64 DEFAULT (1)"], {"Added"}),
        (["ALTER TABLE t ADD COLUMN Added INT64"], {"Added"}),
        (["ALTER TABLE T ADD COLUMN IF NOT EXISTS Added INT64"], set()),
        (["ALTER TABLE IF EXISTS T ADD COLUMN Added INT64"], set()),
        (["ALTER TABLE T ADD COLUMN Added INT64 DEFAULT (1)", PLAIN], set()),
        ([PLAIN, "ALTER TABLE T DROP COLUMN Added"], set()),
        ([PLAIN, "DROP TABLE T", "CREATE TABLE T (Id INT64) PRIMARY KEY (Id)"], set()),
        ([PLAIN, "RENAME TABLE T TO V, U TO T"], set()),
        ([PLAIN, "SOMETHING NEW ON T"], set()),
        ([], set()),
    ],
)
def test_what_a_table_got_follows_from_its_statements(
    statements: Sequence[str], added: set[str]
) -> None:
    changes = [SchemaChange(number, text) for number, text in enumerate(statements, 1)]
    assert find_column_steps(changes, "T", Dialect.GOOGLESQL).added == added


@pytest.mark.parametrize(
    ("statements", "dropped"),
    [
        (["ALTER TABLE t DROP COLUMN Version"], {"version"}),
        (["ALTER TABLE T DROP COLUMN Version", PLAIN], {"version"}),
        (["ALTER TABLE T DROP COLUMN Added", PLAIN], set()),
        ([PLAIN, "ALTER TABLE T DROP COLUMN added"], set()),
        (["ALTER TABLE T DROP COLUMN Version", "ALTER TABLE T ALTER COLUMN X INT64"], set()),
    ],
)
def test_what_a_table_lost_follows_from_its_statements(
    statements: Sequence[str], dropped: set[str]
) -> None:
    changes = [SchemaChange(number, text) for number, text in enumerate(statements, 1)]
    assert find_column_steps(changes, "T", Dialect.GOOGLESQL).dropped == dropped
