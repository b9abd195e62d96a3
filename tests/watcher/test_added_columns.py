"""Columns that a table gets: a copy gets them without a load where no row has a value in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import (
    CONSUMER,
    CrashError,
    assert_equal,
    crash,
    list_commits,
    make_replicator,
    open_table,
    read_delta,
    read_rows,
    replicate,
)
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, fetch_now
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from watcher.captures import TableRows
from watcher.captures.poll import PollCapture
from watcher.model.window import Window
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.delta.copy import DeltaCopy, open_delta_copies
from watcher.replica.replica_window import CutReport
from watcher.replica.sink import ReplicaSink
from watcher.replica.target import ReplicaTarget
from watcher.spanner.queries import QueryClient
from watcher.spanner.schema_changes import SchemaChange
from watcher.tables.added import find_column_steps
from watcher.tables.discovery import find_watched_table
from watcher.tables.schema_reader import read_epoch

PLAIN = "ALTER TABLE T ADD COLUMN Added STRING(MAX)"


CONSTANT = "ALTER TABLE T ADD COLUMN Added STRING(MAX) DEFAULT ('x')"
TWICE = "ALTER TABLE T ADD COLUMN Twice INT64 AS (Version * 2) STORED"
CHANGES: Mapping[str, Sequence[str]] = {
    "constant": (CONSTANT,),
    "constants": (
        CONSTANT,
        "ALTER TABLE T ADD COLUMN Number INT64 NOT NULL DEFAULT (-7)",
        "ALTER TABLE T ADD COLUMN Yes BOOL DEFAULT (TRUE)",
        "ALTER TABLE T ADD COLUMN Share FLOAT64 DEFAULT (0.5)",
        "ALTER TABLE T ADD COLUMN Price NUMERIC DEFAULT (1.25)",
        PLAIN.replace("Added", "Plain"),
    ),
    "function": ("ALTER TABLE T ADD COLUMN Added TIMESTAMP DEFAULT (CURRENT_TIMESTAMP())",),
    "generated": (TWICE,),
    "both": (CONSTANT, TWICE, PLAIN.replace("Added", "Plain")),
}
LITERALS = (
    "ALTER TABLE T ADD COLUMN Nothing INT64 DEFAULT (NULL)",
    "ALTER TABLE T ADD COLUMN Added DATE DEFAULT (DATE '2026-01-31')",
    "ALTER TABLE T ADD COLUMN Words ARRAY<STRING(MAX)> DEFAULT (['a', 'b'])",
    "ALTER TABLE T ADD COLUMN Quoted STRING(MAX) DEFAULT ('it\\'s')",
    "ALTER TABLE T ADD COLUMN Raw STRING(MAX) DEFAULT (r'a\\n')",
    "ALTER TABLE T ADD COLUMN Small FLOAT32 DEFAULT (0.1)",
)


def write_values(database: Database, *keys: int) -> None:
    """Each with another version."""
    with database.batch() as batch:
        batch.insert_or_update("T", ["Id", "Version"], [(key, 10 - key) for key in keys])


def assert_same_rows(database: Database, folder: Path) -> list[dict[str, Any]]:
    """A strong read and the copy have the same rows, in the columns of the copy: its rows."""
    copied = sorted(read_rows(folder, "T"), key=lambda row: row["Id"])
    names = [name for name in copied[0] if not name.startswith("_")]
    with database.snapshot() as snapshot:
        there = [tuple(row) for row in snapshot.read("T", names, KeySet(all_=True))]
    assert [tuple(row[name] for name in names) for row in copied] == there
    return [dict(row) for row in copied]


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


@pytest.mark.both_dialects
@pytest.mark.parametrize("capture", ["poll", "change-stream"])
@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES.keys())
def test_new_columns_with_values_need_no_load(
    create_database: CreateDatabase,
    tmp_path: Path,
    statements: Sequence[str],
    capture: str,
    own_format: str,
) -> None:
    """Rows that were there, rows that were written in the window before the statements and after
    them, and rows of later windows have Spanner's values."""
    database = create_database(*watchable_ddl("T"), STREAM_DDL)
    follow_new_columns(database, tmp_path, statements, capture)


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_what_spanner_makes_of_other_literals_is_read(
    create_database: CreateDatabase, tmp_path: Path, capture: str, own_format: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM_DDL)
    follow_new_columns(database, tmp_path, LITERALS, capture)


def follow_new_columns(
    database: Database, folder: Path, statements: Sequence[str], capture: str
) -> None:
    """Replicates before and after a change of columns, with writes all around it."""
    write_values(database, *range(40))
    assert step(database, folder, capture=capture) == ["T"]
    write_values(database, *range(0, 40, 7))
    change_schema(database, *statements)
    write_values(database, 3, 7, 50)
    assert step(database, folder, capture=capture) == []
    assert_same_rows(database, folder)
    write_values(database, 1, 50, 60)
    assert step(database, folder, capture=capture) == []
    assert_same_rows(database, folder)


