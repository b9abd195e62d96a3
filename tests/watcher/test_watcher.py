"""``Watcher`` as a user writes it: many tables, callbacks, leases, commands, failures."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fixtures.consumers import error_kinds
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, fetch_now, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_in_thread, run_without_error
from google.api_core.exceptions import AlreadyExists, NotFound
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher import Change, Operation, Watcher
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import FilePositions, SpannerPositions
from watcher.consumers.states import Command, State
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    LeaseHeldError,
    LeaseLostError,
    NotWatchableError,
    PositionConflictError,
    TableNotFoundError,
)
from watcher.runners.watcher_run.idle_pause import longest_idle_pause
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.dead_letters import read_dead_letters
from watcher.spanner.timestamps import format_timestamp, to_micros
from watcher.tables.discovery import discover_table

ALBUMS = (
    "CREATE TABLE Albums (SingerId INT64, AlbumId INT64, Title STRING(MAX), Gone BOOL)"
    " PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE"
)
ALBUMS_INDEX = "CREATE NULL_FILTERED INDEX AlbumsByShardAndTime ON Albums(ShardId, LastModified)"
PLAIN = "CREATE TABLE Unwatched (Id INT64) PRIMARY KEY (Id)"
SECONDS = 60


@pytest.fixture
def music(create_database: CreateDatabase) -> Database:
    database: Database = create_database(SINGERS, ALBUMS, PLAIN)
    make_watchable(database, "Singers", "Albums")
    return database


def add(database: Database, singer: int, *albums: int, title: str = "title") -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(singer, title)])
        rows = [(singer, album, title) for album in albums]
        batch.insert_or_update("Albums", ("SingerId", "AlbumId", "Title"), rows)


def options(database: Database, **more: object) -> dict[str, Any]:
    return {"database": str(address_of(database)), "start": "earliest", "interval": "20ms"} | more


def deliver(database: Database, **more: object) -> list[Change]:
    seen = ChangeCollector()
    watcher = Watcher(**options(database, **more))
    watcher.on_change(seen)
    watcher.run_once()
    return seen.changes


def keys(changes: list[Change]) -> list[tuple[str, tuple[object, ...]]]:
    return [(change.table, tuple(change.key.values())) for change in changes]


def test_five_lines_watch_a_whole_database(music: Database) -> None:
    add(music, 1, 1, 2)
    add(music, 2)
    changes = deliver(music)
    expected = [("Singers", (1,)), ("Albums", (1, 1)), ("Albums", (1, 2)), ("Singers", (2,))]
    assert sorted(keys(changes)) == sorted(expected)
    assert {change.operation for change in changes} == {Operation.UPSERT}
    assert len({change.window for change in changes}) == 1


def test_globs_choose_tables_and_names_must_be_there(music: Database) -> None:
    add(music, 1, 1)
    assert keys(deliver(music, tables=["Alb*"])) == [("Albums", (1, 1))]
    assert keys(deliver(music, tables=["*"], exclude=["albums"])) == [("Singers", (1,))]
    with pytest.raises(TableNotFoundError, match="Nothing"):
        deliver(music, tables=["Nothing"])
    with pytest.raises(NotWatchableError, match="ddl apply"):
        deliver(music, tables=["Unwatched"])
    with pytest.raises(NotWatchableError, match="no table"):
        deliver(music, tables=["X*"])


def test_transactions_arrive_whole_and_in_commit_order(music: Database) -> None:
    for number in range(5):
        add(music, number, number, number + 1)
    seen: list[tuple[Change, ...]] = []
    watcher = Watcher(**options(music, transactions=True))
    watcher.on_transaction(seen.append)
    watcher.run_once()
    assert [sorted(keys(list(each))) for each in seen] == [
        [("Albums", (n, n)), ("Albums", (n, n + 1)), ("Singers", (n,))] for n in range(5)
    ]
    assert all(len({change.commit_timestamp for change in each}) == 1 for each in seen)


def test_a_backlog_comes_in_windows_of_bounded_size(music: Database) -> None:
    for number in range(12):
        add(music, number, number)
    sizes: list[int] = []
    seen: list[Any] = []
    watcher = Watcher(**options(music, max_rows=6))
    watcher.on_batch(seen.append)
    watcher.run_once()
    for window in sorted({rows.window for rows in seen}):
        sizes.append(sum(rows.batch.num_rows for rows in seen if rows.window == window))
    assert sum(sizes) == 24
    assert max(sizes) <= 6


def test_a_cut_holds_what_was_deleted_after_it(music: Database) -> None:
    """A window that is cut ends before now: what was deleted since was there at its end."""
    add(music, 1, 1)
    for number in range(2, 8):
        add(music, number)
    with music.batch() as batch:
        batch.delete("Albums", KeySet(keys=[(1, 1)]))
    seen: list[Any] = []
    watcher = Watcher(**options(music, max_rows=2))
    watcher.on_batch(seen.append)
    watcher.run_once()
    first = min(rows.window for rows in seen)
    assert {rows.table.name for rows in seen if rows.window == first} == {"Singers", "Albums"}


def test_a_backlog_that_is_older_than_the_versions_is_delivered_in_bounded_windows(
    music: Database,
) -> None:
    """A consumer was away for longer than version_retention_period."""
    old = datetime.now(UTC) - timedelta(hours=3)
    with music.batch() as batch:
        rows = [(key, old + timedelta(seconds=key)) for key in range(12)]
        batch.insert("Singers", ("SingerId", "LastModified"), rows)
    seen: list[Any] = []
    watcher = Watcher(**options(music, max_rows=5))
    watcher.on_batch(seen.append)
    watcher.run_once()
    keys = [key for rows in seen for key in rows.batch.column("SingerId").to_pylist()]
    assert sorted(keys) == list(range(12))
    windows = {rows.window for rows in seen}
    assert len(windows) >= 3


def test_a_second_instance_is_refused_and_takes_over_when_the_first_is_gone(
    music: Database,
) -> None:
    add(music, 1)
    seen = ChangeCollector()
    first = Watcher(**options(music, consumer="one", lease="1s"))
    first.on_change(seen)
    with run_in_thread(first):
        seen.wait(1)
        second = Watcher(**options(music, consumer="one", lease="1s"))
        second.on_change(print)
        with pytest.raises(LeaseHeldError, match="one"):
            second.run()
    add(music, 2)
    assert keys(deliver(music, consumer="one")) == [("Singers", (2,))]


def test_an_instance_that_lost_its_name_ends_and_moves_no_position(music: Database) -> None:
    seen = ChangeCollector()
    robbed = Watcher(**options(music, consumer="cold", lease="1s"))
    robbed.on_change(seen)
    add(music, 1)
    with run_in_thread(robbed) as raised:
        seen.wait(1)
        consumers = Consumers(music, "SpannerWatcherPositions")
        robbed.pause()
        with music.batch() as batch:  # as if the lease had run out and another had taken it
            batch.update(consumers.table, ("Consumer", "Owner"), [("cold", "another")])
        add(music, 2)
        robbed.resume()
        for _ in range(3_000):
            if raised:
                break
            threading.Event().wait(0.02)
    assert isinstance(raised[0], LeaseLostError | PositionConflictError)
    positions = SpannerPositions(music, "SpannerWatcherPositions").load_all("cold")
    with music.snapshot() as snapshot:
        newest = next(iter(snapshot.execute_sql("SELECT MAX(LastModified) FROM Singers")))[0]
    assert all(position < to_micros(newest) for position in positions.values())


def test_operators_pause_resume_and_drain_from_elsewhere(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, consumer="ops", lease="1s"))
    watcher.on_change(seen)
    consumers = Consumers(music, "SpannerWatcherPositions")

    def wait_for_state(state: State) -> None:
        for _ in range(3_000):
            consumer = consumers.status("ops")
            if consumer is not None and consumer.state is state:
                return
            threading.Event().wait(0.02)
        pytest.fail(f"never {state}")

    add(music, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        consumers.ask("ops", Command.PAUSE)
        wait_for_state(State.PAUSED)
        add(music, 2)
        consumers.ask("ops", Command.RESUME)
        assert keys(seen.wait(2)) == [("Singers", (1,)), ("Singers", (2,))]
        consumers.ask("ops", Command.DRAIN)
        wait_for_state(State.STOPPED)
    assert not raised
    with pytest.raises(ConfigurationError, match="ops"):
        consumers.ask("nobody", Command.STOP)


def test_a_callback_that_raises_gets_the_change_again(music: Database) -> None:
    add(music, 1)
    seen: list[Change] = []

    def moody(change: Change) -> None:
        seen.append(change)
        if len(seen) < 3:
            raise RuntimeError("not now")

    watcher = Watcher(**options(music, delivery={"backoff": 0}))
    watcher.on_change(moody)
    watcher.run_once()
    assert len(seen) == 3
    assert len({change.id for change in seen}) == 1


def test_a_callback_that_always_raises_stops_and_loses_nothing(music: Database) -> None:
    add(music, 1)

    def never(_: Change) -> None:
        raise RuntimeError("never")

    watcher = Watcher(**options(music, consumer="strict", delivery={"backoff": 0, "retries": 1}))
    watcher.on_change(never)
    with pytest.raises(DeliveryError, match="2 times"):
        watcher.run_once()
    consumers = Consumers(music, "SpannerWatcherPositions")
    status = consumers.status("strict")
    assert status is not None
    assert status.state is State.FAILED_PERMANENTLY
    assert not status.alive
    # The first refusal, and the end.
    assert error_kinds(music, "strict") == ["DeliveryError", "DeliveryError"]
    assert keys(deliver(music, consumer="strict")) == [("Singers", (1,))]


def test_skipped_changes_lie_in_the_dead_letter_file(music: Database, tmp_path: Path) -> None:
    add(music, 1)
    add(music, 2)
    file = tmp_path / "dead.jsonl"
    seen: list[Change] = []

    def picky(change: Change) -> None:
        if change.key == {"SingerId": 1}:
            raise RuntimeError("not this one")
        seen.append(change)

    delivery = {"backoff": 0, "retries": 1, "then": "skip", "dead_letters": file}
    watcher = Watcher(**options(music, delivery=delivery))
    watcher.on_change(picky)
    watcher.run_once()
    assert keys(seen) == [("Singers", (2,))]
    (letter,) = read_dead_letters(file)
    assert letter["key"] == {"SingerId": 1}
    assert "not this one" in str(letter["error"])


def test_a_drain_in_the_middle_of_a_window_delivers_what_came_after_it(music: Database) -> None:
    watcher = Watcher(**options(music, tables=["Singers"]))
    delivered: list[int] = []

    @watcher.on_change
    def drain_at_first(change: Change) -> None:
        delivered.append(int(str(change.key["SingerId"])))
        if delivered == [1]:
            add(music, 2)
            watcher.drain()

    add(music, 1)
    watcher.run()
    assert delivered == [1, 2]


def test_tables_made_watchable_later_are_picked_up(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, refresh=0))
    watcher.on_change(seen)
    add(music, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        make_watchable(music, "Unwatched")
        with music.batch() as batch:
            batch.insert("Unwatched", ("Id",), [(7,)])
        assert keys(seen.wait(2)) == [("Singers", (1,)), ("Unwatched", (7,))]
    assert not raised


def test_tables_made_watchable_while_it_is_down_are_watched_from_their_first_row(
    music: Database,
) -> None:
    """Also by a consumer that began with what came after it."""
    for expected in ([], [("Unwatched", (7,))]):
        seen = ChangeCollector()
        watcher = Watcher(**options(music, consumer="c", start="latest"))
        watcher.on_change(seen)
        watcher.run_once()
        assert keys(seen.changes) == expected
        if not expected:
            make_watchable(music, "Unwatched")
            with music.batch() as batch:
                batch.insert("Unwatched", ("Id",), [(7,)])


def test_columns_come_and_go_while_it_runs(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, tables=["Albums"], refresh=0))
    watcher.on_change(seen)
    add(music, 1, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        music.update_ddl(["ALTER TABLE Albums ADD COLUMN Label STRING(MAX)"]).result(60)
        add(music, 1, 2)
        seen.wait(2)
        music.update_ddl(["ALTER TABLE Albums DROP COLUMN Label"]).result(60)
        add(music, 1, 3)
        changes = seen.wait(3)
    assert not raised
    assert keys(changes) == [("Albums", (1, number)) for number in (1, 2, 3)]
    assert "Label" not in (changes[-1].new_values or {})


def test_types_tables_and_indexes_change_while_it_runs(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, tables=["*"], refresh=0))
    watcher.on_change(seen)
    add(music, 1, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(2)
        music.update_ddl(["ALTER TABLE Singers ALTER COLUMN LastName BYTES(200)"]).result(60)
        with music.batch() as batch:
            batch.update("Singers", ("SingerId", "LastName"), [(1, b"Ynl0ZXM=")])
        assert (seen.wait(3)[-1].new_values or {})["LastName"] == b"bytes"
        replaced = "CREATE NULL_FILTERED INDEX Another ON Singers(ShardId, LastModified)"
        music.update_ddl([replaced, "DROP INDEX SingersByShardAndTime"]).result(60)
        add_singer(music, 2)
        assert keys(seen.wait(4))[-1] == ("Singers", (2,))
        music.update_ddl(["DROP INDEX AlbumsByShardAndTime", "DROP TABLE Albums"]).result(60)
        add_singer(music, 3)
        assert keys(seen.wait(5))[-1] == ("Singers", (3,))
        music.update_ddl([ALBUMS]).result(60)
        make_watchable(music, "Albums")
        with music.batch() as batch:
            batch.insert("Albums", ("SingerId", "AlbumId"), [(3, 9)])
        assert keys(seen.wait(6))[-1] == ("Albums", (3, 9))
    assert not raised


def add_singer(database: Database, singer: int) -> None:
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId",), [(singer,)])


def test_an_index_that_is_dropped_stops_the_watcher_and_says_so(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, tables=["Singers"], refresh=3600, index_wait=0))
    watcher.on_change(seen)
    add(music, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        music.update_ddl(["DROP INDEX SingersByShardAndTime"]).result(60)
        add(music, 2)
        for _ in range(3_000):
            if raised:
                break
            threading.Event().wait(0.02)
    assert raised
    assert "SingersByShardAndTime" in str(raised[0])


@pytest.mark.parametrize("refresh", [0, 3600])
@pytest.mark.parametrize("then", [["DROP TABLE Albums"], [ALBUMS_INDEX]])
def test_a_table_without_its_index_is_waited_for(
    music: Database, refresh: int, then: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Spanner drops a table only when its indexes are gone, minutes before."""
    seen = ChangeCollector()
    watcher = Watcher(**options(music, tables=["*"], refresh=refresh))
    watcher.on_change(seen)
    add(music, 1, 1)
    with caplog.at_level(logging.INFO), run_in_thread(watcher) as raised:
        seen.wait(2)
        music.update_ddl(["DROP INDEX AlbumsByShardAndTime"]).result(60)
        add_singer(music, 2)
        while "no other index replaces it" not in caplog.text:
            assert not raised
            threading.Event().wait(0.02)
        music.update_ddl(then).result(60)
        assert keys(seen.wait(3))[-1] == ("Singers", (2,))
    assert not raised


