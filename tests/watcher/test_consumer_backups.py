"""'ctl backup' and 'ctl restore': what a consumer is, as a file, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.consumers import (
    clear,
    consumers_of,
    names_by_key,
    options,
    own_table_rows,
    watcher_of,
    write,
)
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from spanner_schema.model.schema import Dialect
from watcher import Change, Watcher
from watcher.cli import app
from watcher.consumers.backups import compute_checksum
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.states import Command
from watcher.model.errors import LeaseHeldError


def run(database: Database, command: str, file: Path, *more: str) -> Any:
    arguments = ["ctl", command, str(file), "-d", str(address_of(database)), *more]
    return CliRunner().invoke(app, arguments)


def back_up(database: Database, file: Path, consumer: str = "me") -> None:
    result = run(database, "backup", file, "--consumer", consumer)
    assert result.exit_code == 0, result.output


def deliver(database: Database, **more: object) -> list[Change]:
    seen: list[Change] = []
    watcher_of(database, seen, consumer="me", **more).run_once()
    return seen


def share(database: Database, rows: int) -> list[Change]:
    """What a consumer of two parts delivers until it has delivered so many rows."""
    collector = ChangeCollector()
    watcher = Watcher(**options(database, consumer="me", parts=2))
    watcher.on_change(collector)
    with run_without_error(watcher):
        collector.wait(rows)
    return collector.changes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "me.json"


@pytest.mark.both_dialects
def test_a_consumer_comes_back_as_it_was(
    create_database: CreateDatabase, dialect: Dialect, file: Path
) -> None:
    database = create_database(SINGERS)
    make_watchable(database)
    write(database, 1)
    deliver(database)
    consumers_of(database).ask("me", Command.PAUSE)
    before = SpannerPositions(database).load_all("me")
    selection = SpannerPositions(database).load_selection("me")
    back_up(database, file)
    consumers_of(database).ask("me", Command.RESUME)
    write(database, 2)
    deliver(database)
    CliRunner().invoke(app, ["ctl", "forget", "me", "-d", str(address_of(database))])
    result = run(database, "restore", file, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["lost_up_to"] == {}
    assert SpannerPositions(database).load_all("me") == before
    assert SpannerPositions(database).load_selection("me") == selection
    assert consumers_of(database).command("me") is Command.PAUSE
    consumers_of(database).ask("me", Command.RESUME)
    assert names_by_key(deliver(database)).keys() == {2}


def test_the_first_window_reaches_as_far_as_rows_were_delivered(
    music: Database, file: Path
) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    write(music, 2)
    deliver(music)
    assert run(music, "restore", file, "--replace").exit_code == 0
    positions = SpannerPositions(music)
    (reached,) = positions.load_planned_ends("me").values()
    write(music, 3)
    assert reached > positions.load_all("me")["Singers"]
    assert names_by_key(deliver(music, max_rows=1)).keys() >= {2}


def test_a_shared_consumer_comes_back_with_its_parts(music: Database, file: Path) -> None:
    write(music, 1, 2, 3)
    share(music, 3)
    back_up(music, file)
    before = own_table_rows(music)["SpannerWatcherDivisions"]
    write(music, 4)
    share(music, 1)
    result = run(music, "restore", file, "--replace")
    assert result.exit_code == 0, result.output
    after = own_table_rows(music)["SpannerWatcherDivisions"]
    assert [row[:3] for row in after] == [row[:3] for row in before]
    assert names_by_key(share(music, 1)).keys() == {4}


def test_what_may_not_be_restored_changes_nothing(
    music: Database, create_database: CreateDatabase, file: Path
) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    before = SpannerPositions(music).load_all("me")
    lease = consumers_of(music).acquire("me")
    assert "an instance runs" in str(run(music, "restore", file, "--replace").exception)
    back_up(music, file)  # of one that runs
    assert lease.valid
    other = create_database(SINGERS)
    assert "--other-database" in str(run(other, "restore", file).exception)
    assert "does not exist" in str(run(music, "backup", file, "--consumer", "no").exception)
    assert SpannerPositions(music).load_all("me") == before
    assert run(other, "restore", file, "--other-database").exit_code == 0
    assert "is there" in str(run(other, "restore", file, "--other-database").exception)


def test_a_consumer_is_not_backed_up_in_the_middle_of_a_backfill(
    music: Database, file: Path
) -> None:
    """It reads rows as of its beginning, which Spanner keeps for the retention period alone."""
    write(music, 1, 2, 3, 4)
    backfill: dict[str, Any] = {"start": "latest", "backfill": ["Singers"], "backfill_rows": 2}

    def fail_later(change: Change) -> None:
        if change.key["SingerId"] == 3:
            raise ValueError("on purpose")

    delivery = {"retries": 0}
    watcher = Watcher(**options(music, consumer="me", delivery=delivery, **backfill))
    watcher.on_change(fail_later)
    with pytest.raises(Exception, match="the callback failed"):
        watcher.run_once()
    refused = run(music, "backup", file, "--consumer", "me").exception
    assert isinstance(refused, LeaseHeldError)
    assert "a backfill of consumer 'me' is not done; start it as before" in str(refused)
    assert not file.exists()
    deliver(music, **backfill)
    back_up(music, file)


def test_a_consumer_that_was_moved_away_does_not_come_back(music: Database, file: Path) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    CliRunner().invoke(app, ["ctl", "move", "me", "new", "-d", str(address_of(music))])
    for more in ((), ("--replace",)):
        assert "was moved to" in str(run(music, "restore", file, *more).exception)


def test_rows_that_were_cleared_since_are_named_before_they_are_lost(
    music: Database, file: Path
) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    write(music, 2)
    deliver(music)
    clear(music)
    for preview in ((), ("--dry-run",)):
        refused = run(music, "restore", file, "--replace", *preview)
        assert "may have been cleared since (Singers up to" in str(refused.exception)
    result = run(music, "restore", file, "--replace", "--accept-loss", "--json")
    assert list(json.loads(result.stdout)["lost_up_to"]) == ["Singers"]


def test_a_preview_of_a_restore_writes_nothing(music: Database, file: Path) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    before = own_table_rows(music)
    result = run(music, "restore", file, "--replace", "--dry-run")
    assert "1 positions would be as they were at" in result.output
    assert own_table_rows(music) == before


def edit(stored: dict[str, Any]) -> None:
    stored["content"]["consumer"] = "other"


def grow_up(stored: dict[str, Any]) -> None:
    stored["version"] = 2


def take_out(stored: dict[str, Any]) -> None:
    del stored["format"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edit, "its checksum is not that of its content"),
        (grow_up, "of version 2, and this release reads"),
        (take_out, "is not a backup of a consumer"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    music: Database, file: Path, change: Any, words: str
) -> None:
    write(music, 1)
    deliver(music)
    back_up(music, file)
    stored = json.loads(file.read_text())
    assert stored["checksum"] == compute_checksum(stored["content"])
    change(stored)
    file.write_text(json.dumps(stored))
    result = run(music, "restore", file)
    assert words in str(result.exception)
    file.write_text("{")
    assert "is not a backup" in str(run(music, "restore", file).exception)