@pytest.mark.parametrize("merge", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("partitions", [[], ["Version"]])
def test_values_are_written_into_any_files(
    database: Database, tmp_path: Path, merge: str, partitions: list[str]
) -> None:
    """Of partitions, with deletion vectors, in both ways of merging; other readers see the same."""
    replica: dict[str, Any] = {"to": f"delta:{tmp_path}", "merge": merge}
    if partitions:
        replica["layout"] = {"T": {"partition_by": partitions}}
    write_table(database, *range(30), Version=1)
    step(database, tmp_path, replica=replica)
    write_table(database, *range(0, 30, 4), Version=2)
    step(database, tmp_path, replica=replica)
    change_schema(database, *CHANGES["both"])
    assert step(database, tmp_path, replica=replica) == []
    write_table(database, 5, Version=1, Added="y")
    assert step(database, tmp_path, replica=replica) == []
    rows = assert_same_rows(database, tmp_path)
    table = pl.read_delta(str(tmp_path / "T")).to_arrow()
    for there in (table, read_delta(open_table(tmp_path, "T"))):
        assert sorted(
            ((row["Id"], row["Added"], row["Twice"], row["Plain"]) for row in there.to_pylist()),
        ) == [(row["Id"], row["Added"], row["Twice"], row["Plain"]) for row in rows]


def test_values_of_a_later_time_than_the_window_make_no_exact_cut(
    database: Database, tmp_path: Path
) -> None:
    """After a crash behind the values, a restart may choose an earlier end."""
    change_schema(database, "ALTER TABLE T ADD COLUMN Other INT64")
    write_table(database, 1, 2, Version=1, Other=1)
    reports: list[CutReport] = []
    sink = make_sink(database, tmp_path, reports)
    ends = [fetch_now(database)]
    hand_over(sink, database, Window(ends[0] - 1, ends[0]))
    change_schema(database, "ALTER TABLE T ADD COLUMN Twice INT64 AS (Other * 2) STORED")
    ends.append(fetch_now(database))
    write_table(database, 1, Version=1, Other=5)
    ends.append(fetch_now(database))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaCopy, "merge", crash)
        with pytest.raises(CrashError):
            hand_over(sink, database, Window(ends[0], ends[2]))
    restarted = make_sink(database, tmp_path, reports)
    hand_over(restarted, database, Window(ends[0], ends[1]))
    hand_over(restarted, database, Window(ends[1], ends[2]))
    assert [report.cut.exact for report in reports] == [True, False, True]
    assert "rows up to here were read at" in str(reports[1].cut.explain())
    assert not any(report.loaded for report in reports[1:])
    assert_equal(database, tmp_path, reports[2].cut)


def make_sink(database: Database, folder: Path, reports: list[CutReport]) -> ReplicaSink:
    target = ReplicaTarget(
        open_delta_copies(str(folder), CONSUMER), Manifest(str(folder)), 3_600.0, DELTA
    )
    return ReplicaSink(database.name, CONSUMER, target, lambda: None, reports.append)


def hand_over(sink: ReplicaSink, database: Database, window: Window) -> None:
    """Delivers a window, in the schema of its end."""
    capture = capture_at(database, window.end)
    sink.begin_window(window.end, {"T": window.start}, {"T": capture})
    for part in capture.plan(window):
        for rows in capture.read(part):
            assert isinstance(rows, TableRows)
            sink.write(rows)
    sink.flush()


def capture_at(database: Database, at: int) -> PollCapture:
    """The capture of the table in the schema of a timestamp."""
    queries = QueryClient(address_of(database))
    schema = read_epoch(queries.stream, at).schema
    return PollCapture(queries, find_watched_table(schema, "T", queries.address.path), ())


def test_a_table_without_permission_to_list_statements_is_loaded(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(database, *range(6), Version=1)
    step(database, tmp_path)
    change_schema(database, CONSTANT)
    monkeypatch.setattr("watcher.tables.added.read_schema_changes", lambda *_: [])
    assert step(database, tmp_path) == ["T"]


def test_values_that_are_too_many_are_loaded(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan holds so much at most; a constant needs none."""
    monkeypatch.setattr("watcher.replica.new_columns.SCAN_BYTES_MAX", 100)
    write_table(database, *range(60), Version=1)
    step(database, tmp_path)
    change_schema(database, CONSTANT)
    assert step(database, tmp_path) == []
    change_schema(database, TWICE)
    (report,) = replicate(database, tmp_path, tables=["T"])
    assert list(report.loaded) == ["T"]
    assert_equal(database, tmp_path, report.cut)


@pytest.mark.parametrize(
    "statements",
    [
        [
            "ALTER TABLE T ADD COLUMN Added STRING(MAX) DEFAULT ('x')",
            "ALTER TABLE T ALTER COLUMN Added DROP DEFAULT",
        ],
        [PLAIN, "ALTER TABLE T DROP COLUMN Version"],
    ],
)
def test_other_changes_are_loaded(
    create_database: CreateDatabase, tmp_path: Path, statements: Sequence[str]
) -> None:
    """Also where nothing at the end of the window shows them."""
    database = create_database(*watchable_ddl("T"))
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
    assert find_column_steps(changes, "T", Dialect.GOOGLESQL).added.keys() == added


@pytest.mark.parametrize(
    ("statements", "dropped"),
    [
        (["ALTER TABLE t DROP COLUMN Version"], {"version"}),
        (["ALTER TABLE T DROP COLUMN Version", PLAIN], {"version"}),
        (["ALTER TABLE T DROP COLUMN Added", PLAIN], set()),
        ([PLAIN, "ALTER TABLE T DROP COLUMN added"], {"added"}),
        ([PLAIN, "ALTER TABLE T DROP COLUMN Added", PLAIN], set()),
        (["ALTER TABLE T DROP COLUMN Version", "ALTER TABLE T ALTER COLUMN X INT64"], set()),
    ],
)
def test_what_a_table_lost_follows_from_its_statements(
    statements: Sequence[str], dropped: set[str]
) -> None:
    changes = [SchemaChange(number, text) for number, text in enumerate(statements, 1)]
    assert find_column_steps(changes, "T", Dialect.GOOGLESQL).dropped == dropped