def test_an_index_that_is_dropped_may_be_done_without(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, tables=["Singers"], refresh=3600, on_missing_index="scan"))
    watcher.on_change(seen)
    add(music, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        music.update_ddl(["DROP INDEX SingersByShardAndTime"]).result(60)
        add(music, 2)
        assert keys(seen.wait(2)) == [("Singers", (1,)), ("Singers", (2,))]
    assert not raised


def test_soft_deletes_are_deletes(music: Database) -> None:
    add(music, 1, 1, 2)
    with music.batch() as batch:
        batch.update("Albums", ("SingerId", "AlbumId", "Gone"), [(1, 2, True)])
    changes = deliver(music, tables=["Albums"], table={"Albums": {"deleted": "Gone"}})
    operations = {tuple(change.key.values()): change.operation for change in changes}
    assert operations == {(1, 1): Operation.UPSERT, (1, 2): Operation.DELETE}


def test_positions_in_a_file_go_on_where_they_were(music: Database, tmp_path: Path) -> None:
    kept = {"keep": "file", "path": tmp_path / "positions.json"}
    add(music, 1)
    assert keys(deliver(music, consumer="file", positions=kept)) == [("Singers", (1,))]
    assert deliver(music, consumer="file", positions=kept) == []
    add(music, 2)
    assert keys(deliver(music, consumer="file", positions=kept)) == [("Singers", (2,))]
    assert set(FilePositions(kept["path"]).load_all("file")) == {"Singers", "Albums"}  # type: ignore[arg-type]


def test_faults_of_the_server_are_outlived(music: Database, faults: Callable[..., None]) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, consumer="tough"))
    watcher.on_change(seen)
    with run_in_thread(watcher) as raised:
        faults(aborted_commit_probability=0.3, unavailable_after_rows=3, lost_sessions=5, seed=7)
        for number in range(20):
            insert_whatever_comes(music, number)
        changes = seen.wait(20)
    assert not raised
    assert {change.key["SingerId"] for change in changes} == set(range(20))


