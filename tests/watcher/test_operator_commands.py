"""Commands of operators outlive an instance, and the lease of a query whatever happens to it."""

from __future__ import annotations

import threading
from itertools import groupby
from typing import Any

import pytest
from fixtures.consumers import (
    Query,
    consumers_of,
    expire_lease,
    watcher_of,
    write,
)
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, make_watchable
from fixtures.watcher_threads import run_in_thread
from google.api_core.exceptions import RetryError
from google.cloud.spanner_v1.database import Database

from watcher import Change
from watcher.consumers import leases
from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.positions import TABLE
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command, State
from watcher.model.errors import LeaseHeldError, LeaseLostError, UnavailableError, WatcherError
from watcher.spanner.queries import QueryClient

SECONDS = 60
STOPPED = (
    "an operator asked consumer 'name' to (stop|drain): to continue, run"
    " 'spanner-watcher ctl resume name' and restart the query"
)


class Renewals:
    """Waits for what the next renewals of a consumer's lease say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._said: list[State] = []
        self._more = threading.Condition()
        real = Consumers.renew

        def renew(consumers: Consumers, lease: Lease, state: State, *more: Any) -> Command | None:
            command = real(consumers, lease, state, *more)
            with self._more:
                self._said.append(state)
                self._more.notify_all()
            return command

        monkeypatch.setattr(Consumers, "renew", renew)

    def wait(self, state: State) -> None:
        """Until two renewals after now have said this state, one after the other."""
        with self._more:
            first = len(self._said)
            assert self._more.wait_for(lambda: self._said[first:][-2:] == [state, state], SECONDS)


@pytest.fixture
def renewals(monkeypatch: pytest.MonkeyPatch) -> Renewals:
    return Renewals(monkeypatch)


def await_end(database: Database) -> None:
    """Until the watcher has given its name back."""
    for _ in range(SECONDS * 10):
        status = consumers_of(database).status("name")
        if status is not None and not status.alive:
            return
        threading.Event().wait(0.1)
    pytest.fail(f"the watcher does not end: {consumers_of(database).status('name')}")


@pytest.mark.parametrize("command", [Command.STOP, Command.DRAIN])
@pytest.mark.parametrize("batches", [0, 1], ids=["before its first batch", "while it runs"])
def test_a_query_that_was_stopped_stays_stopped_until_it_is_resumed(
    music: Database, command: Command, batches: int
) -> None:
    write(music, 1)
    query = Query(music, "name", startingTimestamp="earliest")
    query.run(batches)
    query.reader.stop()
    if not batches:
        consumers_of(music).create()
        consumers_of(music).acquire("name", 0.0)
    consumers_of(music).ask("name", command)
    for _ in range(2):
        again = Query(music, "name", startingTimestamp="earliest")
        again.offset = query.offset
        with pytest.raises(WatcherError, match=STOPPED):
            again.plan()
        again.reader.stop()
    consumers_of(music).ask("name", Command.RESUME)
    again = Query(music, "name", startingTimestamp="earliest")
    again.offset = query.offset
    write(music, 2)
    assert set(again.run()) == ({2} if batches else {1, 2})
    again.reader.stop()


def test_a_query_that_is_paused_before_its_first_batch_waits(music: Database) -> None:
    write(music, 1)
    consumers_of(music).create()
    consumers_of(music).acquire("name", 0.0)
    consumers_of(music).ask("name", Command.PAUSE)
    query = Query(music, "name", startingTimestamp="earliest", leaseSeconds="1")
    assert query.run(2) == {}
    consumers_of(music).ask("name", Command.RESUME)
    for _ in range(SECONDS * 10):
        if query.run(1):
            break
        threading.Event().wait(0.1)
    assert query.names == {1: ["name"]}
    query.reader.stop()


def test_a_watcher_that_is_paused_stays_so_when_another_takes_over(
    music: Database, renewals: Renewals
) -> None:
    seen: list[Change] = []
    first = watcher_of(music, [], consumer="name", lease="1s")
    with run_in_thread(first):
        renewals.wait(State.RUNNING)
        consumers_of(music).ask("name", Command.PAUSE)
        renewals.wait(State.PAUSED)
    write(music, 1)
    assert watcher_of(music, seen, consumer="name").run_once() == 0
    with run_in_thread(watcher_of(music, seen, consumer="name", lease="1s")):
        renewals.wait(State.PAUSED)
        assert seen == []
        consumers_of(music).ask("name", Command.RESUME)
        renewals.wait(State.RUNNING)
    watcher_of(music, seen, consumer="name").run_once()
    assert [change.key for change in seen] == [{"SingerId": 1}]


@pytest.mark.parametrize("command", [Command.STOP, Command.DRAIN])
def test_a_watcher_that_has_obeyed_can_be_started_again(
    music: Database, renewals: Renewals, command: Command
) -> None:
    seen: list[Change] = []
    with run_in_thread(watcher_of(music, seen, consumer="name", lease="1s")) as raised:
        renewals.wait(State.RUNNING)
        consumers_of(music).ask("name", command)
        await_end(music)
    assert raised == []
    assert consumers_of(music).command("name") is None
    write(music, 1)
    watcher_of(music, seen, consumer="name").run_once()
    assert [change.key for change in seen] == [{"SingerId": 1}]


@pytest.mark.parametrize("first", [Command.DRAIN, Command.PAUSE])
def test_the_newest_command_counts_whichever_an_instance_has_seen_before(
    music: Database, renewals: Renewals, caplog: pytest.LogCaptureFixture, first: Command
) -> None:
    """Commands are read at renewals: one that is replaced in between is never seen, such as the
    resumption between a pause and a drain."""
    held, released = threading.Event(), threading.Event()
    seen: list[Change] = []

    def hold(change: Change) -> None:
        seen.append(change)
        held.set()
        assert released.wait(SECONDS)

    watcher = watcher_of(music, [], consumer="name", lease="1s", start="earliest")
    watcher.on_change(hold)
    write(music, 1)
    with run_in_thread(watcher) as raised:
        assert held.wait(SECONDS)
        states = {Command.DRAIN: State.DRAINING, Command.PAUSE: State.PAUSED}
        asked = [first, Command.PAUSE, Command.DRAIN]
        for command in asked:
            consumers_of(music).ask("name", command)
            renewals.wait(states[command])
        write(music, 2)
        released.set()
        await_end(music)
    assert raised == []
    assert consumers_of(music).command("name") is None
    assert [change.key for change in seen] == [{"SingerId": 1}]
    told = [each for each in caplog.messages if each.startswith("an operator asked consumer")]
    changes = [command for command, _ in groupby(asked)]
    assert told == [f"an operator asked consumer 'name' to {each}" for each in changes]


def test_an_outage_that_hides_the_end_of_a_drain_does_not_end_the_watcher(
    music: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call without an answer is an error after 30 s; the watcher goes on without limit."""
    held, released, failures = threading.Event(), threading.Event(), threading.Semaphore(0)
    real = QueryClient.fetch_read_timestamp

    def fetch_read_timestamp(queries: QueryClient) -> int:
        if held.is_set() and not released.is_set():  # else a window asks
            failures.release()
            raise UnavailableError("gone")
        return real(queries)

    def hold(_: Change) -> None:
        held.set()
        assert released.wait(SECONDS)

    monkeypatch.setattr(QueryClient, "fetch_read_timestamp", fetch_read_timestamp)
    watcher = watcher_of(music, [], consumer="name", lease="1s", start="earliest")
    watcher.on_change(hold)
    write(music, 1)
    with run_in_thread(watcher) as raised:
        assert held.wait(SECONDS)
        consumers_of(music).ask("name", Command.DRAIN)
        for _ in range(2):
            assert failures.acquire(timeout=SECONDS)
        released.set()
        await_end(music)
    assert raised == []
    assert consumers_of(music).command("name") is None


