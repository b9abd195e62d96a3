"""Read-write transactions side by side: who waits, who is aborted, and who need not care."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.engine_world import (
    INSERT,
    STRONG,
    UPSERT,
    open_database,
    query,
    run_dml,
    run_partitioned,
    run_query,
    write,
)
from fixtures.lock_world import Waiting, refuse_as_aborted, refuse_commit, rows, update

from emulator.engine.database import Database
from emulator.values.requests import KeyDelete, KeyRange, KeySet, RowWrite

TABLES = (
    "CREATE TABLE T (K INT64 NOT NULL, N INT64, Tag STRING(20)) PRIMARY KEY (K)",
    "CREATE INDEX ByTag ON T (Tag)",
    "CREATE TABLE Other (K INT64 NOT NULL, N INT64) PRIMARY KEY (K)",
)
ALL = "SELECT K, N FROM T ORDER BY K"


@pytest.fixture
def database() -> Iterator[Database]:
    with open_database(*TABLES) as opened:
        write(opened, INSERT, "T", "K N Tag", *((k, 0, f"tag{k}") for k in range(1, 6)))
        write(opened, INSERT, "Other", "K N", (1, 0))
        yield opened


def test_writers_of_different_rows_do_not_wait(database: Database) -> None:
    first, second = database.read_write(), database.read_write()
    update(first, 1, 10)
    update(second, 2, 20)
    update(first, 3, 30)
    assert rows(first, "SELECT N FROM T WHERE K IN (1, 3)") == [(10,), (30,)]
    assert rows(second, "SELECT N FROM T WHERE K = 2") == [(20,)]
    second.commit([])
    first.commit([])
    assert query(database, ALL) == [(1, 10), (2, 20), (3, 30), (4, 0), (5, 0)]


def test_a_commit_inside_a_transaction_does_not_wait_for_it(database: Database) -> None:
    outer = database.read_write()
    update(outer, 1, 10)
    write(database, UPSERT, "Other", "K N", (1, 1))
    write(database, UPSERT, "T", "K N", (2, 20))
    outer.commit([RowWrite(UPSERT, "Other", ("K", "N"), [(2, 2)])])
    assert query(database, "SELECT K, N FROM Other ORDER BY K") == [(1, 1), (2, 2)]
    assert query(database, "SELECT N FROM T WHERE K < 3 ORDER BY K") == [(10,), (20,)]


def test_the_younger_writer_waits_and_sees_what_the_older_one_wrote(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    update(older, 1, 10)
    increment = "UPDATE T SET N = N + 1 WHERE K = 1"
    waiting = Waiting(database, lambda: run_dml(younger, increment).row_count)
    older.commit([])
    assert waiting.end() == 1
    younger.commit([])
    assert query(database, "SELECT N FROM T WHERE K = 1") == [(11,)]


def test_the_older_writer_aborts_the_younger_one(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    update(younger, 1, 20)
    update(older, 1, 10)
    refuse_commit(younger)
    older.commit([])
    assert query(database, "SELECT N FROM T WHERE K = 1") == [(10,)]


def test_age_is_that_of_the_beginning_and_not_of_the_first_lock(database: Database) -> None:
    older = database.read_write()
    younger = database.read_write()
    assert rows(younger, "SELECT N FROM T WHERE K = 1") == [(0,)]
    older.commit([RowWrite(UPSERT, "T", ("K", "N"), [(1, 10)])])
    refuse_commit(younger)


def test_two_that_lock_in_opposite_order_do_not_wait_for_each_other(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    update(older, 1, 10)
    update(younger, 2, 20)
    waiting = Waiting(database, lambda: update(younger, 1, 21))
    update(older, 2, 12)
    with refuse_as_aborted():
        waiting.end()
    older.commit([])
    assert query(database, "SELECT N FROM T WHERE K < 3 ORDER BY K") == [(10,), (12,)]


def test_two_that_have_read_the_same_row_cannot_both_write_it(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert rows(older, "SELECT N FROM T WHERE K = 1") == [(0,)]
    assert rows(younger, "SELECT N FROM T WHERE K = 1") == [(0,)]
    waiting = Waiting(
        database, lambda: younger.commit([RowWrite(UPSERT, "T", ("K", "N"), [(1, 1)])])
    )
    older.commit([RowWrite(UPSERT, "T", ("K", "N"), [(1, 1)])])
    with refuse_as_aborted():
        waiting.end()
    assert query(database, "SELECT N FROM T WHERE K = 1") == [(1,)]


def test_who_only_reads_shares(database: Database) -> None:
    first, second = database.read_write(), database.read_write()
    assert rows(first, ALL) == rows(second, ALL)
    assert second.commit([]).commit_timestamp_micros < first.commit([]).commit_timestamp_micros


def test_a_commit_waits_for_an_older_reader(database: Database) -> None:
    reader = database.read_write()
    assert rows(reader, "SELECT N FROM T WHERE K = 1") == [(0,)]
    waiting = Waiting(database, lambda: write(database, UPSERT, "T", "K N", (1, 7)))
    assert rows(reader, "SELECT N FROM T WHERE K = 1") == [(0,)]
    committed = reader.commit([])
    written = waiting.end()
    assert written.commit_timestamp_micros > committed.commit_timestamp_micros  # type: ignore[attr-defined]


def test_a_row_that_comes_into_a_range_is_a_conflict(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    counted = "SELECT COUNT(*) FROM T WHERE K BETWEEN 2 AND 4"
    assert rows(younger, counted) == [(3,)]
    assert run_dml(older, "DELETE FROM T WHERE K = 3").row_count == 1
    refuse_commit(younger)
    again = database.read_write()
    waiting = Waiting(database, lambda: rows(again, counted))
    run_dml(older, "INSERT INTO T (K, N) VALUES (9, 9)")
    older.commit([])
    assert waiting.end() == [(2,)]


def test_a_row_outside_of_a_range_is_none(database: Database) -> None:
    reader, writer = database.read_write(), database.read_write()
    assert rows(reader, "SELECT COUNT(*) FROM T WHERE K BETWEEN 2 AND 4") == [(3,)]
    keys = KeySet(ranges=(KeyRange((4,), (), start_closed=True, end_closed=True),))
    assert len(list(writer.read("T", None, ["N"], keys).rows)) == 2
    run_dml(writer, "INSERT INTO T (K, N) VALUES (9, 9)")
    update(writer, 5, 1)
    writer.commit([])
    reader.commit([RowWrite(UPSERT, "T", ("K", "N"), [(1, 1)])])
    assert query(database, "SELECT K FROM T WHERE N > 0 ORDER BY K") == [(1,), (5,), (9,)]


def test_a_scan_without_an_index_locks_the_table(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert rows(younger, "SELECT K FROM T WHERE N = 7") == []
    update(older, 1, 1)
    refuse_commit(younger)
    older.commit([])


def test_a_search_in_an_index_locks_what_it_finds(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert rows(younger, "SELECT K FROM T WHERE Tag = 'tag2'") == [(2,)]
    keys = KeySet(keys=(("tag3",),))
    assert list(younger.read("T", "ByTag", ["K"], keys).rows) == [(3,)]
    update(older, 1, 1)
    run_dml(older, "INSERT INTO T (K, Tag) VALUES (8, 'tag8')")
    younger.commit([])
    third = database.read_write()
    assert rows(third, "SELECT K FROM T WHERE Tag = 'tag4'") == [(4,)]
    run_dml(older, "UPDATE T SET Tag = 'tag4' WHERE K = 1")
    refuse_commit(third)
    older.commit([])


def test_a_join_locks_what_each_table_is_asked_for(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    joined = "SELECT T.N FROM T JOIN Other AS o ON T.K = o.K WHERE T.K = 1 AND o.K = 1"
    assert rows(younger, joined) == [(0,)]
    update(older, 2, 2)
    run_dml(older, "INSERT INTO Other (K, N) VALUES (2, 2)")
    younger.commit([])
    older.commit([])


def test_a_joined_table_without_a_condition_is_scanned(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    joined = "SELECT T.N FROM T JOIN Other AS o ON T.K = o.K WHERE T.K = 1"
    assert rows(younger, joined) == [(0,)]
    run_dml(older, "INSERT INTO Other (K, N) VALUES (3, 3)")
    refuse_commit(younger)
    older.commit([])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM T WHERE K = 1 OR N = 1",
        "SELECT COUNT(*) FROM T WHERE NOT K = 1",
        "SELECT COUNT(*) FROM (SELECT K FROM T) WHERE K = 1",
        "SELECT COUNT(*) FROM T AS a JOIN T AS b ON a.K < b.K WHERE a.K = 1",
        "WITH c AS (SELECT K FROM T) SELECT COUNT(*) FROM c WHERE K = 1",
        "SELECT (SELECT COUNT(*) FROM T AS i WHERE i.K > o.K) FROM T AS o WHERE o.K = 1",
        "SELECT COUNT(*) FROM T WHERE K = N",
    ],
)
def test_what_is_not_a_condition_on_a_key_locks_all(database: Database, sql: str) -> None:
    older, younger = database.read_write(), database.read_write()
    rows(younger, sql)
    run_dml(older, "INSERT INTO T (K, N) VALUES (100, 1)")
    refuse_commit(younger)
    older.rollback()


def test_conditions_of_dml_are_locked(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert run_dml(younger, "UPDATE T SET N = 1 WHERE K > 2 AND N = 5").row_count == 0
    update(older, 1, 1)
    assert run_dml(younger, "DELETE FROM T WHERE K >= 4 AND N = 5").row_count == 0
    update(older, 4, 5)
    refuse_commit(younger)
    older.commit([])


def test_insert_or_ignore_holds_on_to_the_row_that_it_met(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert run_dml(younger, "INSERT OR IGNORE INTO T (K, N) VALUES (1, 5)").row_count == 0
    update(older, 1, 1)
    run_dml(older, "DELETE FROM T WHERE K = 1")
    refuse_commit(younger)
    older.commit([])


def test_reads_of_a_snapshot_wait_for_nobody(database: Database) -> None:
    writer = database.read_write()
    assert run_dml(writer, "UPDATE T SET N = 1 WHERE TRUE").row_count == 5
    snapshot = database.read_only(STRONG)
    assert {row[1] for row in run_query(snapshot, ALL).rows} == {0}
    writer.commit([])
    assert {row[1] for row in run_query(snapshot, ALL).rows} == {0}
    assert {row[1] for row in query(database, ALL)} == {1}


def test_partitioned_dml_waits_for_the_older_and_aborts_the_younger(database: Database) -> None:
    older = database.read_write()
    update(older, 1, 10)
    partitioned = database.partitioned_dml()
    younger = database.read_write()
    update(younger, 2, 20)
    statement = "UPDATE T SET N = N + 1 WHERE N < 100 AND K > 0"
    waiting = Waiting(database, lambda: run_partitioned(partitioned, statement).row_count)
    older.commit([])
    assert waiting.end() == 5
    refuse_commit(younger)
    assert query(database, ALL) == [(1, 11), (2, 1), (3, 1), (4, 1), (5, 1)]


def test_a_schema_change_aborts_who_has_locked_something(database: Database) -> None:
    reader, writer, fresh = (database.read_write() for _ in range(3))
    assert rows(reader, "SELECT N FROM T WHERE K = 1") == [(0,)]
    update(writer, 2, 20)
    database.update_ddl(["ALTER TABLE T ADD COLUMN Added INT64"])
    refuse_commit(reader)
    refuse_commit(writer)
    run_dml(fresh, "UPDATE T SET Added = 1 WHERE K = 1")
    fresh.commit([])
    assert query(database, "SELECT N, Added FROM T WHERE K < 3 ORDER BY K") == [(0, 1), (0, None)]


def test_a_rolled_back_transaction_leaves_nothing(database: Database) -> None:
    gone, other = database.read_write(), database.read_write()
    update(gone, 1, 10)
    gone.rollback()
    update(other, 1, 11)
    other.commit([])
    assert query(database, "SELECT N FROM T WHERE K = 1") == [(11,)]


def test_a_delete_of_a_range_waits_for_a_row_in_it(database: Database) -> None:
    older = database.read_write()
    update(older, 3, 30)
    keys = KeySet(ranges=(KeyRange((2,), (4,), start_closed=True, end_closed=True),))
    waiting = Waiting(database, lambda: database.write([KeyDelete("T", keys)]))
    older.commit([])
    waiting.end()
    assert query(database, ALL) == [(1, 0), (5, 0)]


def test_a_wounded_reader_sees_no_rows_that_do_not_fit(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    assert rows(younger, "SELECT N FROM T WHERE K = 1") == [(0,)]
    older.commit([RowWrite(UPSERT, "T", ("K", "N"), [(1, 1), (2, 1)])])
    with refuse_as_aborted():
        rows(younger, "SELECT N FROM T WHERE K = 2")


def test_a_retry_keeps_the_age_of_its_transaction(database: Database) -> None:
    oldest = database.read_write()
    first = database.read_write()
    update(first, 1, 1)
    update(oldest, 1, 2)
    refuse_commit(first)
    newer = database.read_write()
    update(newer, 2, 2)
    retry = database.read_write(first.age)
    update(retry, 2, 3)
    refuse_commit(newer)
    retry.commit([])
    oldest.commit([])
