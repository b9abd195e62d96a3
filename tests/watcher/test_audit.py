"""What operators do is written where 'ctl audit' reads it: who, when, what, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.consumers import consumers_of, watcher_of, write
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from spanner_schema.model.schema import Dialect
from watcher.cli import app
from watcher.consumers.audit import DONE, Audit, describe_operator, read_audit
from watcher.consumers.positions import TABLE
from watcher.consumers.positions.own_names import audit_table
from watcher.consumers.positions.tables import read_own_columns
from watcher.consumers.states import Command
from watcher.overview.page.service import make_sender

ENTRIES_MAX = 100


def invoke(database: Database, *arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments, "-d", str(address_of(database))])


def read_json(database: Database, *more: str) -> list[dict[str, Any]]:
    result = invoke(database, "ctl", "audit", "--json", *more)
    assert result.exit_code == 0, result.output
    entries: list[dict[str, Any]] = json.loads(result.stdout)
    return entries


@pytest.mark.both_dialects
def test_every_action_has_an_entry_the_newest_first(
    create_database: CreateDatabase, dialect: Dialect, tmp_path: Path
) -> None:
    database = create_database(SINGERS)
    make_watchable(database)
    write(database, 1)
    watcher_of(database, [], consumer="me").run_once()
    for command in ("pause", "resume", "drain", "stop"):
        assert invoke(database, "ctl", command, "me").exit_code == 0
    assert invoke(database, "clear", "-t", "Singers").exit_code == 0
    make_sender(database, TABLE)("me", Command.PAUSE)
    letters = tmp_path / "letters.jsonl"
    letters.write_text('{"table": "Singers", "key": {"SingerId": 1}, "error": "x"}\n')
    replayed = ("replay", str(letters), "--callback", "builtins:len", "--consumer", "me")
    assert invoke(database, *replayed).exit_code == 0
    assert invoke(database, "ctl", "forget", "me").exit_code == 0
    entries = read_json(database)
    assert [(each["action"], each["consumer"], each["result"]) for each in entries] == [
        ("forget", "me", DONE),
        ("replay", "me", f"{DONE}: 1 of 1 changes"),
        ("pause", "me", DONE),
        ("clear", "", f"{DONE}: 1 rows"),
        ("stop", "me", DONE),
        ("drain", "me", DONE),
        ("resume", "me", DONE),
        ("pause", "me", DONE),
    ]
    who = describe_operator()
    assert [each["who"] for each in entries] == [who, who, f"page of {who}", *[who] * 5]
    assert entries[3]["details"] == {"table": "Singers", "method": "partitioned"}
    assert entries[1]["details"] == {"file": str(letters)}
    assert all(each["at"].endswith("Z") for each in entries)
    assert read_json(database, "--consumer", "me", "--limit", "1") == entries[:1]
    assert read_json(database, "--consumer", "other") == []
    shown = invoke(database, "ctl", "audit").stdout
    assert who in shown
    assert "forget" in shown


def test_an_action_that_fails_has_its_error(music: Database) -> None:
    write(music, 1)
    watcher_of(music, [], consumer="me").run_once()
    assert invoke(music, "ctl", "pause", "other").exit_code != 0
    assert invoke(music, "ctl", "forget", "me", "--table", "Albums").exit_code != 0
    assert invoke(music, "ctl", "forget", "other").exit_code != 0
    results = {each["action"]: each["result"] for each in read_json(music)}
    assert results["pause"].startswith("ConsumerNotFoundError: consumer 'other' does not exist")
    assert results["forget"].startswith("ConsumerNotFoundError:")
    assert invoke(music, "ctl", "forget", "me", "--dry-run").exit_code == 0
    assert len(read_json(music)) == 3


def test_a_process_that_dies_leaves_an_entry_that_has_begun(music: Database) -> None:
    consumers_of(music).create()
    block = Audit(music, TABLE, "somebody").record("clear", "", table="Singers")
    block.__enter__()
    (entry,) = read_audit(music, TABLE, None, ENTRIES_MAX)
    assert (entry.who, entry.result) == ("somebody", "begun")


def test_a_command_reaches_its_consumer_without_the_table(
    music: Database, caplog: pytest.LogCaptureFixture
) -> None:
    write(music, 1)
    watcher_of(music, [], consumer="me").run_once()
    audit = Audit(music, TABLE)
    with audit.record("pause", "me"):
        music.update_ddl([f"DROP TABLE {audit_table(TABLE)}"]).result()
        consumers_of(music).ask("me", Command.PAUSE)
    assert consumers_of(music).command("me") is Command.PAUSE
    assert "what was done is not in table" in caplog.text
    assert read_json(music) == []


def test_nothing_is_made_where_nobody_has_watched(music: Database) -> None:
    assert invoke(music, "ctl", "forget", "me").exit_code != 0
    assert read_json(music) == []
    assert not read_own_columns(music, TABLE)


def test_a_replay_needs_both_names_for_its_entry(music: Database, tmp_path: Path) -> None:
    letters = tmp_path / "letters.jsonl"
    letters.write_text("")
    result = invoke(music, "replay", str(letters), "--callback", "builtins:len")
    assert "--database and --consumer go together" in str(result.exception)
