"""Clearing goes behind everybody who reads a table or will, and says so before it does."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from typing import Any

import pytest
from fixtures.consumers import ALBUMS, write
from fixtures.selections import store_selection
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, capture_of, make_watchable
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema
from ddl.migration.plan import make_plan
from spanner_schema.model.options import WatchOptions
from watcher import Change, Watcher
from watcher.consumers.clearing import Clearing, Fence
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import (
    TABLE,
    Position,
    Registration,
    SpannerPositions,
    cleared_table,
    consumers_table,
)
from watcher.consumers.positions.cleared import read_cleared, write_cleared
from watcher.model.errors import (
    CheckpointError,
    ConfigurationError,
    LeaseLostError,
    NotOursError,
)
from watcher.process.failpoints import VARIABLE
from watcher.spanner.dialects import GOOGLESQL
from watcher.spanner.timestamps import to_micros
from watcher.tables.discovery import discover_table
from watcher.tables.selection import Selection
from watcher.tables.values import TableSpec

SETS = (
    "CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36) NOT NULL, CommitTimestamp TIMESTAMP"
    " OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (ChangeSetId)",
    "CREATE TABLE Songs (Id INT64, ChangeSetId STRING(36)) PRIMARY KEY (Id)",
    "CREATE INDEX SongsByChangeSet ON Songs(ChangeSetId)",
)


def count_in_index(database: Database, table: str = "Singers") -> int:
    """How many rows of a table have not been cleared."""
    with database.snapshot() as snapshot:
        query = f"SELECT COUNT(*) FROM {table} WHERE LastModified IS NOT NULL"
        return int(next(iter(snapshot.execute_sql(query)))[0])


def read_cleared_to(database: Database) -> dict[str, int]:
    """Cleared-to by table."""
    with database.snapshot() as snapshot:
        return read_cleared(
            snapshot, TABLE, ["Singers", "Albums", "Songs", "CHANGE_SETS"], GOOGLESQL
        )


def positions_of(database: Database, *stored: tuple[str, str, int]) -> SpannerPositions:
    """Positions: consumer, table, microseconds."""
    positions = SpannerPositions(database)
    positions.create()
    for each in stored:
        positions.save(Position(*each), None)
    return positions


def make_clearing(database: Database, table: str = "Singers", **more: Any) -> Clearing:
    watched = discover_table(database, table)
    return Clearing(database, watched, SpannerPositions(database), **more)


def now(database: Database) -> int:
    return capture_of(database).look(0)[0].end


class Reader:
    """A consumer of every table that keeps what it was told."""

    def __init__(self, database: Database, consumer: str) -> None:
        self._database, self._consumer = database, consumer
        self.keys: list[tuple[str, object]] = []

    def run_once(self) -> None:
        watcher = Watcher(
            database=str(address_of(self._database)), tables=["*"], consumer=self._consumer
        )
        watcher.on_change(self._keep)
        watcher.run_once()
        store_selection(self._database, self._consumer, ["*"])

    def _keep(self, change: Change) -> None:
        self.keys.append((change.table, *change.key.values()))  # type: ignore[arg-type]


@pytest.fixture
def readers(database: Database) -> tuple[Reader, Reader]:
    """Two consumers that have watched Singers; Albums is not watchable yet."""
    make_watchable(database, "Singers")
    first, second = Reader(database, "first"), Reader(database, "second")
    first.run_once()
    second.run_once()
    return first, second


@pytest.mark.ddl(SINGERS, ALBUMS)
def test_a_new_table_is_not_cleared_before_every_consumer_of_it_has_seen_it(
    database: Database, readers: tuple[Reader, Reader]
) -> None:
    first, second = readers
    make_watchable(database, "Albums")
    with database.batch() as batch:
        batch.insert("Albums", ("AlbumId", "Title"), [(1, "one"), (2, "two")])
    first.run_once()
    albums = make_clearing(database, "Albums")
    done = albums.clear()
    assert (done.rows, done.slowest_consumer) == (0, "second")
    second.run_once()
    assert sorted(second.keys) == sorted(first.keys) == [("Albums", 1), ("Albums", 2)]
    first.run_once()
    assert albums.clear().rows == 2


@pytest.mark.parametrize(
    ("include", "exclude", "waits"),
    [
        (["*"], [], True),
        (["sing*"], [], True),
        (["Singers"], [], True),
        (["*"], ["Singers"], False),
        (["Albums"], [], False),
    ],
)
def test_clearing_waits_for_a_consumer_that_watches_the_table_but_has_no_position(
    singers: Database,
    caplog: pytest.LogCaptureFixture,
    include: list[str],
    exclude: list[str],
    waits: bool,
) -> None:
    write(singers, 1, 2)
    positions_of(singers, ("ready", "Singers", now(singers)))
    store_selection(singers, "starting", include, exclude)
    with caplog.at_level(logging.WARNING, "watcher.clearing"):
        done = make_clearing(singers).clear()
    assert (done.rows, count_in_index(singers)) == ((0, 2) if waits else (2, 0))
    assert ("waits for consumer 'starting'" in caplog.text) is waits
    assert ("Singers" in read_cleared_to(singers)) is not waits


def test_positions_in_other_tables_say_nothing_of_one_that_is_not_registered(
    singers: Database,
) -> None:
    write(singers, 1)
    positions_of(singers, ("ready", "Singers", now(singers)), ("elsewhere", "Albums", now(singers)))
    store_selection(singers, "elsewhere", ["*"])
    done = make_clearing(singers).clear()
    assert (done.rows, done.slowest_consumer) == (0, "elsewhere")
    assert read_cleared_to(singers) == {}


@pytest.mark.ddl(SINGERS, ALBUMS)
def test_rows_from_before_a_table_was_watchable_wait_for_every_consumer(
    database: Database, readers: tuple[Reader, Reader]
) -> None:
    """The second consumer's positions are above the row, which is in no index at that time."""
    first, second = readers
    options = WatchOptions.model_validate({"shards": 4})
    plan = make_plan(read_schema(database), ["Albums"], options)
    *columns, index = [statement.sql for statement in plan.statements]
    database.update_ddl(columns).result(60)
    with database.batch() as batch:
        batch.insert("Albums", ("AlbumId", "Title"), [(1, "one")])
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "FirstName"), [(1, "one")])
    first.run_once()
    second.run_once()
    database.update_ddl([index]).result(60)
    first.run_once()
    albums = make_clearing(database, "Albums")
    assert albums.clear().rows == 0
    second.run_once()
    assert sorted(second.keys) == sorted(first.keys) == [("Albums", 1), ("Singers", 1)]
    assert albums.clear().rows == 1


