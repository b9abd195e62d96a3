"""'ctl move': a consumer goes on under another name or in another database, never under both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.consumers import (
    clear,
    consumers_of,
    expire_lease,
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
from watcher.consumers import moving
from watcher.consumers.leases import Lease
from watcher.consumers.moving import End, move_consumer
from watcher.consumers.positions import TABLE, SpannerPositions
from watcher.consumers.positions.fences import Location
from watcher.consumers.positions.tables import create_own_tables
from watcher.consumers.states import Command, ConsumerProgress, State
from watcher.model.errors import (
    ClearedError,
    ConsumerMovedError,
    LeaseHeldError,
    LeaseLostError,
    WatcherError,
)
from watcher.process.failpoints import VARIABLE

KILLED = -9
BEFORE, AFTER = "after-arrival-before-move", "after-move-before-opening"


def move(database: Database, old: str, new: str, *more: str) -> Any:
    arguments = ["ctl", "move", old, new, "-d", str(address_of(database)), *more]
    return CliRunner().invoke(app, arguments)


def end_of(database: Database, consumer: str) -> End:
    return End(database, Location(consumer, str(address_of(database)), TABLE))


def deliver(database: Database, consumer: str) -> list[Change]:
    seen: list[Change] = []
    watcher_of(database, seen, consumer=consumer).run_once()
    return seen


def share(database: Database, consumer: str, rows: int) -> list[Change]:
    """What a consumer of two parts delivers until it has delivered so many rows."""
    collector = ChangeCollector()
    watcher = Watcher(**options(database, consumer=consumer, parts=2))
    watcher.on_change(collector)
    with run_without_error(watcher):
        collector.wait(rows)
    return collector.changes


def can_go_on(database: Database, consumer: str) -> bool:
    """Whether an instance may take the name of a consumer that has a position."""
    consumers = consumers_of(database)
    try:
        lease = consumers.acquire(consumer)
    except ConsumerMovedError:
        return False
    consumers.release(lease, State.STOPPED, ConsumerProgress())
    return bool(SpannerPositions(database).load_all(consumer))


@pytest.fixture
def elsewhere(create_database: CreateDatabase) -> Database:
    database = create_database(SINGERS)
    make_watchable(database)
    return database


@pytest.mark.both_dialects
def test_a_consumer_goes_on_under_its_new_name_and_the_old_one_is_refused(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = create_database(SINGERS)
    make_watchable(database)
    write(database, 1)
    assert len(deliver(database, "old")) == 1
    consumers_of(database).ask("old", Command.PAUSE)
    consumers_of(database).ask("old", Command.RESUME)
    result = move(database, "old", "new", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["moved"] == ["new"]
    write(database, 2)
    assert names_by_key(deliver(database, "new")).keys() == {2}
    with pytest.raises(ConsumerMovedError, match="consumer 'old' was moved to consumer 'new' of"):
        deliver(database, "old")
    assert [each.consumer for each in SpannerPositions(database).list_all()] == ["new"]
    status = consumers_of(database).status("old")
    assert status is not None
    assert status.ended
    assert "moved to" in (status.reason or "")
    for arguments in (("pause", "old"), ("forget", "old")):
        refused = CliRunner().invoke(app, ["ctl", *arguments, "-d", str(address_of(database))])
        assert refused.exit_code != 0
        assert "was moved to" in str(refused.exception)


def test_an_instance_that_was_frozen_while_its_consumer_moved_is_refused(music: Database) -> None:
    write(music, 1)
    deliver(music, "old")
    consumers = consumers_of(music)
    lease: Lease = consumers.acquire("old")
    with pytest.raises(LeaseHeldError, match="an instance runs as consumer 'old'"):
        move_consumer(end_of(music, "old"), end_of(music, "new"))
    expire_lease(music, "old")
    move_consumer(end_of(music, "old"), end_of(music, "new"))
    with pytest.raises(LeaseLostError):
        consumers.renew(lease, State.RUNNING, ConsumerProgress())
    with pytest.raises(LeaseLostError):
        SpannerPositions(music).plan_ends("old", {"Singers": None}, lease.owner)


def test_a_consumer_can_move_back(music: Database) -> None:
    write(music, 1)
    deliver(music, "old")
    for names in (("old", "new"), ("new", "old")):
        result = move(music, *names)
        assert result.exit_code == 0, result.output
    write(music, 2)
    assert names_by_key(deliver(music, "old")).keys() == {2}
    assert not can_go_on(music, "new")


def test_a_shared_consumer_moves_with_its_parts(music: Database) -> None:
    write(music, 1, 2, 3)
    assert len(share(music, "old", 3)) == 3
    result = move(music, "old", "new", "--json")
    assert json.loads(result.stdout)["moved"] == ["new/1-of-2", "new/2-of-2"]
    write(music, 4, 5)
    assert names_by_key(share(music, "new", 2)).keys() == {4, 5}
    with pytest.raises(WatcherError, match=r"was moved|not divided"):
        watcher_of(music, [], consumer="old", parts=2).run()
    with pytest.raises(ConsumerMovedError):
        deliver(music, "old")


def test_to_another_database(music: Database, elsewhere: Database) -> None:
    write(music, 1)
    deliver(music, "me")
    before = SpannerPositions(music).load_all("me")
    to = ("--to-database", str(address_of(elsewhere)))
    result = move(music, "me", "me", *to)
    assert result.exit_code == 0, result.output
    assert SpannerPositions(elsewhere).load_all("me") == before
    assert can_go_on(elsewhere, "me")
    assert not can_go_on(music, "me")
    again = move(music, "me", "me", *to)
    assert again.exit_code == 0, again.output
    other = move(music, "me", "other")
    assert "was moved to" in str(other.exception)


@pytest.mark.parametrize("parts", [None, 2])
@pytest.mark.parametrize("place", [BEFORE, AFTER])
def test_a_kill_leaves_one_that_can_go_on(
    music: Database, elsewhere: Database, place: str, parts: int | None
) -> None:
    write(music, 1)
    if parts is None:
        deliver(music, "old")
    else:
        share(music, "old", 1)
    names = ("old", "new") if parts is None else ("old/1-of-2", "new/1-of-2")
    databases = ["-d", str(address_of(music)), "--to-database", str(address_of(elsewhere))]
    killed = run_command("ctl", "move", "old", "new", *databases, **{VARIABLE: place})
    assert killed.returncode == KILLED, killed.stderr
    if place == BEFORE:
        assert not can_go_on(elsewhere, names[1])
        assert can_go_on(music, names[0])
    else:
        with pytest.raises(WatcherError, match=r"was moved|not divided"):
            watcher_of(music, [], consumer="old", parts=parts).run()
        assert can_go_on(elsewhere, names[1])
    result = move(music, "old", "new", "--to-database", str(address_of(elsewhere)))
    assert result.exit_code == 0, result.output
    assert can_go_on(elsewhere, names[1])


def test_a_consumer_that_runs_after_a_move_was_begun_keeps_what_it_delivers(
    music: Database, elsewhere: Database
) -> None:
    write(music, 1)
    deliver(music, "me")
    databases = ["-d", str(address_of(music)), "--to-database", str(address_of(elsewhere))]
    run_command("ctl", "move", "me", "me", *databases, **{VARIABLE: BEFORE})
    with pytest.raises(ConsumerMovedError, match="is being moved here from consumer 'me' of"):
        consumers_of(elsewhere).acquire("me")
    write(music, 2)
    deliver(music, "me")
    before = SpannerPositions(music).load_all("me")
    assert move(music, "me", "me", *databases[2:]).exit_code == 0
    assert SpannerPositions(elsewhere).load_all("me") == before


def test_a_preview_writes_nothing_and_finds_what_is_wrong(
    music: Database, elsewhere: Database
) -> None:
    write(music, 1)
    deliver(music, "me")
    deliver(music, "other")
    before = own_table_rows(music)
    to = ("--to-database", str(address_of(elsewhere)))
    for more in ((), to):
        assert "would be" in move(music, "me", "new", *more, "--dry-run").output
    for new, more, words in (
        ("other", (), "there is a consumer 'other' of"),
        ("me", (), "is there already"),
        ("new", ("--positions-table", "Elsewhere"), "consumer 'me' does not exist"),
    ):
        for preview in ((), ("--dry-run",)):
            result = move(music, "me", new, *more, *preview)
            assert result.exit_code != 0
            assert words in str(result.exception)
    assert own_table_rows(music) == before


def clear_there(database: Database) -> None:
    """A consumer of that database has delivered and cleared."""
    write(database, 9)
    deliver(database, "there")
    clear(database)


def test_rows_that_were_cleared_are_named_and_nothing_moves(
    music: Database, elsewhere: Database
) -> None:
    write(music, 1)
    deliver(music, "me")
    clear_there(elsewhere)
    before = own_table_rows(music), own_table_rows(elsewhere)
    to = ("--to-database", str(address_of(elsewhere)))
    for more in ((), ("--dry-run",)):
        refused = move(music, "me", "new", *to, *more).exception
        assert isinstance(refused, ClearedError)
        assert "'me' has not delivered may have been cleared in" in str(refused)
        assert "(Singers up to" in str(refused)
    assert (own_table_rows(music), own_table_rows(elsewhere)) == before
    assert can_go_on(music, "me")


def test_within_a_database_too(music: Database, tmp_path: Path) -> None:
    """A position behind what was cleared is one that was restored at the price of rows."""
    write(music, 1)
    deliver(music, "me")
    file, database = str(tmp_path / "me.json"), ("-d", str(address_of(music)))
    backup = ["ctl", "backup", file, *database, "--consumer", "me"]
    assert CliRunner().invoke(app, backup).exit_code == 0
    write(music, 2)
    deliver(music, "me")
    clear(music)
    restored = ["ctl", "restore", file, *database, "--replace", "--accept-loss"]
    assert CliRunner().invoke(app, restored).exit_code == 0
    for more in ((), ("--dry-run",)):
        assert isinstance(move(music, "me", "new", *more).exception, ClearedError)
    assert can_go_on(music, "me")


@pytest.mark.parametrize("known", [True, False])
def test_what_is_cleared_while_a_consumer_moves_is_seen(
    music: Database, elsewhere: Database, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the other database and the arrival there, where somebody has watched
    before or not."""
    write(music, 1)
    deliver(music, "me")
    if known:
        deliver(elsewhere, "there")

    def create_and_clear(database: Database, table: str) -> None:
        create_own_tables(database, table)
        if database.name == elsewhere.name:
            clear_there(elsewhere)

    monkeypatch.setattr(moving, "create_own_tables", create_and_clear)
    refused = move(music, "me", "me", "--to-database", str(address_of(elsewhere))).exception
    assert isinstance(refused, ClearedError)
    assert can_go_on(music, "me")
    assert not SpannerPositions(elsewhere).load_all("me")
