"""Each command does its work as a role that has what ``ddl grants`` grants, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

pytestmark = pytest.mark.both_dialects

TABLES = {
    Dialect.GOOGLESQL: (
        "CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(MAX)) PRIMARY KEY (SingerId)",
        "CREATE TABLE Secrets (Id INT64 NOT NULL) PRIMARY KEY (Id)",
    ),
    Dialect.POSTGRESQL: (
        'CREATE TABLE "Singers" ("SingerId" bigint PRIMARY KEY, "Name" text)',
        'CREATE TABLE "Secrets" ("Id" bigint PRIMARY KEY)',
    ),
}
STREAM = {
    Dialect.GOOGLESQL: "CREATE CHANGE STREAM Everything FOR Singers",
    Dialect.POSTGRESQL: 'CREATE CHANGE STREAM "Everything" FOR "Singers"',
}
OK, DENIED = 0, 3
WATCH = ("watch", "-t", "Singers", "--consumer", "c", "--from", "earliest", "--once")
REPLICATE = ("replicate", "-t", "Singers", "--to", "delta:{lake}", "--consumer", "r", "--once")
CASES = {
    "watch": (WATCH,),
    "replicate": (REPLICATE,),
    "verify": (("verify", "--to", "delta:{lake}"),),
    "clear": (("clear", "-t", "Singers"),),
    "status": (("check", "-t", "Singers", "--consumer", "c"), ("status", "--consumer", "c")),
    "control": (("ctl", "pause", "c"), ("ctl", "resume", "c")),
}


@pytest.fixture
def watched(create_database: CreateDatabase, dialect: Dialect) -> Database:
    database = create_database(*TABLES[dialect])
    make_watchable(database, "Singers")
    write(database, 1, 2)
    return database


def write(database: Database, *keys: int) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "Name"), [(key, "x") for key in keys])


def run(database: Database, role: str | None, *arguments: str, lake: Path) -> tuple[int, str]:
    """A command as a role: its exit code and what it printed."""
    address = f"{address_of(database)}" + (f"?database_role={role}" if role else "")
    filled = [each.format(lake=lake) for each in arguments]
    result = run_command(*filled, "-d", address)
    return result.returncode, result.stdout + result.stderr


def grant(database: Database, role: str, *more: str) -> list[str]:
    """The statements that ``ddl grants`` ran."""
    address = str(address_of(database))
    result = run_command("ddl", "grants", "-d", address, "--role", role, *more, "--apply", "--json")
    assert result.returncode == OK, result.stderr
    statements: list[str] = json.loads(result.stdout)["statements"]
    return statements


@pytest.mark.parametrize("purpose", CASES)
def test_a_command_needs_what_is_granted_for_it_and_no_more(
    watched: Database, purpose: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for before in (WATCH, REPLICATE):
        assert run(watched, None, *before, lake=lake)[0] == OK
    write(watched, 2, 3)
    watched.update_ddl(["CREATE ROLE nobody"]).result(30)
    for arguments in CASES[purpose]:
        code, shown = run(watched, "nobody", *arguments, lake=lake)
        assert code != OK, shown
        assert any(each in shown for each in ("nobody", "Singers", "does not exist")), shown

    statements = grant(watched, purpose, "--for", purpose, "-t", "Singers")
    assert not any("Secrets" in each for each in statements)
    assert grant(watched, purpose, "--for", purpose, "-t", "Singers") == []
    for arguments in CASES[purpose]:
        code, shown = run(watched, purpose, *arguments, lake=lake)
        assert code == OK, shown


@pytest.mark.parametrize("purpose", ["watch", "replicate"])
def test_a_change_stream_is_read_by_its_own_privileges(
    watched: Database, dialect: Dialect, purpose: str, tmp_path: Path
) -> None:
    watched.update_ddl([STREAM[dialect]]).result(30)
    grant(watched, "streams", "--for", purpose, "-t", "Singers", "--stream", "Everything")
    command = WATCH if purpose == "watch" else REPLICATE
    arguments = [each for each in command if each not in {"--from", "earliest"}]
    for keys in ((3,), (4,)):
        write(watched, *keys)
        code, shown = run(
            watched, "streams", *arguments, "--stream", "Everything", lake=tmp_path / "lake"
        )
        assert code == OK, shown


def test_the_first_start_needs_no_right_to_change_the_schema(
    watched: Database, tmp_path: Path
) -> None:
    statements = grant(watched, "Watcher", "--for", "watch", "-t", "Singers")
    assert sum(each.startswith("CREATE TABLE") for each in statements) == 8
    code, shown = run(watched, "Watcher", *WATCH, lake=tmp_path)
    assert code == OK, shown
    assert shown.count('"operation"') == 2


def test_a_role_that_is_not_there_is_named(watched: Database, tmp_path: Path) -> None:
    code, shown = run(watched, "typo", *WATCH, lake=tmp_path)
    assert code == DENIED, shown
    assert "Role not found: typo" in shown
    assert "ddl grants" in shown