def insert_whatever_comes(database: Database, key: int) -> None:
    """The writer is struck by the same faults; a lost session needs a new client."""
    row = [(key, "name")]
    for _ in range(10):
        fresh = database._instance.database(database.database_id)
        with contextlib.suppress(NotFound, AlreadyExists):
            fresh.run_in_transaction(
                lambda transaction: transaction.insert("Singers", ("SingerId", "LastName"), row)
            )
            return
    pytest.fail("the writer never came through")


def test_clearing_on_schedule_empties_the_indexes(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, consumer="tidy", clearing={"every": "50ms"}))
    watcher.on_change(seen)
    with run_in_thread(watcher) as raised:
        add(music, 1, 1, 2)
        seen.wait(3)
        clearing = Clearing(
            music,
            discover_table(music, "Albums"),
            SpannerPositions(music, "SpannerWatcherPositions"),
        )
        for _ in range(3_000):
            if count_in_index(music) == 0:
                break
            threading.Event().wait(0.02)
        assert clearing.count().rows == 0
    assert not raised
    assert count_in_index(music) == 0


def count_in_index(database: Database) -> int:
    with database.snapshot() as snapshot:
        query = "SELECT COUNT(*) FROM Albums WHERE LastModified IS NOT NULL"
        return int(next(iter(snapshot.execute_sql(query)))[0])


