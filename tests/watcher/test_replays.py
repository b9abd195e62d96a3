"""Dead letters that a running consumer delivers again, where its changes go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fixtures.any_change import changes as any_changes
from fixtures.browser import wait_until
from fixtures.commands import run_command
from fixtures.consumers import consumers_of, error_kinds, options, write
from fixtures.queue_records import account_changes
from fixtures.singers import address_of
from fixtures.watcher_threads import run_in_thread
from google.cloud.spanner_v1.database import Database
from hypothesis import given

from watcher import Change, Watcher
from watcher.consumers.audit import read_audit
from watcher.consumers.positions import TABLE, consumers_table
from watcher.envelopes import Known
from watcher.model.errors import ConfigurationError, SinkUnavailableError
from watcher.sinks.dead_letters import (
    append_dead_letter,
    count_dead_letters,
    describe_change,
    extract_change,
    extract_record,
    read_dead_letters,
)
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.sinks.replays import replay_dead_letters
from watcher.sinks.retries import DeliveryPolicy, RetryingSink

OLD = {"id": "old", "table": "Singers", "key": {"SingerId": 9}, "error": "of release 1.0"}


def ids(path: Path) -> list[object]:
    return [letter["id"] for letter in read_dead_letters(path)]


def comparable(value: object) -> object:
    """NaN equals NaN, a list a tuple, and trailing zeros do not count."""
    if isinstance(value, Mapping):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return repr(value.normalize() if isinstance(value, Decimal) else value)


@given(case=any_changes())
def test_any_change_comes_back_from_its_letter(case: tuple[Change, Known]) -> None:
    change, _ = case
    record = {
        "id": change.id,
        "table": change.table,
        "operation": change.operation,
        "shard": change.shard_id,
        "change": describe_change(change),
    }
    back = extract_change(json.loads(json.dumps(record)))
    assert back is not None
    assert comparable(astuple(back)) == comparable(astuple(change))


class Picky:
    """A ``ChangeSink`` that refuses some changes, one by one or, as a database does, with all."""

    def __init__(self, refused: set[str], rolled_back: bool = False) -> None:
        self.refused, self.rolled_back, self.down = refused, rolled_back, False
        self.taken: list[str] = []
        self.pending: list[Change] = []

    def write_change(self, change: Change) -> None:
        self.pending.append(change)

    def flush(self) -> None:
        changes, self.pending = self.pending, []
        if self.down:
            raise SinkUnavailableError("down")
        refusals = [Refusal(each, "no") for each in changes if each.id in self.refused]
        if not (refusals and self.rolled_back):
            self.taken += [each.id for each in changes if each.id not in self.refused]
        if refusals:
            raise RefusedChangesError("picky", refusals, self.rolled_back)

    def resolved(self, micros: int) -> None: ...

    def discard(self) -> None:
        self.pending = []


def write_letters(path: Path, count: int = 3) -> list[str]:
    for change in account_changes(count):
        append_dead_letter(path, change, "no")
    return [each.id for each in account_changes(count)]


@pytest.mark.parametrize("rolled_back", [False, True])
def test_what_is_refused_again_stays_and_the_others_arrive(
    tmp_path: Path, rolled_back: bool
) -> None:
    path = tmp_path / "dead.jsonl"
    first, second, third = write_letters(path)
    sink = Picky({second}, rolled_back)
    replay = replay_dead_letters(path, RetryingSink(sink, DeliveryPolicy(dead_letters=path)))
    assert (replay.read, replay.left) == (3, 1)
    assert sink.taken == [first, third]
    assert ids(path) == [second]
    again = replay_dead_letters(path, RetryingSink(Picky(set()), DeliveryPolicy()))
    assert (again.read, again.left, ids(path)) == (1, 0, [])


def test_an_outage_leaves_every_letter_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    known = write_letters(path)
    sink = Picky(set())
    sink.down = True
    with pytest.raises(SinkUnavailableError):
        replay_dead_letters(path, RetryingSink(sink, DeliveryPolicy(dead_letters=path)))
    assert (sink.pending, ids(path)) == ([], known)


def test_letters_of_release_1_0_stay_for_the_command(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    path.write_text(json.dumps(OLD) + "\n")
    (new,) = write_letters(path, 1)
    sink = Picky(set())
    replay = replay_dead_letters(path, RetryingSink(sink, DeliveryPolicy(dead_letters=path)))
    assert (replay.read, replay.left, sink.taken, ids(path)) == (2, 1, [new], ["old"])
    shown = run_command("replay", str(path)).stdout
    assert json.loads(shown) == {name: OLD[name] for name in OLD if name != "error"}


@pytest.mark.parametrize(
    "edit", [{"commit": "x" * 3, "window": 1}, {"columns": []}, {"key": {"Nobody": 1}}]
)
def test_an_edited_letter_is_named_and_nothing_is_delivered(
    tmp_path: Path, edit: dict[str, Any]
) -> None:
    path = tmp_path / "dead.jsonl"
    write_letters(path, 2)
    first, second = path.read_text().splitlines()
    letter = json.loads(second)
    letter["change"] |= edit
    path.write_text(f"{first}\n{json.dumps(letter)}\n")
    before, sink = path.read_text(), Picky(set())
    with pytest.raises(ConfigurationError, match=r"dead\.jsonl:2 is not a dead letter"):
        replay_dead_letters(path, RetryingSink(sink, DeliveryPolicy(dead_letters=path)))
    assert (sink.taken, path.read_text()) == ([], before)


def test_the_record_of_a_letter_is_what_watch_prints(tmp_path: Path) -> None:
    write_letters(tmp_path / "dead.jsonl", 1)
    (letter,) = read_dead_letters(tmp_path / "dead.jsonl")
    assert letter.keys() - extract_record(letter).keys() == {"error", "change"}


class Consumer:
    """A watcher whose callback refuses singer 1 until it is fixed."""

    def __init__(self, database: Database, folder: Path, **more: object) -> None:
        self.letters = folder / "dead.jsonl"
        self.fixed = False
        self.seen: list[Change] = []
        delivery = {"backoff": 0, "retries": 0, "then": "skip", "dead_letters": self.letters}
        settings = {"consumer": "me", "lease": "1s", "delivery": delivery} | more
        self.watcher = Watcher(**options(database, **settings))
        self.watcher.on_change(self.take)

    def take(self, change: Change) -> None:
        if change.key == {"SingerId": 1} and not self.fixed:
            raise RuntimeError("not this one")
        self.seen.append(change)

    def keys(self) -> list[object]:
        return [change.key["SingerId"] for change in self.seen]


def test_a_running_consumer_replays_by_a_command(
    music: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    me = Consumer(music, tmp_path)
    write(music, 1, 2)
    replay = ("ctl", "replay", "me", "-d", str(address_of(music)))
    with run_in_thread(me.watcher) as raised:
        wait_until(lambda: me.keys() == [2], "the other row")
        assert run_command(*replay).stdout == "me: command replay sent\n"
        wait_until(lambda: "1 were in the file, 1 are left" in caplog.text, "refused again")
        wait_until(lambda: consumers_of(music).command("me") is None, "the command is done")
        assert me.keys() == [2]
        me.fixed = True
        run_command(*replay)
        wait_until(lambda: me.keys() == [2, 1], "the dead letter")
        wait_until(lambda: dead_letters(music) == 0, "status knows")
        write(music, 3)
        wait_until(lambda: me.keys() == [2, 1, 3], "it goes on")
    assert raised == []
    assert me.letters.read_text() == ""
    entries = [(each.action, each.result) for each in read_audit(music, TABLE, "me", 10)]
    assert entries == [("replay", "done")] * 2


def dead_letters(database: Database) -> int:
    status = consumers_of(database).status("me")
    assert status is not None
    return status.progress.dead_letters


def test_letters_of_an_earlier_run_are_counted(music: Database, tmp_path: Path) -> None:
    me = Consumer(music, tmp_path)
    write(music, 1)
    me.watcher.run_once()
    again = Consumer(music, tmp_path)
    again.watcher.run_once()
    assert (again.seen, dead_letters(music)) == ([], 1)


def test_the_callback_that_was_chosen_last_is_that_of_a_replay(
    music: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches have no dead letters: nothing goes to the callback that they took the place of."""
    me, batches = Consumer(music, tmp_path), list[object]()
    me.fixed = True
    me.watcher.on_batch(batches.append)
    known = write_letters(me.letters)
    write(music, 2)
    with run_in_thread(me.watcher) as raised:
        wait_until(lambda: batches != [], "a batch")
        run_command("ctl", "replay", "me", "-d", str(address_of(music)))
        wait_until(lambda: "keeps no dead letters" in caplog.text, "the refusal")
    assert (raised, me.seen, ids(me.letters)) == ([], [], known)