def test_a_selection_that_cannot_be_read_stops_clearing(singers: Database) -> None:
    write(singers, 1)
    positions_of(singers, ("ready", "Singers", now(singers)))
    store_selection(singers, "odd", ["*"])
    with singers.batch() as batch:
        columns = ("Consumer", "Selection")
        batch.update(consumers_table(TABLE), columns, [("odd", "something else")])
    with pytest.raises(CheckpointError, match="selection of consumer 'odd' cannot be read"):
        make_clearing(singers).clear()
    assert count_in_index(singers) == 1


CLEAR = "from watcher.cli import main; main()"


def test_cleared_to_is_written_before_anything_is_cleared(singers: Database) -> None:
    latest = write(singers, 1, 2)
    positions_of(singers, ("ready", "Singers", now(singers)))
    crashed = subprocess.run(
        [*WARM_PYTHON, "-c", CLEAR, "clear", "-d", str(address_of(singers)), "-t", "Singers"],
        env=os.environ | {VARIABLE: "after-cleared-to-before-clearing"},
        check=False,
        capture_output=True,
    )
    assert crashed.returncode == -signal.SIGKILL, crashed.stderr
    assert read_cleared_to(singers) == {"Singers": latest}
    assert count_in_index(singers) == 2


def test_cleared_to_is_where_a_capped_clearing_ends(singers: Database) -> None:
    commits = [write(singers, number) for number in range(5)]
    positions_of(singers, ("ready", "Singers", now(singers)))
    assert make_clearing(singers).clear(rows_max=2).rows == 2
    assert read_cleared_to(singers) == {"Singers": commits[1]}
    assert make_clearing(singers).clear(rows_max=2).rows == 2
    assert read_cleared_to(singers) == {"Singers": commits[3]}


def test_cleared_to_stays_where_nothing_is_cleared(singers: Database) -> None:
    """Else a batch read of quiet times would be refused although it misses nothing."""
    latest = write(singers, 1)
    positions = positions_of(singers, ("ready", "Singers", now(singers)))
    make_clearing(singers).clear()
    position = positions.load_all("ready")["Singers"]
    positions.save(Position("ready", "Singers", now(singers)), position)
    assert make_clearing(singers).clear().rows == 0
    assert read_cleared_to(singers) == {"Singers": latest}


def test_cleared_to_never_goes_back(singers: Database) -> None:
    positions_of(singers)
    for micros in (20, 10):
        singers.run_in_transaction(write_cleared, TABLE, ["Singers", "Albums"], micros, GOOGLESQL)
    assert read_cleared_to(singers) == {"Singers": 20, "Albums": 20}


def test_a_margin_keeps_its_distance_from_the_positions(singers: Database) -> None:
    write(singers, 1)
    positions_of(singers, ("ready", "Singers", now(singers)))
    assert make_clearing(singers, margin_seconds=3_600).clear().rows == 0
    assert count_in_index(singers) == 1


def test_an_instance_that_was_taken_over_clears_nothing(singers: Database) -> None:
    write(singers, 1)
    positions_of(singers, ("worker", "Singers", now(singers)))
    consumers = Consumers(singers, TABLE)
    old = consumers.acquire("worker", 0.0)
    new = consumers.acquire("worker", 60.0)
    frozen = make_clearing(singers, fence=Fence("worker", old.owner))
    with pytest.raises(LeaseLostError, match="taken over the consumer 'worker'"):
        frozen.clear()
    assert (count_in_index(singers), read_cleared_to(singers)) == (1, {})
    assert make_clearing(singers, fence=Fence("worker", new.owner)).clear().rows == 1


