"""Two transactions at once: one waits or is aborted, and the outcome is that of some order."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from fixtures.engine_world import (
    INSERT,
    STRONG,
    UPSERT,
    commit_dml,
    open_database,
    query,
    run_dml,
    run_query,
    write,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.requests import KeySet, RowWrite

COUNT = "SELECT N FROM Counters WHERE K = 1"


@pytest.fixture
def counters() -> Iterator[Database]:
    with open_database("CREATE TABLE Counters (K INT64, N INT64) PRIMARY KEY (K)") as database:
        write(database, INSERT, "Counters", "K N", (1, 0))
        yield database


def test_read_then_write_loses_no_increment(counters: Database) -> None:
    """Each thread reads the counter and writes one more, and tries again when it is aborted."""

    def increment() -> None:
        transaction = counters.read_write()
        try:
            (row,) = transaction.read("Counters", None, ["N"], KeySet(keys=((1,),))).rows
            run_dml(
                transaction, f"UPDATE Counters SET N = {int(str(row[0])) + 1} WHERE K = 1", {}, {}
            )
            transaction.commit([])
        finally:
            transaction.rollback()

    def work() -> None:
        done = 0
        while done < 50:
            try:
                increment()
            except SpannerError as error:
                assert error.code is grpc.StatusCode.ABORTED  # noqa: PT017 - a retry, not the end
            else:
                done += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert query(counters, COUNT) == [(200,)]


def test_an_idle_transaction_is_aborted_for_one_that_waits(counters: Database) -> None:
    counters._writer.locks.idle_seconds = 0.0
    idle = counters.read_write()
    run_dml(idle, "UPDATE Counters SET N = 100 WHERE K = 1")
    commit_dml(counters, "UPDATE Counters SET N = N + 1 WHERE K = 1")
    assert query(counters, COUNT) == [(1,)]
    with pytest.raises(SpannerError) as error:
        idle.commit([])
    assert error.value.code is grpc.StatusCode.ABORTED
    assert error.value.retry_delay_seconds is not None


def test_nobody_waits_for_ever(counters: Database) -> None:
    holder, waiting = counters.read_write(), counters.read_write()
    run_dml(holder, "UPDATE Counters SET N = 100 WHERE K = 1")
    locks = counters._writer.locks
    with pytest.raises(SpannerError) as error:
        locks.wait(waiting._owner, [holder._owner], 0.0)
    assert error.value.code is grpc.StatusCode.ABORTED
    holder.rollback()
    write(counters, UPSERT, "Counters", "K N", (1, 5))


def test_who_waits_stops_when_its_client_is_gone(counters: Database) -> None:
    holder, waiting = counters.read_write(), counters.read_write()
    run_dml(holder, "UPDATE Counters SET N = 100 WHERE K = 1")

    def leave() -> None:
        raise SpannerError(grpc.StatusCode.CANCELLED, "the client is gone")

    with pytest.raises(SpannerError) as error:
        list(run_query(waiting, COUNT, check=leave).rows)
    assert error.value.code is grpc.StatusCode.CANCELLED
    holder.commit([])


def test_reads_do_not_wait_for_a_writer(counters: Database) -> None:
    holder = counters.read_write()
    run_dml(holder, "UPDATE Counters SET N = 100 WHERE K = 1")
    transaction = counters.read_only(STRONG)
    assert list(run_query(transaction, COUNT).rows) == [(0,)]
    committed = holder.commit([])
    assert committed.commit_timestamp_micros > transaction.read_timestamp_micros
    assert list(run_query(transaction, COUNT).rows) == [(0,)]
    assert query(counters, COUNT) == [(100,)]


def test_commits_that_share_a_transaction_fail_alone(counters: Database) -> None:
    """Many threads insert the same keys: each key is inserted once, every other try is refused."""
    outcomes: list[str] = []

    def work() -> None:
        for key in range(100, 200):
            try:
                write(counters, INSERT, "Counters", "K N", (key, 1))
                outcomes.append("written")
            except SpannerError as error:
                outcomes.append(error.code.name)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("written") == 100
    assert outcomes.count("ALREADY_EXISTS") == 300
    assert query(counters, "SELECT COUNT(*) FROM Counters") == [(101,)]


@pytest.mark.parametrize("by", ["query", "read"])
@pytest.mark.parametrize("how", ["mutation", "dml"])
def test_an_older_one_that_changes_what_was_read_aborts(
    counters: Database, by: str, how: str
) -> None:
    older, transaction = counters.read_write(), counters.read_write()
    if by == "query":
        rows = run_query(transaction, COUNT).rows
    else:
        rows = transaction.read("Counters", None, ["N"], KeySet(keys=((1,),))).rows
    assert list(rows) == [(0,)]
    older.commit([RowWrite(UPSERT, "Counters", ("K", "N"), [(1, 7)])])
    update = "UPDATE Counters SET N = 1 WHERE K = 1"
    attempts: dict[str, Callable[[], object]] = {
        "dml": lambda: run_dml(transaction, update),
        "mutation": lambda: transaction.commit(
            [RowWrite(UPSERT, "Counters", ("K", "N"), [(1, 1)])]
        ),
    }
    with pytest.raises(SpannerError) as error:
        attempts[how]()
    assert error.value.code is grpc.StatusCode.ABORTED
    assert query(counters, COUNT) == [(7,)]
    write(counters, UPSERT, "Counters", "K N", (1, 8))


def test_a_new_row_that_a_query_would_have_found_aborts(counters: Database) -> None:
    older, transaction = counters.read_write(), counters.read_write()
    assert list(run_query(transaction, "SELECT COUNT(*) FROM Counters").rows) == [(1,)]
    older.commit([RowWrite(INSERT, "Counters", ("K", "N"), [(2, 0)])])
    with pytest.raises(SpannerError) as error:
        transaction.commit([RowWrite(INSERT, "Counters", ("K", "N"), [(3, 0)])])
    assert error.value.code is grpc.StatusCode.ABORTED


def test_a_row_that_was_read_stays(counters: Database) -> None:
    transaction = counters.read_write()
    assert list(run_query(transaction, COUNT).rows) == [(0,)]
    write(counters, UPSERT, "Counters", "K N", (2, 7))
    assert list(run_query(transaction, COUNT).rows) == [(0,)]
    transaction.commit([])


ACCOUNTS, TOTAL = 8, 800


def move(database: Database, choice: random.Random) -> None:
    """Moves an amount between two accounts, by one of the ways of reading and of writing."""
    giver, taker = choice.sample(range(ACCOUNTS), 2)
    amount = choice.randrange(1, 20)
    transaction = database.read_write()
    try:
        if choice.random() < 0.5:
            keys = KeySet(keys=((giver,), (taker,)))
            rows = list(transaction.read("A", None, ["K", "N"], keys).rows)
        else:
            sql = f"SELECT K, N FROM A WHERE K IN ({giver}, {taker})"
            rows = list(run_query(transaction, sql).rows)
        balances = {int(str(k)): int(str(n)) for k, n in rows}
        after = [(giver, balances[giver] - amount), (taker, balances[taker] + amount)]
        if choice.random() < 0.5:
            transaction.commit([RowWrite(UPSERT, "A", ("K", "N"), after)])
        else:
            for key, value in after:
                run_dml(transaction, f"UPDATE A SET N = {value} WHERE K = {key}")
            transaction.commit([])
    finally:
        transaction.rollback()


@pytest.mark.parametrize("seed", range(3))
def test_money_is_neither_made_nor_lost(seed: int) -> None:
    """Threads move amounts between accounts; every snapshot shows the same sum."""
    done = threading.Event()
    wrong: list[object] = []

    def work(number: int) -> None:
        choice = random.Random(seed * 100 + number)
        moved = 0
        while moved < 60:
            try:
                move(database, choice)
            except SpannerError as error:
                if error.code is not grpc.StatusCode.ABORTED:
                    raise
            else:
                moved += 1

    def watch() -> None:
        while not done.is_set():
            rows_read = query(database, "SELECT SUM(N), COUNT(*) FROM A")
            if rows_read != [(TOTAL, ACCOUNTS)]:
                wrong.append(rows_read)

    with open_database("CREATE TABLE A (K INT64, N INT64) PRIMARY KEY (K)") as database:
        write(database, INSERT, "A", "K N", *((k, TOTAL // ACCOUNTS) for k in range(ACCOUNTS)))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        watcher = threading.Thread(target=watch)
        for thread in (watcher, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        watcher.join()
        assert not wrong
        assert query(database, "SELECT SUM(N) FROM A") == [(TOTAL,)]
