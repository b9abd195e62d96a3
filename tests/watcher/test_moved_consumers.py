"""A consumer that is divided, merged, unregistered or asked for something goes as a whole, in one
transaction, and who held it, or a part of it, is refused afterwards: rule 13 of
docs/protocol.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from fixtures.consumers import (
    ALBUMS,
    consumers_of,
    expire_lease,
    options,
    own_table_rows,
    write,
)
from fixtures.pace import allow
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, fetch_now, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_in_thread, run_without_error
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema
from watcher import Watcher
from watcher.cli.ctl.commands import send_command, unregister_consumer
from watcher.consumers.clearing import Clearing
from watcher.consumers.divisions import Beginning, Divisions
from watcher.consumers.members import Members
from watcher.consumers.merging import merge_parts
from watcher.consumers.positions import TABLE, Position, Registration, SpannerPositions
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command, ConsumerProgress, ConsumerStatus, State
from watcher.model.errors import (
    ConfigurationError,
    ConsumerNotFoundError,
    DivisionChangedError,
    LeaseHeldError,
    LeaseLostError,
    WatcherError,
)
from watcher.model.window import BEGINNING
from watcher.tables.discovery import discover_table
from watcher.tables.parts import describe_division
from watcher.tables.selection import Selection

FIRST, SECOND = "orders/1-of-2", "orders/2-of-2"
KEYS = range(20)


@pytest.fixture
def divided(singers: Database) -> Database:
    """``orders`` is divided into two parts, which nobody has run yet."""
    SpannerPositions(singers).create()
    divide(singers)
    return singers


def divide(database: Database, of: int = 2, table: str = "Singers") -> Divisions:
    divisions = Divisions(SpannerPositions(database), "orders", of)
    text = describe_division(read_schema(database), discover_table(database, table), of)
    divisions.settle({table: text}, lambda: beginning(database))
    return divisions


def beginning(database: Database) -> Beginning:
    return Beginning(Selection(("*",)), None, fetch_now(database))


def merge(database: Database) -> dict[str, int]:
    return merge_parts(SpannerPositions(database), "orders")


def read_state(database: Database, consumer: str) -> tuple[str | None, str | None] | None:
    """The selection and the command of a consumer; None for one that has no state."""
    rows = own_table_rows(database)["SpannerWatcherConsumers"]
    columns = ("Selection", "Command")
    with database.snapshot() as snapshot:
        query = f"SELECT Consumer, {', '.join(columns)} FROM SpannerWatcherConsumers"
        states = {row[0]: (row[1], row[2]) for row in snapshot.execute_sql(query)}
    assert len(states) == len(rows)
    return states.get(consumer)


# What goes along.


def test_parts_poll_what_the_consumer_polls_before_anybody_has_run_them(divided: Database) -> None:
    """Else a table that is watchable before that is cleared without waiting for them."""
    assert read_state(divided, FIRST) == read_state(divided, SECOND)
    assert read_state(divided, FIRST) == (Selection(("*",)).to_text(), None)


def test_what_a_consumer_polls_and_is_asked_for_goes_along(divided: Database) -> None:
    consumers_of(divided).ask("orders", Command.PAUSE)
    merge(divided)
    expected = (Selection(("*",)).to_text(), "pause")
    assert read_state(divided, "orders") == expected
    divide(divided, 3)
    assert [read_state(divided, f"orders/{n}-of-3") for n in (1, 2, 3)] == [expected] * 3
    assert read_state(divided, "orders") is None


def test_a_part_without_a_position_has_delivered_nothing(divided: Database) -> None:
    positions = SpannerPositions(divided)
    positions.remove(FIRST, ["Singers"])
    assert positions.load_all(SECOND)["Singers"] > BEGINNING
    assert merge(divided) == {"Singers": BEGINNING}
    assert positions.load_all("orders") == {"Singers": BEGINNING}


def test_others_wait_for_the_merged_consumer_in_tables_that_come_later(
    create_database: CreateDatabase,
) -> None:
    database = create_database(SINGERS, ALBUMS)
    make_watchable(database)
    SpannerPositions(database).create()
    divide(database)
    merge(database)
    make_watchable(database, "Albums")
    with database.batch() as batch:
        batch.insert("Albums", ("AlbumId", "Title"), [(1, "one")])
    positions = SpannerPositions(database)
    positions.save(Position("other", "Albums", fetch_now(database)), None)
    done = Clearing(database, discover_table(database, "Albums"), positions).clear()
    assert (done.rows, done.slowest_consumer) == (0, "orders")


# Who comes too late.


def held_before(database: Database) -> dict[str, Callable[[], object]]:
    """What an instance may do that held a part before the consumer was merged or unregistered."""
    lease = consumers_of(database).acquire(FIRST, 0.0)
    divisions = divide(database)
    positions, members = SpannerPositions(database), Members(database, TABLE, "orders", 2, {})
    members.renew("somebody", 60)
    registration = Registration(FIRST, {"Singers": 1})
    return {
        "renew": lambda: consumers_of(database).renew(lease, State.RUNNING, ConsumerProgress()),
        "register": lambda: positions.register(registration, lease.owner),
        "plan": lambda: positions.plan_ends(FIRST, {"Singers": None}, lease.owner),
        "take another part": lambda: consumers_of(database).acquire(SECOND),
        "take the part again": lambda: consumers_of(database).acquire(FIRST),
        "join": lambda: members.renew("somebody", 60),
        "divide another table": lambda: divisions.settle(
            {"Other": '{"parts": 2}'}, lambda: beginning(database)
        ),
    }


@pytest.mark.parametrize("move", ["merged", "unregistered", "divided in another way"])
def test_who_held_a_part_is_refused(divided: Database, move: str) -> None:
    attempts = held_before(divided)
    if move == "unregistered":
        unregister(divided, TABLE, "orders")
    else:
        merge(divided)
    if move == "divided in another way":
        divide(divided, 3)
    before = own_table_rows(divided)
    for name, attempt in attempts.items():
        with pytest.raises((LeaseLostError, DivisionChangedError)):
            attempt()
        assert own_table_rows(divided) == before, name


def test_who_held_the_whole_is_refused_once_it_is_divided(divided: Database) -> None:
    """Also where it keeps a position in a table that nobody has divided yet."""
    merge(divided)
    positions = SpannerPositions(divided)
    positions.save(Position("orders", "Elsewhere", 1), None)
    lease = consumers_of(divided).acquire("orders", 0.0)
    divide(divided)
    assert positions.load_all("orders") == {"Elsewhere": 1}
    with pytest.raises(LeaseLostError):
        consumers_of(divided).renew(lease, State.RUNNING, ConsumerProgress())


def test_who_is_frozen_while_its_table_is_unregistered_is_refused(singers: Database) -> None:
    positions = SpannerPositions(singers)
    positions.create()
    for table in ("Singers", "Albums"):
        positions.save(Position("one", table, 1), None)
    lease = consumers_of(singers).acquire("one", 0.0)
    unregister(singers, TABLE, "one", ["Albums"])
    with pytest.raises(LeaseLostError):
        consumers_of(singers).renew(lease, State.RUNNING, ConsumerProgress())


def test_the_name_of_a_divided_consumer_is_refused_and_leaves_no_trace(divided: Database) -> None:
    """Clearing would wait for a consumer that has only a state."""
    before = own_table_rows(divided)
    watcher = Watcher(**options(divided, consumer="orders"))
    watcher.on_change(print)
    with pytest.raises(ConfigurationError, match="ctl merge orders"):
        watcher.run_once()
    assert own_table_rows(divided) == before


def test_parts_of_another_number_are_refused_for_tables_of_their_own(
    create_database: CreateDatabase,
) -> None:
    database = create_database(SINGERS, ALBUMS)
    make_watchable(database, "Singers", "Albums", shards=4)
    SpannerPositions(database).create()
    divide(database)
    with pytest.raises(DivisionChangedError, match="ctl merge orders"):
        divide(database, 3, "Albums")


def test_an_instance_ends_whose_parts_are_merged_while_it_is_frozen(singers: Database) -> None:
    seen = ChangeCollector()
    write(singers, *KEYS)
    watcher = Watcher(**options(singers, consumer="orders", parts=2, lease="1s"))
    watcher.on_change(seen)
    with run_in_thread(watcher) as raised:
        seen.wait(len(KEYS))
        while True:
            for part in (FIRST, SECOND):
                expire_lease(singers, part)
            try:
                merge(singers)
            except LeaseHeldError:
                continue
            break
        wait_for(lambda: bool(raised))
    assert isinstance(raised[0], DivisionChangedError)
    assert {each[0] for each in own_table_rows(singers)["SpannerWatcherPositions"]} == {"orders"}


def wait_for(holds: Callable[[], bool]) -> None:
    """Until something holds that no change announces."""
    for _ in range(round(allow(60) * 20)):
        if holds():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not come to hold")


# All or nothing.


def test_a_consumer_with_a_live_part_is_not_unregistered_at_all(divided: Database) -> None:
    consumers_of(divided).acquire(SECOND, 600.0)
    before = own_table_rows(divided)
    for tables in (None, ["Singers"]):
        with pytest.raises(LeaseHeldError, match=SECOND):
            unregister_consumer(str(address_of(divided)), "orders", TABLE, tables, dry_run=False)
        assert own_table_rows(divided) == before


def test_a_consumer_is_unregistered_with_all_its_parts(
    divided: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    address = str(address_of(divided))
    before = own_table_rows(divided)
    unregister_consumer(address, "orders", TABLE, None, dry_run=True)
    assert own_table_rows(divided) == before
    assert f"{FIRST}: positions that would be removed: Singers" in capsys.readouterr().out
    unregister_consumer(address, "orders", TABLE, None, dry_run=False)
    assert not any(own_table_rows(divided).values())
    with pytest.raises(ConsumerNotFoundError):
        unregister_consumer(address, "orders", TABLE, None, dry_run=False)


def test_a_table_that_all_parts_leave_is_divided_anew(create_database: CreateDatabase) -> None:
    database = create_database(SINGERS, ALBUMS)
    make_watchable(database, "Singers", "Albums", shards=4)
    SpannerPositions(database).create()
    divide(database)
    divide(database, table="Albums")
    removed = unregister(database, TABLE, "orders", ["albums"])
    assert removed == {FIRST: ("Albums",), SECOND: ("Albums",)}
    divisions = own_table_rows(database)["SpannerWatcherDivisions"]
    assert [row[:2] for row in divisions] == [["orders", "Singers"]]


def test_a_command_reaches_every_part_or_none(divided: Database) -> None:
    address = str(address_of(divided))
    send_command(address, "orders", TABLE, Command.PAUSE)
    assert {read_state(divided, part) for part in (FIRST, SECOND)} == {
        (Selection(("*",)).to_text(), "pause")
    }
    before = own_table_rows(divided)
    with pytest.raises(WatcherError, match="does not exist"):
        send_command(address, "order", TABLE, Command.STOP)
    assert own_table_rows(divided) == before


def test_a_divided_consumer_delivers_what_it_was_asked_for_after_a_pause(
    divided: Database,
) -> None:
    """The parts of a consumer that was paused as a whole are paused."""
    merge(divided)
    consumers_of(divided).ask("orders", Command.PAUSE)
    write(divided, *KEYS)
    seen = ChangeCollector()
    watcher = Watcher(**options(divided, consumer="orders", parts=2, lease="1s"))
    watcher.on_change(seen)
    with run_without_error(watcher):
        wait_for(lambda: all(each.alive for each in statuses(divided)))
        assert not seen.changes
        consumers_of(divided).ask("orders", Command.RESUME)
        seen.wait(len(KEYS))


def statuses(database: Database) -> Sequence[ConsumerStatus]:
    return [s for s in consumers_of(database).list_all() if s.consumer in (FIRST, SECOND)]
