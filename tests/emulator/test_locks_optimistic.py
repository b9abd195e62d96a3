"""Optimistic transactions: nobody waits for them, and what they have read still holds when they
commit. ``test_serializability.py`` mixes them with others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.engine_world import INSERT, UPSERT, open_database, query, run_partitioned, write
from fixtures.lock_world import Waiting, refuse_as_aborted, refuse_commit, rows, update

from emulator.engine.database import Database
from emulator.values.requests import RowWrite

TABLE = "CREATE TABLE T (K INT64 NOT NULL, N INT64) PRIMARY KEY (K)"
FIRST = "SELECT N FROM T WHERE K = 1"


@pytest.fixture
def database() -> Iterator[Database]:
    with open_database(TABLE) as opened:
        write(opened, INSERT, "T", "K N", *((k, 0) for k in range(1, 6)))
        yield opened


def upsert(key: int, value: int) -> RowWrite:
    """A mutation that sets N of a row of the table T."""
    return RowWrite(UPSERT, "T", ("K", "N"), [(key, value)])


def test_a_commit_does_not_wait_for_an_older_optimistic_reader(database: Database) -> None:
    silent = database.read_write(optimistic=True)
    assert rows(silent, FIRST) == [(0,)]
    database.write([upsert(1, 10)])
    assert query(database, FIRST) == [(10,)]
    refuse_commit(silent)


def test_nobody_waits_for_what_an_optimistic_one_has_written(database: Database) -> None:
    silent, younger = database.read_write(optimistic=True), database.read_write()
    update(silent, 1, 10)
    assert rows(younger, FIRST) == [(0,)]
    update(younger, 1, 20)
    younger.commit([])
    refuse_commit(silent)
    assert query(database, FIRST) == [(20,)]


def test_partitioned_dml_does_not_wait_for_an_optimistic_one(database: Database) -> None:
    silent = database.read_write(optimistic=True)
    update(silent, 1, 10)
    run_partitioned(database.partitioned_dml(), "UPDATE T SET N = 7 WHERE TRUE")
    assert query(database, FIRST) == [(7,)]
    refuse_commit(silent)


@pytest.mark.parametrize("by_dml", [False, True])
def test_of_two_optimistic_ones_the_first_to_commit_wins(database: Database, by_dml: bool) -> None:
    older, younger = (database.read_write(optimistic=True) for _ in range(2))
    for transaction, value in ((older, 1), (younger, 2)):
        assert rows(transaction, FIRST) == [(0,)]
        if by_dml:
            update(transaction, 1, value)
    younger.commit([] if by_dml else [upsert(1, 2)])
    with refuse_as_aborted():
        older.commit([] if by_dml else [upsert(1, 1)])
    assert query(database, FIRST) == [(2,)]


def test_who_only_reads_what_another_one_only_reads_commits(database: Database) -> None:
    first, second = (database.read_write(optimistic=True) for _ in range(2))
    assert rows(first, "SELECT K, N FROM T") == rows(second, "SELECT K, N FROM T")
    update(first, 1, 1)
    first.rollback()
    second.commit([upsert(6, 6)])
    assert query(database, "SELECT N FROM T WHERE K IN (1, 6)") == [(0,), (6,)]


def test_a_row_that_came_into_a_range_that_was_read_is_found(database: Database) -> None:
    reader, writer = (database.read_write(optimistic=True) for _ in range(2))
    assert rows(reader, "SELECT K FROM T WHERE K BETWEEN 6 AND 9") == []
    writer.commit([upsert(7, 7)])
    with refuse_as_aborted():
        reader.commit([upsert(1, 1)])
    assert query(database, FIRST) == [(0,)]


def test_an_optimistic_one_waits_for_the_locks_of_an_older_one(database: Database) -> None:
    older, optimistic = database.read_write(), database.read_write(optimistic=True)
    assert rows(older, FIRST) == [(0,)]
    waiting = Waiting(database, lambda: optimistic.commit([upsert(1, 1)]))
    older.commit([upsert(2, 2)])
    waiting.end()
    assert query(database, "SELECT N FROM T WHERE K < 3") == [(1,), (2,)]
