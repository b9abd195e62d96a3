"""What a query visits: measured, not guessed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.engine_world import (
    INT64,
    STRONG,
    TIMESTAMP,
    UPSERT,
    WATCHED,
    exact_bound,
    open_database,
    read,
    run_query,
    write,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import KeyRange, KeySet, ResultRows
from spanner_schema.model.column_types import Type, TypeCode

ROWS = 2_000
CHANGED = 37
POLL = (
    "SELECT * FROM Singers@{FORCE_INDEX=ByChange} WHERE ShardId IS NOT NULL "
    "AND ShardId IN UNNEST(@shards) AND ChangedAt > @start AND ChangedAt <= @end"
)
TYPES = {
    "shards": Type(TypeCode.ARRAY, element=INT64),
    "start": TIMESTAMP,
    "end": TIMESTAMP,
}


@pytest.fixture(scope="module")
def singers() -> Iterator[Database]:
    with open_database(*WATCHED) as database:
        write(database, UPSERT, "Singers", "SingerId Name", *((n, f"n{n}") for n in range(ROWS)))
        yield database


def poll(database: Database, start: int, end: int, read_at: int) -> ResultRows:
    shards = str(list(range(-3, 4)))
    params = {
        "shards": shards,
        "start": timestamp_from_micros(start),
        "end": timestamp_from_micros(end),
    }
    return run_query(database.read_only(exact_bound(read_at)), POLL, params, TYPES, profile=True)


def count_scanned(rows: ResultRows) -> tuple[int, int]:
    rows_read = len(list(rows.rows))
    return rows_read, rows.stats.rows_scanned


def test_a_poll_visits_the_changed_rows_only(singers: Database) -> None:
    start = singers.read_only(STRONG).read_timestamp_micros
    keys = [(n, "new") for n in range(0, CHANGED * 10, 10)]
    end = write(singers, UPSERT, "Singers", "SingerId Name", *keys).commit_timestamp_micros
    rows = poll(singers, start, end, end)
    assert count_scanned(rows) == (CHANGED, CHANGED)
    assert rows.stats.rows_returned == CHANGED
    assert any(
        "USING INDEX i$ByChange (ShardId=? AND ChangedAt>?" in line for line in rows.stats.plan
    )


def test_a_poll_in_the_past_uses_the_index_too(singers: Database) -> None:
    start = singers.read_only(STRONG).read_timestamp_micros
    keys = [(n, "old") for n in range(CHANGED)]
    end = write(singers, UPSERT, "Singers", "SingerId Name", *keys).commit_timestamp_micros
    write(singers, UPSERT, "Singers", "SingerId Name", *((n, "newer") for n in range(5)))
    rows = poll(singers, start, end, end)
    rows_read, visited = count_scanned(rows)
    assert rows_read == CHANGED
    assert visited == CHANGED - 5 + 5
    plan = rows.stats.plan
    assert any("USING INDEX i$ByChange (ShardId=? AND ChangedAt>?" in line for line in plan)
    assert any("USING INDEX r$Singers ($to>?)" in line for line in plan)
    assert not any(line.startswith("SCAN t$") for line in plan)


def test_a_full_scan_counts_every_row(singers: Database) -> None:
    rows = run_query(
        singers.read_only(STRONG), "SELECT SingerId FROM Singers WHERE Name = 'n77'", profile=True
    )
    assert count_scanned(rows) == (1, ROWS)


def test_a_lookup_by_key_counts_one_row(singers: Database) -> None:
    rows = run_query(
        singers.read_only(STRONG),
        "SELECT Name FROM Singers WHERE SingerId = @id",
        {"id": 7},
        {"id": INT64},
        profile=True,
    )
    assert count_scanned(rows) == (1, 1)


def test_nothing_is_counted_without_profile(singers: Database) -> None:
    rows = run_query(singers.read_only(STRONG), "SELECT Name FROM Singers")
    assert count_scanned(rows) == (ROWS, 0)
    assert rows.stats.plan == ()


def test_forcing_an_index_that_may_miss_rows_is_refused(singers: Database) -> None:
    sql = "SELECT SingerId FROM Singers@{FORCE_INDEX=ByChange} WHERE ShardId = 1"
    with pytest.raises(SpannerError, match="ByChange"):
        run_query(singers.read_only(STRONG), sql)


def test_many_keys_are_read_in_key_order_once_each(singers: Database) -> None:
    points = tuple((n,) for n in range(0, ROWS, 3))
    ranges = tuple(KeyRange((n,), (n + 4,), True, False) for n in range(0, 100, 10))
    keys = KeySet(keys=points, ranges=ranges)
    expected = set(range(0, ROWS, 3)) | {n + i for n in range(0, 100, 10) for i in range(4)}
    rows_read = [row[0] for row in read(singers, "Singers", "SingerId", keys=keys)]
    assert rows_read == sorted(expected)
    few = [row[0] for row in read(singers, "Singers", "SingerId", keys=keys, limit=7)]
    assert few == sorted(expected)[:7]


def test_a_read_through_an_index_is_in_index_order(singers: Database) -> None:
    keys = KeySet(ranges=(KeyRange((1,), (2,), True, True),))
    rows = read(singers, "Singers", "ShardId ChangedAt SingerId", keys=keys, index="ByChange")
    everything = read(singers, "Singers", "ShardId ChangedAt SingerId")
    inside = [row for row in everything if row[0] in (1, 2)]
    assert rows == sorted(inside)
    assert len(rows) > 100
    with pytest.raises(SpannerError, match="Column not found in index"):
        read(singers, "Singers", "Name", index="ByChange")
