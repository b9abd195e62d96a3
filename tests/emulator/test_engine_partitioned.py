"""Partitioned DML, and clearing that races with updates: no update may be lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fixtures.engine_world import (
    INSERT,
    STRONG,
    TIMESTAMP,
    UPSERT,
    WATCHED,
    exact_bound,
    open_database,
    query,
    run_partitioned,
    run_query,
    write,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.forms import timestamp_from_micros

CLEAR = "UPDATE Singers SET ChangedAt = NULL WHERE ShardId IS NOT NULL AND ChangedAt <= @safe"


@pytest.fixture
def singers() -> Iterator[Database]:
    with open_database(*WATCHED) as database:
        yield database


def clear(database: Database, safe: int) -> int:
    params = {"safe": timestamp_from_micros(safe)}
    return run_partitioned(database.partitioned_dml(), CLEAR, params, {"safe": TIMESTAMP}).row_count


def test_every_row_that_fits_is_written_in_several_commits(singers: Database) -> None:
    write(singers, INSERT, "Singers", "SingerId Name", *((n, "x") for n in range(5_000)))
    before = singers.read_only(STRONG).read_timestamp_micros
    count = run_partitioned(
        singers.partitioned_dml(), "UPDATE Singers SET Name = 'y' WHERE SingerId < 4500"
    )
    assert count.row_count == 4_500
    stamps = query(singers, "SELECT DISTINCT ChangedAt FROM Singers WHERE Name = 'y'")
    assert len(stamps) == 3
    counts = query(singers, "SELECT Name, COUNT(*) FROM Singers GROUP BY Name ORDER BY Name")
    assert counts == [("x", 500), ("y", 4_500)]
    assert query(singers, "SELECT COUNT(*) FROM Singers WHERE Name = 'x'", exact_bound(before)) == [
        (5_000,)
    ]


def test_the_self_assignment_keeps_the_timestamp(singers: Database) -> None:
    committed = write(singers, INSERT, "Singers", "SingerId Name", (1, "x"))
    run_partitioned(
        singers.partitioned_dml(), "UPDATE Singers SET Name = 'y', ChangedAt = ChangedAt WHERE TRUE"
    )
    stamp = timestamp_from_micros(committed.commit_timestamp_micros)
    assert query(singers, "SELECT Name, ChangedAt FROM Singers") == [("y", stamp)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("INSERT INTO Singers (SingerId) VALUES (1)", "INVALID_ARGUMENT"),
        ("SELECT 1", "INVALID_ARGUMENT"),
        ("DELETE FROM Singers WHERE SingerId IN (SELECT Other.K FROM Other)", "INVALID_ARGUMENT"),
        ("DELETE FROM Singers WHERE TRUE THEN RETURN SingerId", "UNIMPLEMENTED"),
    ],
)
def test_what_cannot_be_partitioned_is_refused(singers: Database, sql: str, code: str) -> None:
    singers.update_ddl(["CREATE TABLE Other (K INT64) PRIMARY KEY (K)"])
    with pytest.raises(SpannerError) as error:
        run_partitioned(singers.partitioned_dml(), sql)
    assert error.value.code.name == code


def test_a_delete_is_counted(singers: Database) -> None:
    write(singers, INSERT, "Singers", "SingerId Name", *((n, "x") for n in range(10)))
    deleted = run_partitioned(singers.partitioned_dml(), "DELETE FROM Singers WHERE SingerId < 3")
    assert deleted.row_count == 3
    assert query(singers, "SELECT COUNT(*) FROM Singers") == [(7,)]


def test_clearing_never_loses_an_update(singers: Database) -> None:
    """A window is delivered, then cleared, while writers go on: all versions must be delivered.

    Ground truth: the writers' own log of what they committed and when.
    """
    keys = 60
    log: dict[int, tuple[int, str]] = {}
    done = threading.Event()

    def writer(number: int) -> None:
        for n in range(250):
            key = (n * 7 + number) % keys
            if key % 2 != number:
                continue
            name = f"{number}-{n}"
            committed = write(singers, UPSERT, "Singers", "SingerId Name", (key, name))
            log[key] = (committed.commit_timestamp_micros, name)

    delivered: dict[object, object] = {}

    def deliver(start: int) -> int:
        transaction = singers.read_only(STRONG)
        end = transaction.read_timestamp_micros
        rows = run_query(
            transaction,
            "SELECT SingerId, Name FROM Singers@{FORCE_INDEX=ByChange} WHERE ShardId IS NOT NULL "
            "AND ChangedAt > @start AND ChangedAt <= @end",
            {"start": timestamp_from_micros(start), "end": timestamp_from_micros(end)},
            {"start": TIMESTAMP, "end": TIMESTAMP},
        )
        delivered.update(dict(rows.rows))  # type: ignore[arg-type]
        return end

    def watcher() -> None:
        position = 0
        while not done.is_set():
            position = deliver(position)
            clear(singers, position)
        deliver(position)

    writers = [threading.Thread(target=writer, args=(number,)) for number in range(2)]
    watching = threading.Thread(target=watcher)
    for thread in (*writers, watching):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    watching.join()
    assert delivered == {key: name for key, (_, name) in log.items()}
    clear(singers, singers.read_only(STRONG).read_timestamp_micros)
    assert query(singers, "SELECT COUNT(*) FROM Singers WHERE ChangedAt IS NOT NULL") == [(0,)]
