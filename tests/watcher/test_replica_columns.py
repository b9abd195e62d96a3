"""A replica has every column that was not excluded by name, and ``verify`` lists the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.replicas import last_cut, open_table, read_rows, replicate, verify_folder
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, make_watchable
from google.cloud.spanner_v1.database import Database

STREAM = "CREATE CHANGE STREAM Changes FOR ALL"
TABLE = (
    "CREATE TABLE Secrets (Id INT64 NOT NULL, Shown STRING(MAX), Kept STRING(MAX) HIDDEN,"
    " Twice INT64 AS (Id * 2) STORED HIDDEN) PRIMARY KEY (Id)"
)
KEYLESS = "CREATE TABLE Keyless (Name STRING(MAX), Kept STRING(MAX) HIDDEN)"


def write(database: Database, *keys: int, text: str = "kept") -> None:
    with database.batch() as batch:
        columns = ("Id", "Shown", "Kept")
        batch.insert_or_update("Secrets", columns, [(key, "shown", text) for key in keys])


@pytest.mark.both_dialects
@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_hidden_columns_are_copied_and_compared(
    create_database: CreateDatabase, tmp_path: Path, capture: str
) -> None:
    database = create_database(TABLE, STREAM)
    make_watchable(database, "Secrets")
    write(database, 1, 2)
    replicate(database, tmp_path, tables=["Secrets"], capture=capture)
    write(database, 2, 3, text="newer")
    replicate(database, tmp_path, tables=["Secrets"], capture=capture)
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.left_out, table.rows) == (True, (), 3)
    kept = {row["Id"]: (row["Kept"], row["Twice"]) for row in read_rows(tmp_path, "Secrets")}
    assert kept == {1: ("kept", 2), 2: ("newer", 4), 3: ("newer", 6)}


def test_a_table_without_a_primary_key_is_copied_with_its_hidden_one(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(KEYLESS, STREAM)
    for _ in range(2):
        with database.batch() as batch:
            batch.insert("Keyless", ("Name", "Kept"), [("same", "row"), ("same", "row")])
        replicate(database, tmp_path, tables=["Keyless"], capture="change-stream")
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.rows, table.left_out) == (True, 4, ())
    assert {"rowid", "Name", "Kept"} < set(
        open_table(tmp_path, "Keyless").schema().to_arrow().names
    )


def test_columns_that_are_excluded_by_name_are_listed(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(TABLE)
    make_watchable(database, "Secrets")
    write(database, 1)
    specs = {"Secrets": {"exclude_columns": ["Kept", "twice"]}}
    replicate(database, tmp_path, tables=["Secrets"], table=specs)
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.left_out) == (True, ("Kept", "Twice"))
    assert last_cut(tmp_path).tables["Secrets"].left_out == ("Kept", "Twice")
    target = ("verify", "--to", f"delta:{tmp_path}", "-d", str(address_of(database)))
    text, machine = run_command(*target, COLUMNS="200"), run_command(*target, "--json")
    assert (text.returncode, machine.returncode) == (0, 0)
    assert "not in the copy: Kept, Twice" in text.stdout
    assert json.loads(machine.stdout)["tables"][0]["left_out"] == ["Kept", "Twice"]
    replicate(database, tmp_path, tables=["Secrets"])
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.left_out) == (True, ()), "a column that comes is loaded"
