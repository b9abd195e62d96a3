"""Replicas in Iceberg without Spark, the whole way: what others read is what Spanner has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fixtures import replicas
from fixtures.commands import run_command
from fixtures.iceberg_histories import open_table, read_by_others
from fixtures.replicas import (
    assert_equal,
    list_kinds,
    make_replicator,
    read_rows,
    replicate,
    verify_folder,
)
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.replica.formats import ICEBERG
from watcher.replica.reading import as_of
from watcher.replica.replica_window import CutReport
from watcher.spanner.timestamps import format_timestamp

PAIRS = (
    "CREATE TABLE Pairs (A STRING(MAX), B FLOAT64, V INT64, T ARRAY<STRING(MAX)>)"
    " PRIMARY KEY (A, B DESC)"
)
NAMED = ("CREATE SCHEMA app", "CREATE TABLE app.Files (Id INT64, V INT64) PRIMARY KEY (Id)")
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"
FOLLOWED = {"capture": "change-stream", "tables": ["*"]}
NAN = float("nan")
NOT_REPAIRABLE = 6


@pytest.fixture(autouse=True)
def iceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "FORMAT", ICEBERG)


def write_pairs(database: Database, *rows: Sequence[Any]) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Pairs", ("A", "B", "V", "T"), rows)


def delete_pairs(database: Database, *keys: Sequence[Any]) -> None:
    with database.batch() as batch:
        batch.delete("Pairs", KeySet(keys=[list(key) for key in keys]))


def read_pairs(folder: Path) -> list[dict[Any, Any]]:
    """Values by key, by everyone who reads it; every key has one row."""
    read = [rows.to_pylist() for rows in (*read_by_others(folder, "Pairs"),)]
    read.append(list(read_rows(folder, "Pairs")))
    found = [{(row["A"], repr(row["B"])): row["V"] for row in rows} for rows in read]
    assert [len(each) for each in found] == [len(rows) for rows in read]
    return found


def test_keys_of_several_columns_with_null_move_go_and_come_back(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(PAIRS, STREAM)
    write_pairs(
        database,
        (None, None, 1, ["x", None]),
        (None, 1.5, 2, []),
        ("a", NAN, 3, None),
        ("b", 0.0, 4, None),
    )
    (first,) = replicate(database, tmp_path, **FOLLOWED)
    assert first.loaded == {"Pairs": 4}
    write_pairs(database, (None, None, 10, None), ("b", -0.0, 40, None), ("c", 1.0, 5, ["y"]))
    delete_pairs(database, (None, 1.5), ("a", NAN))
    replicate(database, tmp_path, **FOLLOWED)
    expected = {(None, "None"): 10, ("b", "0.0"): 40, ("c", "1.0"): 5}
    for found in read_pairs(tmp_path):
        assert {(a, b.removeprefix("-")): v for (a, b), v in found.items()} == expected
    # A row moves to another key, and one that went comes back.
    delete_pairs(database, ("c", 1.0))
    write_pairs(database, ("c", 2.0, 5, ["y"]), ("a", NAN, 33, None))
    (last,) = replicate(database, tmp_path, **FOLLOWED)
    assert last.cut.exact
    assert list_kinds(tmp_path, "Pairs") == ["merge", "merge", "load"]
    assert len(read_pairs(tmp_path)[0]) == 4
    assert_equal(database, tmp_path)
    assert_equal(database, tmp_path, first.cut)
    before = as_of(f"iceberg:{tmp_path}", format_timestamp(first.cut.end)).read("Pairs").to_pylist()
    assert sorted(row["V"] for row in before) == [1, 2, 3, 4]


def test_every_type_of_column_is_copied(everything: Database, tmp_path: Path) -> None:
    replicate(everything, tmp_path, tables=["*"])
    assert_equal(everything, tmp_path)


def test_a_load_in_chunks_takes_the_changes_between_them(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(PAIRS, STREAM)
    write_pairs(database, *(("k", float(n), n, None) for n in range(20)))
    replica = {"to": f"iceberg:{tmp_path}", "load_rows": 6}
    cuts: list[CutReport] = []

    def change(report: CutReport) -> None:
        """Between two chunks: below the last key, and above it."""
        cuts.append(report)
        if len(cuts) < 4:
            number = len(cuts)
            write_pairs(database, ("k", 19.0, 100 + number, None), ("k", 0.0, -number, None))
            delete_pairs(database, ("k", 10.0 + number))

    make_replicator(database, tmp_path, change, replica=replica, **FOLLOWED).run_once()
    replicate(database, tmp_path, replica=replica, **FOLLOWED)
    kinds = list_kinds(tmp_path, "Pairs")
    assert kinds.count("load") == 1
    assert kinds.count("chunk") == 3
    assert_equal(database, tmp_path)
    for found in read_pairs(tmp_path):
        assert found[("k", "19.0")] == 103
        assert ("k", "12.0") not in found


def test_a_name_that_iceberg_takes_for_itself_and_one_of_a_schema(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    files = "CREATE TABLE Files (Id INT64, V INT64) PRIMARY KEY (Id)"
    database = create_database(*NAMED, files, STREAM)
    for table in ("app.Files", "Files"):
        with database.batch() as batch:
            batch.insert(table, ("Id", "V"), [(1, 1)])
    replicate(database, tmp_path, **FOLLOWED)
    with database.batch() as batch:
        batch.update("app.Files", ("Id", "V"), [(1, 2)])
    replicate(database, tmp_path, **FOLLOWED)
    assert_equal(database, tmp_path)
    for name, value in (("app.Files", 2), ("Files_", 1)):
        assert open_table(tmp_path, name).scan().to_arrow()["V"].to_pylist() == [value]


def test_rows_that_differ_are_repaired(create_database: CreateDatabase, tmp_path: Path) -> None:
    """Somebody adds a row a second time, and removes another; the replicator builds on that."""
    database = create_database(PAIRS, STREAM)
    write_pairs(database, *(("k", float(n), n, None) for n in range(50)))
    replicate(database, tmp_path, **FOLLOWED)
    table = open_table(tmp_path, "Pairs")
    table.append(table.scan(row_filter="V == 3").to_arrow())
    table.delete("V == 7")
    write_pairs(database, ("k", 1.0, 100, None))
    (report,) = replicate(database, tmp_path, **FOLLOWED)
    assert "by somebody else" in report.cut.explain()
    source = ("--to", f"iceberg:{tmp_path}", "-d", str(address_of(database)))
    done = run_command("verify", *source, "--repair")
    assert done.returncode == 0, done.stderr
    assert "1 missing, 1 extra" in done.stdout
    assert run_command("verify", *source).returncode == 0
    for found in read_pairs(tmp_path):
        assert len(found) == 50
        assert (found[("k", "1.0")], found[("k", "7.0")]) == (100, 7)


def test_deletes_of_a_polled_table_are_found_by_comparing_keys(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(30), "first")
    replica = {"to": f"iceberg:{tmp_path}", "deletes": "compare"}
    replicate(singers, tmp_path, replica=replica)
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[3], [29]]))
    replicate(singers, tmp_path, replica=replica)
    assert_equal(singers, tmp_path)
    for rows in read_by_others(tmp_path, "Singers"):
        assert sorted(rows["SingerId"].to_pylist()) == [n for n in range(30) if n not in (3, 29)]


def test_what_others_put_after_the_newest_window_is_seen_and_not_repaired(
    singers: Database, tmp_path: Path
) -> None:
    """It is in no version of the copy, but readers of the table see it."""
    write_singers(singers, range(6), "first")
    replicate(singers, tmp_path)
    write_singers(singers, [1], "second")
    replicate(singers, tmp_path)
    table = open_table(tmp_path, "Singers")
    table.append(table.scan().to_arrow().slice(0, 2))
    report = verify_folder(singers, tmp_path)
    assert (report.equal, report.untouched) == (True, False)
    (outside,) = report.tables[0].outside
    assert "append by somebody else" in outside
    repairing = (
        "verify",
        "--repair",
        "--to",
        f"iceberg:{tmp_path}",
        "-d",
        str(address_of(singers)),
    )
    refused = run_command(*repairing)
    assert refused.returncode == NOT_REPAIRABLE, refused.stdout
    assert "append by somebody else" in refused.stderr
    load, merge, _ = (each.snapshot_id for each in table.metadata.snapshots)
    roll_back(tmp_path, merge)
    assert verify_folder(singers, tmp_path).untouched
    with open_table(tmp_path, "Singers").update_schema() as change:
        change.rename_column("LastName", "Name")
    (outside,) = verify_folder(singers, tmp_path).tables[0].outside
    assert "a change of columns by somebody else" in outside
    with open_table(tmp_path, "Singers").update_schema() as change:
        change.rename_column("Name", "LastName")
    roll_back(tmp_path, load)
    report = verify_folder(singers, tmp_path)
    assert (report.equal, report.untouched) == (True, False)
    assert run_command(*repairing).returncode == 0
    assert verify_folder(singers, tmp_path).untouched
    assert_equal(singers, tmp_path)


def roll_back(folder: Path, snapshot: int) -> None:
    with open_table(folder, "Singers").manage_snapshots() as change:
        change.rollback_to_snapshot(snapshot)