@pytest.mark.ddl(*SETS)
def test_change_sets_wait_for_every_consumer_and_tell_of_all_their_tables(
    database: Database,
) -> None:
    with database.batch() as batch:
        columns = ("ChangeSetId", "CommitTimestamp")
        batch.insert("CHANGE_SETS", columns, [("a", "spanner.commit_timestamp()")])
    committed = to_micros(batch.committed)
    positions = positions_of(database, ("ready", "Songs", committed))
    store_selection(database, "starting", ["Elsewhere"])
    watched = discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
    sets = Clearing(database, watched, positions)
    assert (sets.clear().rows, read_cleared_to(database)) == (0, {})
    positions.save(Position("starting", "Elsewhere", committed), None)
    assert sets.clear().rows == 1
    assert read_cleared_to(database) == {"Songs": committed, "CHANGE_SETS": committed}


@pytest.mark.parametrize(
    ("details", "name"),
    [
        (
            "CREATE TABLE Details (ChangeSetId STRING(36) NOT NULL, Why STRING(MAX))"
            " PRIMARY KEY (ChangeSetId), INTERLEAVE IN PARENT CHANGE_SETS ON DELETE CASCADE",
            "Details",
        ),
        (
            "CREATE TABLE Details (Id INT64, ChangeSetId STRING(36), CONSTRAINT OfSet FOREIGN KEY"
            " (ChangeSetId) REFERENCES CHANGE_SETS (ChangeSetId) ON DELETE CASCADE)"
            " PRIMARY KEY (Id)",
            "OfSet",
        ),
    ],
)
def test_clearing_deletes_nothing_that_hangs_on_a_change_set(
    create_database: CreateDatabase, details: str, name: str
) -> None:
    database = create_database(*SETS, details)
    watched = discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
    with pytest.raises(NotOursError, match=f"by ON DELETE CASCADE: {name}"):
        Clearing(database, watched, positions_of(database)).clear()


OLD_CONSUMERS = """CREATE TABLE SpannerWatcherConsumers (
  Consumer STRING(256) NOT NULL, State STRING(32) NOT NULL, Command STRING(16), Owner STRING(64),
  LeaseUntil TIMESTAMP, Windows INT64, DeliveredRows INT64, RowsPerSecond FLOAT64,
  DeadLetters INT64, UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)
) PRIMARY KEY (Consumer)"""
OLD_POSITIONS = """CREATE TABLE SpannerWatcherPositions (
  Consumer STRING(256) NOT NULL, WatchedTable STRING(256) NOT NULL, Position TIMESTAMP NOT NULL,
  UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)
) PRIMARY KEY (Consumer, WatchedTable)"""


@pytest.mark.parametrize("older", [(OLD_POSITIONS,), (OLD_POSITIONS, OLD_CONSUMERS)])
def test_tables_of_an_older_release_are_read_as_they_are_and_completed_to_clear(
    singers: Database, older: tuple[str, ...]
) -> None:
    singers.update_ddl(list(older)).result(60)
    write(singers, 1)
    SpannerPositions(singers).save(Position("ready", "Singers", now(singers)), None)
    before = read_schema(singers)
    assert make_clearing(singers).count().rows == 1
    assert make_clearing(singers).explain().partitioned.rows_written == 1
    assert read_schema(singers) == before
    assert make_clearing(singers).clear().rows == 1
    assert read_schema(singers).table(cleared_table(TABLE)) is not None


def test_nothing_is_made_where_nobody_is_registered(singers: Database) -> None:
    before = read_schema(singers)
    with pytest.raises(ConfigurationError, match="no consumer of Singers is registered"):
        make_clearing(singers).clear()
    assert read_schema(singers) == before


@pytest.mark.both_dialects
def test_a_reader_of_a_change_stream_holds_up_no_clearing(singers: Database) -> None:
    write(singers, 1, 2)
    store_selection(singers, "s", ["*"], streamed=True)
    positions_of(singers, ("ready", "Singers", now(singers)), ("s", "Singers", 1_000_000))
    done = make_clearing(singers).clear()
    assert (done.rows, done.slowest_consumer) == (2, "ready")


def test_who_polls_after_a_change_stream_is_refused_what_was_cleared(singers: Database) -> None:
    consumers, positions = Consumers(singers, TABLE), SpannerPositions(singers)
    consumers.create()
    lease = consumers.acquire("s")

    def register(streamed: bool) -> None:
        text = Selection(("*",), streamed=streamed).to_text()
        registration = Registration("s", {"Singers": now(singers)}, selection=text)
        positions.register(registration, lease.owner)

    register(streamed=True)
    register(streamed=False)
    register(streamed=True)
    write(singers, 1)
    positions.save(Position("ready", "Singers", now(singers)), None)
    assert make_clearing(singers).clear().rows == 1
    for _ in range(2):  # being refused changes nothing
        with pytest.raises(ConfigurationError, match="cannot poll without missing rows"):
            register(streamed=False)
    register(streamed=True)
