"""Clearing by partitioned DML and key by key from the index: the same rows leave."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from fixtures.singers import SINGERS, address_of, capture_of, fetch_now, make_watchable
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from ddl.migration.apply import read_schema
from watcher.captures.change_stream import ChangeFilter, ChangeStreamCapture, find_stream
from watcher.cli import app
from watcher.consumers.clearing import Clearing, Method
from watcher.consumers.clearing.by_index import ByIndex
from watcher.consumers.clearing.methods import TABLE_ROWS_PER_CLEARED, read_load
from watcher.consumers.positions import MemoryPositions, Position, SpannerPositions
from watcher.model.errors import IndexMissingError
from watcher.model.window import Window
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec, WatchedTable

METHODS = list(Method)
PAIRS = """CREATE TABLE Pairs (
  A STRING(10), B BYTES(10), C NUMERIC, Name STRING(10)
) PRIMARY KEY (A, B DESC, C)"""
SETS = (
    "CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36) NOT NULL, CommitTimestamp TIMESTAMP"
    " OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (ChangeSetId)",
    "CREATE TABLE Songs (Id INT64, ChangeSetId STRING(36)) PRIMARY KEY (Id)",
    "CREATE INDEX SongsByChangeSet ON Songs(ChangeSetId)",
)


def write(database: Database, first: int, end: int) -> int:
    """The commit timestamp of singers with these keys."""
    with database.batch() as batch:
        rows = [(key, "name") for key in range(first, end)]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)
    return to_micros(batch.committed)


def make_clearing(
    database: Database, method: Method, up_to: int, table: WatchedTable | None = None
) -> Clearing:
    """Behind one consumer at a position."""
    watched = table or discover_table(database, "Singers")
    positions = MemoryPositions()
    positions.save(Position("reader", watched.name, up_to), None)
    return Clearing(database, watched, positions, method=method)


def rows_of(database: Database, *columns: str) -> list[tuple[object, ...]]:
    with database.snapshot() as snapshot:
        return [tuple(row) for row in snapshot.read("Singers", columns, KeySet(all_=True))]


@pytest.mark.parametrize("method", METHODS)
def test_delivered_rows_leave_and_later_ones_stay(singers: Database, method: Method) -> None:
    write(singers, 0, 20)
    delivered = fetch_now(singers)
    later = write(singers, 15, 25)
    assert make_clearing(singers, method, delivered).clear().rows == 15
    expected = [(key, None if key < 15 else to_datetime(later)) for key in range(25)]
    assert rows_of(singers, "SingerId", "LastModified") == expected


@pytest.mark.parametrize("method", METHODS)
def test_processed_rows_leave_and_keep_their_timestamp(
    singers_with_processed: Database, method: Method
) -> None:
    committed = write(singers_with_processed, 0, 3)
    delivered = fetch_now(singers_with_processed)
    later = write(singers_with_processed, 2, 3)
    done = make_clearing(singers_with_processed, method, delivered).clear()
    assert done.rows == 2
    assert rows_of(singers_with_processed, "SingerId", "LastModified", "Processed") == [
        (0, to_datetime(committed), True),
        (1, to_datetime(committed), True),
        (2, to_datetime(later), None),
    ]
    assert make_clearing(singers_with_processed, method, delivered).clear().rows == 0


@pytest.mark.ddl(*SETS)
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_delivered_change_sets_are_deleted(
    database: Database, method: Method, sharded: bool
) -> None:
    if sharded:
        stamp = "CommitTimestamp"
        make_watchable(database, "CHANGE_SETS", timestamp_column=stamp, take_over=[stamp])
    watched = discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))

    def add(*ids: str) -> int:
        columns = ("ChangeSetId", "CommitTimestamp")
        with database.batch() as batch:
            stamp = "spanner.commit_timestamp()"
            batch.insert("CHANGE_SETS", columns, [(each, stamp) for each in ids])
        return to_micros(batch.committed)

    delivered = add("a", "b", "c")
    add("d")
    deleting = make_clearing(database, method, delivered, watched)
    if method is Method.INDEX and not sharded:
        with pytest.raises(IndexMissingError, match="no index to clear through"):
            deleting.clear()
        return
    assert deleting.count().rows == 3
    assert deleting.clear().rows == 3
    with database.snapshot() as snapshot:
        left = snapshot.read("CHANGE_SETS", ("ChangeSetId",), KeySet(all_=True))
        assert [row[0] for row in left] == ["d"]


@pytest.mark.ddl(PAIRS)
def test_rows_of_one_commit_and_of_any_key_leave_page_by_page(database: Database) -> None:
    make_watchable(database, "Pairs", shards=2, shard_key=["Name"])
    keys = [(a, b, c) for a in (None, "", "a") for b in (None, b"AAEC", b"/w==") for c in (None, 1)]
    with database.batch() as batch:
        rows = [(*key, "same") for key in keys]
        batch.insert("Pairs", ("A", "B", "C", "Name"), rows)
    safe = fetch_now(database)
    watched = discover_table(database, "Pairs")
    load = read_load(database, watched, safe)
    assert len(load.shards) == 1
    assert ByIndex(database, watched, safe, limit=4).clear(load) == len(keys)
    assert read_load(database, watched, safe).rows == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_row_with_nanoseconds_is_cleared_once_it_is_delivered(
    singers: Database, method: Method
) -> None:
    """Written by an application: a window ends before or after it, in microseconds."""
    with singers.batch() as batch:
        columns = ("SingerId", "LastModified")
        batch.insert("Singers", columns, [(1, "2020-01-01T00:00:00.000001500Z")])
    below = to_micros(to_datetime(0) + timedelta(days=18_262, microseconds=1))
    assert make_clearing(singers, method, below).clear().rows == 0
    assert make_clearing(singers, method, below + 1).clear().rows == 1


def test_auto_goes_by_the_index_when_few_rows_of_a_large_table_are_cleared(
    singers: Database,
) -> None:
    rows = 50 * TABLE_ROWS_PER_CLEARED
    write(singers, 0, rows)
    everything = make_clearing(singers, Method.AUTO, fetch_now(singers))
    assert everything.explain().auto is Method.PARTITIONED
    assert everything.clear().rows == rows
    write(singers, 0, 49)
    few = make_clearing(singers, Method.AUTO, fetch_now(singers)).explain()
    assert few.auto is Method.INDEX
    assert few.by_index is not None
    assert (few.by_index.table_rows_read, few.by_index.rows_written) == (49, 49)
    assert (few.partitioned.table_rows_read, few.at_least) == (
        49 * TABLE_ROWS_PER_CLEARED + 1,
        True,
    )
    write(singers, 0, 50)
    assert (
        make_clearing(singers, Method.AUTO, fetch_now(singers)).explain().auto is Method.PARTITIONED
    )


@pytest.mark.ddl(
    "CREATE TABLE Singers (SingerId INT64, LastModified TIMESTAMP DEFAULT"
    " (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP())"
    " OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (SingerId)"
)
def test_without_an_index_only_partitioned_clearing_is_left(database: Database) -> None:
    with database.batch() as batch:
        columns = ("SingerId", "LastModified")
        batch.insert("Singers", columns, [(1, "spanner.commit_timestamp()")])
    watched = discover_table(database, "Singers", TableSpec(shard="none"))
    delivered = fetch_now(database)
    shown = make_clearing(database, Method.AUTO, delivered, watched).explain()
    assert (shown.by_index, shown.auto) == (None, Method.PARTITIONED)
    with pytest.raises(IndexMissingError):
        make_clearing(database, Method.INDEX, delivered, watched).clear()
    assert make_clearing(database, Method.AUTO, delivered, watched).clear().rows == 1


@pytest.mark.ddl(SINGERS)
@pytest.mark.parametrize("method", METHODS)
def test_change_streams_that_allow_it_do_not_see_clearing(
    database: Database, method: Method
) -> None:
    make_watchable(database)
    database.update_ddl(
        ["CREATE CHANGE STREAM Quiet FOR ALL OPTIONS (allow_txn_exclusion = true)"]
    ).result(60)
    write(database, 0, 3)
    begin = fetch_now(database)
    assert make_clearing(database, method, begin).clear().rows == 3
    assert not any_change_after(database, begin)
    write(database, 0, 3)
    assert any_change_after(database, begin)


def any_change_after(database: Database, begin: int) -> bool:
    """True when the stream Quiet tells of a change of Singers."""
    queries = QueryClient(address_of(database))
    stream = find_stream(read_schema(database), "Quiet", ["Singers"], database.name)
    only_singers = ChangeFilter(frozenset({"Singers"}), frozenset(), None)
    capture = ChangeStreamCapture(queries, stream, only_singers, None)
    window = Window(begin, fetch_now(database))
    return capture.has_changes(window)


def test_explain_shows_both_methods_and_changes_nothing(singers: Database) -> None:
    write(singers, 0, 3)
    positions = SpannerPositions(singers)
    positions.create()
    positions.save(Position("reader", "Singers", fetch_now(singers)), None)
    before = (read_schema(singers), rows_of(singers, "SingerId", "LastModified"))
    where = ["clear", "-d", str(address_of(singers)), "-t", "Singers", "--explain"]
    shown = CliRunner().invoke(app, [*where, "--json"])
    assert shown.exit_code == 0, shown.output
    explanation = json.loads(shown.stdout.splitlines()[-1])
    assert explanation["partitioned"] == {
        "index_entries_read": 0,
        "table_rows_read": 3,
        "rows_written": 3,
        "transactions": None,
    }
    assert explanation["by_index"]["index_entries_read"] == 3
    assert (explanation["auto"], explanation["slowest_consumer"]) == ("partitioned", "reader")
    text = CliRunner().invoke(app, where).output
    assert "auto chooses: partitioned" in text
    assert (read_schema(singers), rows_of(singers, "SingerId", "LastModified")) == before


@pytest.mark.parametrize("method", ["index", "auto"])
def test_the_command_clears_by_the_method_that_is_chosen(singers: Database, method: str) -> None:
    write(singers, 0, 3)
    positions = SpannerPositions(singers)
    positions.create()
    positions.save(Position("reader", "Singers", fetch_now(singers)), None)
    where = ["clear", "-d", str(address_of(singers)), "-t", "Singers", "--json"]
    shown = CliRunner().invoke(app, [*where, "--method", method])
    assert json.loads(shown.stdout.splitlines()[-1])["rows"] == 3
    capture = capture_of(singers)
    assert not capture.look(0)[1]


def test_the_method_of_a_schedule_is_checked() -> None:
    where = {"database": "projects/p1/instances/i1/databases/d1", "consumer": "c"}
    config = parse_watch_config(where | {"clearing": {"every": "1m", "method": "auto"}})
    assert config.clearing is not None
    assert config.clearing.method is Method.AUTO