def test_metrics_tell_rows_and_lag(music: Database) -> None:
    add(music, 1, 1)
    watcher = Watcher(**options(music))
    watcher.on_change(lambda _: None)
    watcher.run_once()
    port = watcher.metrics.serve("127.0.0.1", 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    assert 'spanner_watcher_rows_total{consumer="watch",table="Albums"} 1.0' in text
    assert 'spanner_watcher_windows_total{consumer="watch"} 1.0' in text
    assert "spanner_watcher_lag_seconds" in text


def test_a_watcher_may_be_run_again_and_goes_on_where_it_was(
    music: Database, faults: Callable[..., None]
) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, metrics={"port": 0}))
    watcher.on_change(seen)
    add(music, 1)
    with run_in_thread(watcher) as raised:
        seen.wait(1)
        port = watcher.metrics.serve("127.0.0.1", 0)
        watcher.drain()
    assert not raised
    faults(unavailable_after_rows=1, unavailable_streams_max=5)
    add(music, 2, 3, 4)
    assert watcher.run_once() == 3
    assert watcher.run_once() == 0
    with run_in_thread(watcher) as raised:
        add(music, 5)
        seen.wait(5)
    assert not raised
    assert keys(seen.changes)[0] == ("Singers", (1,))
    assert sorted(keys(seen.changes)[1:4]) == [
        ("Albums", (2, 3)),
        ("Albums", (2, 4)),
        ("Singers", (2,)),
    ]
    assert keys(seen.changes)[4:] == [("Singers", (5,))]
    assert watcher.metrics.serve("127.0.0.1", 0) == port