def test_a_command_of_a_newer_release_ends_no_consumer(
    music: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    me = Consumer(music, tmp_path)
    write(music, 2)
    with run_in_thread(me.watcher) as raised:
        wait_until(lambda: me.keys() == [2], "the row")
        with music.batch() as batch:
            batch.update(consumers_table(TABLE), ("Consumer", "Command"), [("me", "dance")])
        renewed = updated_at(music)
        wait_until(lambda: updated_at(music) > renewed, "the next renewal")
        write(music, 3)
        wait_until(lambda: me.keys() == [2, 3], "it goes on")
    assert raised == []
    assert consumers_of(music).command("me") is None
    (told,) = (each for each in caplog.records if each.__dict__.get("event") == "command_unknown")
    assert "the command 'dance', which this release does not know" in told.getMessage()
    assert "ctl resume me" in told.getMessage()


def updated_at(database: Database) -> int:
    status = consumers_of(database).status("me")
    assert status is not None
    return status.updated_at


def test_lines_are_counted_block_by_block(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    for text, count in (("", 0), ("{}", 1), ("{}\n" * 50_000, 50_000), ("{}\n{", 2)):
        path.write_text(text)
        assert count_dead_letters(path) == count
    assert count_dead_letters(tmp_path / "missing") == 0
    with pytest.raises(ConfigurationError, match="cannot read"):
        count_dead_letters(tmp_path)


def test_files_take_no_change_behind_newer_ones(
    music: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A letter that they took for a change that they have would be lost."""
    letters = tmp_path / "dead.jsonl"
    config = {"to": f"files:{tmp_path / 'out'}", "then": "skip", "dead_letters": letters}
    watcher = Watcher(**options(music, consumer="me", lease="1s", delivery=config))
    watcher.deliver_to(open_queue(watcher.config))
    write(music, 1)
    with run_in_thread(watcher) as raised:
        wait_until(lambda: list((tmp_path / "out").rglob("*.gz")) != [], "a file")
        known = write_letters(letters)
        run_command("ctl", "replay", "me", "-d", str(address_of(music)))
        wait_until(lambda: "takes a change once" in caplog.text, "the refusal")
        wait_until(lambda: consumers_of(music).command("me") is None, "the command is done")
    assert (raised, ids(letters)) == ([], known)


def test_a_consumer_without_dead_letters_says_so_and_goes_on(
    music: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    me = Consumer(music, tmp_path, delivery={"retries": 0})
    me.fixed = True
    write(music, 1)
    with run_in_thread(me.watcher) as raised:
        wait_until(lambda: me.keys() == [1], "the row")
        run_command("ctl", "replay", "me", "-d", str(address_of(music)))
        wait_until(lambda: "keeps no dead letters" in caplog.text, "the refusal")
        wait_until(lambda: consumers_of(music).command("me") is None, "the command is done")
        write(music, 2)
        wait_until(lambda: me.keys() == [1, 2], "it goes on")
    assert raised == []
    assert error_kinds(music, "me") == ["ConfigurationError"]
