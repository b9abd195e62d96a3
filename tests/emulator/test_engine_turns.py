"""Two transactions at once: one waits or is aborted, and the outcome is that of some order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
import pytest
from engine_world import INSERT, STRONG, UPSERT, dml, opened, query, write

from emulator.engine.database import Database
from emulator.engine.requests import KeySet
from emulator.errors import SpannerError

COUNT = "SELECT N FROM Counters WHERE K = 1"


@pytest.fixture
def counters() -> Iterator[Database]:
    with opened("CREATE TABLE Counters (K INT64, N INT64) PRIMARY KEY (K)") as database:
        write(database, INSERT, "Counters", "K N", (1, 0))
        yield database


def test_read_then_write_loses_no_increment(counters: Database) -> None:
    """Each thread reads the counter and writes one more, and tries again when it is aborted."""

    def increment() -> None:
        transaction = counters.read_write()
        try:
            (row,) = transaction.read("Counters", None, ["N"], KeySet(keys=((1,),))).rows
            transaction.execute_dml(
                f"UPDATE Counters SET N = {int(str(row[0])) + 1} WHERE K = 1", {}, {}
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
    counters._writer.turn._idle_seconds = 0.0
    idle = counters.read_write()
    idle.execute_dml("UPDATE Counters SET N = 100 WHERE K = 1", {}, {})
    dml(counters, "UPDATE Counters SET N = N + 1 WHERE K = 1")
    assert query(counters, COUNT) == [(1,)]
    with pytest.raises(SpannerError) as error:
        idle.commit([])
    assert error.value.code is grpc.StatusCode.ABORTED
    assert error.value.retry_delay_seconds is not None


def test_nobody_waits_for_ever(counters: Database) -> None:
    holder = counters.read_write()
    holder.execute_dml("UPDATE Counters SET N = 100 WHERE K = 1", {}, {})
    with pytest.raises(SpannerError) as error:
        counters._writer.turn.acquire(0.0)
    assert error.value.code is grpc.StatusCode.ABORTED
    holder.rollback()
    write(counters, UPSERT, "Counters", "K N", (1, 5))


def test_reads_do_not_wait_for_a_writer(counters: Database) -> None:
    holder = counters.read_write()
    holder.execute_dml("UPDATE Counters SET N = 100 WHERE K = 1", {}, {})
    transaction = counters.read_only(STRONG)
    assert list(transaction.query(COUNT, {}, {}).rows) == [(0,)]
    committed = holder.commit([])
    assert committed.commit_timestamp_micros > transaction.read_timestamp_micros
    assert list(transaction.query(COUNT, {}, {}).rows) == [(0,)]
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