def test_metrics_tell_rows_scanned_and_what_was_tried_again(music: Database) -> None:
    add(music, 1, 1, 2, 3)
    tries: list[Change] = []
    watcher = Watcher(
        **options(music, metrics={"port": 0}, delivery={"retries": 1, "backoff": "1ms"})
    )

    @watcher.on_change
    def fail_first(change: Change) -> None:
        tries.append(change)
        if len(tries) == 1:
            raise ConnectionError

    watcher.run_once()
    sample = watcher.metrics.registry.get_sample_value
    labels = {"consumer": "watch"}
    assert (sample("spanner_watcher_scanned_rows", labels) or 0) >= 4
    assert sample("spanner_watcher_retries_total", labels | {"what": "change"}) == 1
    assert sample("spanner_watcher_stream_restarts", labels) == 0


@pytest.mark.parametrize("pauses", [{"adaptive": True}, {"idle_interval": "45s"}])
def test_a_watcher_that_pauses_longer_while_it_is_idle_delivers_what_comes(
    music: Database, pauses: dict[str, object]
) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, interval="5ms", **pauses))
    watcher.on_change(seen)
    with run_in_thread(watcher) as raised:
        for singer in range(3):
            add(music, singer)
            seen.wait(singer + 1)
    assert not raised


def test_how_long_an_idle_watcher_pauses() -> None:
    database = "projects/p1/instances/i1/databases/d1"
    settings: dict[str, object] = {"interval": "2s", "database": database, "tables": ["Singers"]}
    changes: tuple[dict[str, object], ...] = (
        {},
        {"adaptive": True},
        {"idle_interval": "30s"},
        {"idle_interval": "1s"},
    )
    pauses = [longest_idle_pause(parse_watch_config(settings | more)) for more in changes]
    assert pauses == [0.0, 18.0, 28.0, 0.0]
    with pytest.raises(ConfigurationError, match="idle_interval"):
        parse_watch_config(settings | {"idle_interval": "50s"})