@pytest.mark.parametrize("by_operator_too", [False, True])
def test_a_renewal_does_not_end_a_pause_of_the_program_itself(
    music: Database, renewals: Renewals, by_operator_too: bool
) -> None:
    seen: list[Change] = []
    watcher = watcher_of(music, seen, consumer="name", lease="1s")
    with run_in_thread(watcher):
        renewals.wait(State.RUNNING)
        watcher.pause()
        renewals.wait(State.PAUSED)
        if by_operator_too:
            consumers_of(music).ask("name", Command.PAUSE)
            renewals.wait(State.PAUSED)
            consumers_of(music).ask("name", Command.RESUME)
        write(music, 1)
        renewals.wait(State.PAUSED)
        assert seen == []
        watcher.resume()
        renewals.wait(State.RUNNING)
    assert watcher_of(music, seen, consumer="name").run_once() + len(seen) >= 1


def test_a_new_table_is_filled_when_another_is_dropped_at_once(
    create_database: CreateDatabase, renewals: Renewals
) -> None:
    """The timestamp of the snapshot is asked for without the table that is gone."""
    database: Database = create_database(SINGERS, "CREATE TABLE Old (Id INT64) PRIMARY KEY (Id)")
    make_watchable(database, "Old")
    write_names = [(1, "name")]
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), write_names)
    seen: list[Change] = []
    more = {"consumer": "name", "tables": ["*"], "backfill": ["*"], "lease": "1s"}
    more |= {"start": "latest", "refresh": "100ms"}
    watcher = watcher_of(database, seen, **more)
    with run_in_thread(watcher) as raised:
        renewals.wait(State.RUNNING)
        watcher.pause()
        renewals.wait(State.PAUSED)
        with database.snapshot() as snapshot:
            query = (
                "SELECT INDEX_NAME FROM INFORMATION_SCHEMA.INDEXES"
                " WHERE TABLE_NAME = 'Old' AND INDEX_TYPE = 'INDEX'"
            )
            indexes = [row[0] for row in snapshot.execute_sql(query)]
        drops = [f"DROP INDEX {name}" for name in indexes]
        database.update_ddl([*drops, "DROP TABLE Old"]).result(SECONDS)
        make_watchable(database, "Singers")
        watcher.resume()
        for _ in range(SECONDS * 10):
            if seen or raised:
                break
            threading.Event().wait(0.1)
    assert raised == []
    assert [change.key for change in seen] == [{"SingerId": 1}]


