"""Streams: long values, broken connections, deadlines, writers beside readers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX), A ARRAY<STRING(MAX)>) PRIMARY KEY (K)"
EVERYTHING = KeySet(all_=True)

pytestmark = pytest.mark.ddl(TABLE)


def fill(database: Database, count: int, text: str = "x") -> list[list[object]]:
    rows: list[list[object]] = [[k, f"{text}{k}", None] for k in range(count)]
    for first in range(0, count, 5_000):
        with database.batch() as batch:
            batch.insert("T", ("K", "V", "A"), rows[first : first + 5_000])
    return rows


def test_values_longer_than_a_message_arrive_whole(database: Database) -> None:
    random_text = random.Random(1)
    long = "".join(random_text.choice("aä漢😀") for _ in range(1_500_000))
    many = ["e" * random_text.randrange(200_000) for _ in range(40)] + [None, ""]
    rows = [[1, long, many], [2, "short", []], [3, long[::-1], None]]
    for row in rows:
        with database.batch() as batch:
            batch.insert("T", ("K", "V", "A"), [row])
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql("SELECT K, V, A FROM T ORDER BY K")) == rows
        assert list(snapshot.read("T", ("K", "V", "A"), EVERYTHING)) == rows


@pytest.mark.parametrize("after", [1, 7, 1000])
def test_a_broken_stream_goes_on_without_a_gap_or_a_repetition(
    database: Database, faults: Callable[..., None], after: int
) -> None:
    rows = fill(database, 3_000)
    faults(unavailable_after_rows=after, unavailable_streams_max=20)
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql("SELECT K, V, A FROM T ORDER BY K")) == rows
        assert list(snapshot.read("T", ("K", "V", "A"), EVERYTHING)) == rows
    with database.snapshot() as snapshot:
        assert list(snapshot.read("T", ("K", "V", "A"), EVERYTHING)) == rows


def test_a_broken_stream_goes_on_at_its_timestamp_beside_writers(
    database: Database, faults: Callable[..., None]
) -> None:
    rows = fill(database, 2_000)
    done = threading.Event()

    def write() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            with database.batch() as batch:
                batch.update(
                    "T", ("K", "V"), [(k, f"later {turn}") for k in range(turn % 7, 2_000, 7)]
                )
                batch.insert_or_update("T", ("K", "V"), [(10_000 + turn, "new")])

    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql("SELECT COUNT(*) FROM T")) == [[2_000]]
        writer = threading.Thread(target=write)
        writer.start()
        try:
            faults(unavailable_after_rows=100, unavailable_streams_max=15)
            for _ in range(3):
                rows_read = list(snapshot.execute_sql("SELECT K, V, A FROM T WHERE K < 1000000"))
                assert sorted(rows_read) == rows
                assert list(snapshot.read("T", ("K", "V", "A"), EVERYTHING)) == rows
        finally:
            done.set()
            writer.join()


def test_a_deadline_ends_a_call_and_the_server_goes_on(database: Database) -> None:
    fill(database, 10)
    slow = "SELECT COUNT(*) FROM T a, T b, T c, T d, T e, T f, T g, T h"
    with (
        database.snapshot() as snapshot,
        pytest.raises((exceptions.DeadlineExceeded, exceptions.RetryError)),
    ):
        list(snapshot.execute_sql(slow, timeout=0.3, retry=None))
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql("SELECT COUNT(*) FROM T")) == [[10]]


def test_a_reader_who_leaves_early_does_not_hold_the_writers_up(database: Database) -> None:
    fill(database, 5_000)
    for _ in range(300):
        with database.snapshot() as snapshot:
            next(iter(snapshot.execute_sql("SELECT K, V FROM T")))
    with database.batch() as batch:
        batch.insert("T", ("K",), [(100_000,)])
    assert batch.committed is not None
