"""What an operator sees is what the database holds, at a bounded cost."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from fixtures.consumers import consumers_of, expire_lease, watcher_of, write
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database

from watcher.consumers.positions import TABLE, backfills_table, consumers_table, errors_table
from watcher.consumers.states import Command, ConsumerProgress, State
from watcher.model.errors import NotWatchableError, TableNotFoundError
from watcher.overview import counts
from watcher.overview.observer import Observer
from watcher.overview.reader import StaleReader
from watcher.overview.retention import parse_period
from watcher.overview.stored import read_own_columns, read_stored_state
from watcher.overview.values import CaptureKind, ConsumerOverview, Count, Overview
from watcher.spanner.timestamps import to_datetime, to_micros

HOUR = 3_600
STREAM = "CREATE CHANGE STREAM Changes FOR Singers OPTIONS (retention_period = '36h')"


def observer_of(database: Database, staleness: float = 0.0) -> Observer:
    return Observer(database, address_of(database), TABLE, staleness)


def read(database: Database) -> Overview:
    """A strong read, so that everything written before it is seen."""
    return observer_of(database).read()


def consumer_in(overview: Overview, name: str) -> ConsumerOverview:
    (consumer,) = (each for each in overview.consumers if each.consumer == name)
    return consumer


def move_position(database: Database, consumer: str, seconds: float) -> None:
    """Puts the position of a consumer in Singers so long ago."""
    at = to_datetime(round((time.time() - seconds) * 1_000_000))
    with database.batch() as batch:
        columns = ("Consumer", "WatchedTable", "Position")
        batch.update(TABLE, columns, [(consumer, "Singers", at)])


def store_backfill(database: Database, after: list[str] | None) -> None:
    """A backfill of Singers for 'me' whose snapshot is ten minutes old."""
    progress = json.dumps({"at": round((time.time() - 600) * 1_000_000), "after": after})
    with database.batch() as batch:
        columns = ("Consumer", "WatchedTable", "Progress")
        batch.insert(backfills_table(TABLE), columns, [("me", "Singers", progress)])


def shorten_lease(database: Database, consumer: str) -> int:
    """Has a lease run out soon; a timestamp at which it is stored and has not."""
    for seconds in (1, 8, 64):
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        with database.batch() as batch:
            row = (consumer, until)
            batch.update(consumers_table(TABLE), ("Consumer", "LeaseUntil"), [row])
        if batch.committed < until:
            break
    return to_micros(batch.committed)


def test_a_database_that_nobody_watches_has_indexes_and_no_consumer(singers: Database) -> None:
    write_singers(singers, range(20), "name")
    overview = read(singers)
    assert overview.consumers == ()
    (index,) = overview.indexes
    assert (index.table, index.rows, index.clearable) == ("Singers", Count(20), None)
    assert len(index.shards) == 8
    with singers.snapshot() as snapshot:
        query = "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = @name"
        assert list(snapshot.execute_sql(query, params={"name": TABLE})) == [[0]]


@pytest.mark.both_dialects
def test_a_consumer_is_shown_with_its_position_and_the_rows_behind(music: Database) -> None:
    write(music, 1, 2, 3)
    watcher_of(music, [], consumer="me").run_once()
    write(music, 2)
    overview = read(music)
    me = consumer_in(overview, "me")
    assert (me.state, me.alive, me.capture) == ("STOPPED", False, CaptureKind.POLL)
    assert (me.delivered_rows, me.rows_behind) == (3, Count(1))
    assert me.reason == "everything up to its start was delivered (--once)"
    index = next(each for each in overview.indexes if each.table == "Singers")
    assert (index.rows, index.clearable, index.slowest_consumer) == (Count(3), Count(2), "me")


@pytest.mark.both_dialects
def test_the_lease_the_command_and_the_last_error_of_a_running_consumer(music: Database) -> None:
    consumers = consumers_of(music)
    consumers.create()
    lease = consumers.acquire("me", 60.0)
    consumers.renew(lease, State.RUNNING, ConsumerProgress(2, 7, 3.5, 1))
    consumers.ask("me", Command.PAUSE)
    for minute, text in enumerate(("first", "last")):
        with music.batch() as batch:
            columns = ("Consumer", "ErrorId", "Kind", "Message", "OccurredAt")
            row = ("me", str(minute), "Kind", text, f"2026-01-01T00:0{minute}:00Z")
            batch.insert(errors_table(TABLE), columns, [row])
    me = consumer_in(read(music), "me")
    assert (me.state, me.alive, me.command) == ("RUNNING", True, Command.PAUSE)
    assert (me.windows, me.delivered_rows, me.rows_per_second, me.dead_letters) == (2, 7, 3.5, 1)
    assert me.last_error is not None
    assert me.last_error.message == "last"
    expire_lease(music, "me")
    assert not consumer_in(read(music), "me").alive


@pytest.mark.both_dialects
def test_a_lease_counts_at_the_time_of_the_read(music: Database) -> None:
    """A read that is older than a lease is long must not show a running consumer as gone."""
    consumers = consumers_of(music)
    consumers.create()
    consumers.acquire("me", 600.0)
    at = shorten_lease(music, "me")
    while (status := consumers.status("me")) is not None and status.alive:
        pass  # until it has run out
    alive = []
    for moment in (at, read(music).read_at):
        reader = StaleReader(music, moment)
        state = read_stored_state(reader, TABLE, read_own_columns(reader, TABLE))
        alive.append(state.statuses["me"].alive)
    assert alive == [True, False]


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS, STREAM)
def test_records_of_a_change_stream_are_lost_after_its_retention(database: Database) -> None:
    watcher_of(database, [], consumer="me", capture="change-stream", start="latest").run_once()
    move_position(database, "me", 10 * HOUR)
    me = consumer_in(read(database), "me")
    assert me.capture is CaptureKind.CHANGE_STREAM
    assert me.exact_for_seconds is None
    assert me.lost_in_seconds == pytest.approx(26 * HOUR, abs=600)
    move_position(database, "me", 40 * HOUR)
    lost = consumer_in(read(database), "me").lost_in_seconds
    assert lost is not None
    assert lost < 0


def test_polled_rows_are_never_lost_and_cuts_are_exact_for_the_version_retention(
    music: Database,
) -> None:
    watcher_of(music, [], consumer="me").run_once()
    move_position(music, "me", 0.5 * HOUR)
    me = consumer_in(read(music), "me")
    assert me.lost_in_seconds is None
    assert me.exact_for_seconds == pytest.approx(0.5 * HOUR, abs=600)
    name = address_of(music).database
    option = f"ALTER DATABASE `{name}` SET OPTIONS (version_retention_period = '3d')"
    music.update_ddl([option]).result(30)
    overview = read(music)
    assert overview.version_retention_seconds == 72 * HOUR
    assert consumer_in(overview, "me").exact_for_seconds == pytest.approx(71.5 * HOUR, abs=600)


@pytest.mark.both_dialects
def test_a_backfill_is_shown_with_the_rows_that_are_left(music: Database) -> None:
    write(music, *range(20))
    watcher_of(music, [], consumer="me").run_once()
    store_backfill(music, ["11"])
    (backfill,) = read(music).backfills
    assert (backfill.consumer, backfill.table, backfill.after) == ("me", "Singers", ("11",))
    assert backfill.left == Count(8)
    assert backfill.exact_for_seconds == pytest.approx(HOUR - 600, abs=600)
    assert observer_of(music).count_exactly("Singers").backfills == {"me": (8, 20)}


@pytest.mark.both_dialects
def test_counting_stops_at_its_limits(music: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "ROWS_BEHIND_MAX", 5)
    monkeypatch.setattr(counts, "INDEX_ROWS_MAX", 12)
    monkeypatch.setattr(counts, "SHARD_ROWS_MIN", 1)
    watcher_of(music, [], consumer="me").run_once()
    write(music, *range(100))
    overview = read(music)
    assert consumer_in(overview, "me").rows_behind == Count(5, at_least=True)
    index = next(each for each in overview.indexes if each.table == "Singers")
    assert [each.count for each in index.shards] == [Count(3, at_least=True)] * 4
    exact = observer_of(music).count_exactly("Singers")
    assert (exact.rows, exact.clearable) == (100, 0)


@pytest.mark.both_dialects
def test_many_shards_are_counted_in_several_queries(create_database: CreateDatabase) -> None:
    database = create_database(SINGERS)
    make_watchable(database, shards=250)
    write_singers(database, range(30), "name")
    (index,) = read(database).indexes
    assert (len(index.shards), index.rows) == (250, Count(30))


@pytest.mark.both_dialects
def test_what_cannot_be_counted_is_refused(music: Database) -> None:
    observer = observer_of(music)
    with pytest.raises(TableNotFoundError):
        observer.count_exactly("Nothing")
    music.update_ddl(["CREATE TABLE Plain (Id INT64) PRIMARY KEY (Id)"]).result(30)
    with pytest.raises(NotWatchableError):
        observer.count_exactly("Plain")


def test_a_table_that_is_dropped_does_not_hide_the_others(music: Database) -> None:
    write(music, 1)
    watcher_of(music, [], consumer="me", tables=["*"]).run_once()
    music.update_ddl(["DROP INDEX AlbumsByShardAndTime", "DROP TABLE Albums"]).result(30)
    me = consumer_in(read(music), "me")
    notes = {table.table: table.note for table in me.tables}
    assert notes["Singers"] is None
    assert "Albums" in (notes["Albums"] or "")


@pytest.mark.both_dialects
def test_counts_are_taken_less_often_and_kept_as_a_history(music: Database) -> None:
    write(music, 1)
    seldom = Observer(music, address_of(music), TABLE, 0.0, count_seconds=3_600)
    often = Observer(music, address_of(music), TABLE, 0.0, count_seconds=0)
    first = seldom.read()
    write(music, 2, 3)
    second = seldom.read()
    assert second.counted_at == first.counted_at
    assert second.read_at > first.read_at
    assert len(often.read().history["Singers"]) == 1
    write(music, 4)
    history = often.read().history["Singers"]
    for _ in range(10_000):  # counting takes a tenth of the time at most
        if len(history) > 1:
            break
        history = often.read().history["Singers"]
    assert [sum(sample.rows) for sample in history] == [3, 4]


def test_tables_of_an_older_release_are_read(database: Database) -> None:
    database.update_ddl(
        [
            "CREATE TABLE SpannerWatcherConsumers (Consumer STRING(256) NOT NULL,"
            " State STRING(32) NOT NULL, Command STRING(16), Owner STRING(64),"
            " LeaseUntil TIMESTAMP, Windows INT64, DeliveredRows INT64, RowsPerSecond FLOAT64,"
            " DeadLetters INT64,"
            " UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true))"
            " PRIMARY KEY (Consumer)"
        ]
    ).result(30)
    with database.batch() as batch:
        columns = ("Consumer", "State", "UpdatedAt")
        row = ("old", "NOT_STARTED", COMMIT_TIMESTAMP)
        batch.insert("SpannerWatcherConsumers", columns, [row])
    assert consumer_in(read(database), "old").state == "STOPPED"


@pytest.mark.parametrize(("text", "seconds"), [("1h", HOUR), ("'7d'", 168 * HOUR), ("90m", 5_400)])
def test_periods(text: str, seconds: int) -> None:
    assert parse_period(text) == seconds


def test_a_period_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="retention"):
        parse_period("soon")