def test_an_adaptive_watcher_polls_again_at_once_while_rows_keep_coming(music: Database) -> None:
    seen = ChangeCollector()
    watcher = Watcher(**options(music, adaptive=True, interval="1h"))

    @watcher.on_change
    def write_next(change: Change) -> None:
        singer = int(str(change.key["SingerId"]))
        if singer < 3:
            add(music, singer + 1)
        seen(change)

    add(music, 1)
    with run_without_error(watcher):
        assert keys(seen.wait(3)) == [("Singers", (singer,)) for singer in (1, 2, 3)]


@pytest.mark.ddl(
    "CREATE TABLE Events (Id INT64, Shard INT64, `At` TIMESTAMP OPTIONS (allow_commit_timestamp="
    "true)) PRIMARY KEY (Id)",
    "CREATE NULL_FILTERED INDEX EventsByTime ON Events(Shard, `At`)",
)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"shard": "fixed", "shard_column": "Shard", "shard_values": (1,)}, {1, 4}),
        ({"shard": "fixed", "shard_column": "Shard", "shard_values": (1, 2)}, {1, 2, 4}),
        ({"shard": "not-null", "shard_column": "Shard"}, {1, 2, 3, 4}),
        ({"shard": "none"}, {1, 2, 3, 4, 5}),
    ],
)
def test_shards_of_tables_that_were_not_prepared(
    database: Database, spec: dict[str, object], expected: set[int]
) -> None:
    rows = [(1, 1), (2, 2), (3, 3), (4, 1), (5, None)]
    with database.batch() as batch:
        columns = ("Id", "Shard", "At")
        stamped = [(*row, "spanner.commit_timestamp()") for row in rows]
        batch.insert("Events", columns, stamped)
    changes = deliver(database, tables=["Events"], table={"Events": spec})
    assert {change.key["Id"] for change in changes} == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tabels": ["A"]}, "did you mean 'tables'"),
        ({"delivery": {"retrys": 1}}, "did you mean 'retries'"),
        ({"table": {"A": {"shrd": "none"}}}, "did you mean 'shard'"),
        ({"interval": "soon"}, "option 'interval': invalid duration 'soon'"),
        ({"clearing": {"every": "1m"}}, "consumer"),
        ({"positions": {"keep": "file"}}, "positions.path"),
        ({"delivery": {"then": "skip"}}, "dead_letters"),
        ({"table": {"A": {"shard": "fixed", "shard_column": "B"}}}, "shard_values"),
        ({"start": "yesterday"}, "option 'start': invalid start"),
        ({"database": "nowhere"}, "does not name a database"),
    ],
)
def test_a_wrong_configuration_is_refused_with_what_is_wrong(
    given: dict[str, object], said: str
) -> None:
    whole = {"database": "projects/p1/instances/i1/databases/d1"} | given
    with pytest.raises(ConfigurationError, match=said):
        parse_watch_config(whole)