# The lease of a Spark query.


@pytest.mark.parametrize(
    "error", [RetryError("gone", None), ValueError("odd"), LeaseHeldError("odd")]
)
def test_the_lease_of_a_query_is_renewed_after_any_error(
    music: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    renewed, failures, real = threading.Event(), [error, error], Consumers.renew

    def renew(consumers: Consumers, *arguments: Any) -> Command | None:
        if failures:
            raise failures.pop()
        command = real(consumers, *arguments)
        renewed.set()
        return command

    monkeypatch.setattr(Consumers, "renew", renew)
    query = Query(music, "name", startingTimestamp="latest", leaseSeconds="1")
    query.plan()
    assert renewed.wait(SECONDS)
    query.plan()
    with pytest.raises(LeaseHeldError, match="consumer 'name' is alive"):
        unregister(music, TABLE, "name")
    query.reader.stop()
    unregister(music, TABLE, "name")


@pytest.mark.parametrize("taken", [False, True])
def test_a_query_that_was_suspended_renews_its_lease_or_ends(
    music: Database, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    write(music, 1)
    query = Query(music, "name", startingTimestamp="earliest", leaseSeconds="3600")
    end = query.plan()
    expire_lease(music, "name")
    if taken:
        consumers_of(music).acquire("name", 3600.0)
    monkeypatch.setattr(leases, "lease_clock", lambda: leases_clock() + 7200)
    if taken:
        with pytest.raises(LeaseLostError):
            query.finish(end)
    else:
        query.finish(end)
        status = consumers_of(music).status("name")
        assert status is not None
        assert status.alive
    query.reader.stop()


leases_clock = leases.lease_clock