def test_a_start_in_the_future_is_refused_or_said(
    music: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ahead = format_timestamp(fetch_now(music) + 600_000_000)
    with pytest.raises(ConfigurationError, match=r"s ahead of Spanner's clock, and --once"):
        deliver(music, consumer="early", start=ahead)
    watcher = Watcher(**options(music, consumer="early", start=ahead))
    watcher.on_change(print)
    watcher.on_start(lambda _start: watcher.stop())
    watcher.run()
    assert "s ahead of Spanner's clock: changes before it are not delivered" in caplog.text


def test_json_of_a_dead_letter_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "dead.jsonl"
    file.write_text(json.dumps({"id": "x"}) + "\nnot json\n")
    with pytest.raises(ConfigurationError, match=r"dead.jsonl:2"):
        list(read_dead_letters(file))


def test_a_run_of_once_tries_again_what_may_go_away(
    music: Database, faults: Callable[..., None]
) -> None:
    add(music, 1, 1)
    faults(unavailable_after_rows=1, unavailable_streams_max=3, lost_sessions=1)
    assert sorted(keys(deliver(music))) == [("Albums", (1, 1)), ("Singers", (1,))]


def test_a_run_of_once_ends_though_rows_keep_coming(music: Database) -> None:
    """What is there when it begins is delivered: each change brings another row."""
    for number in range(3):
        add(music, number)
    watcher = Watcher(**options(music, consumer="once", max_rows=1, tables=["Singers"]))
    seen: list[int] = []

    def bring_another(change: Change) -> None:
        number = change.key["SingerId"]
        assert isinstance(number, int)
        seen.append(number)
        add(music, number + 100)

    watcher.on_change(bring_another)
    assert watcher.run_once() == 3
    assert sorted(seen) == [0, 1, 2]
    assert watcher.run_once() == 3
    assert sorted(seen) == [0, 1, 2, 100, 101, 102]
