"""Read-write transactions side by side, as the official client runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.api_core.exceptions import Aborted
from google.cloud.spanner_v1 import KeySet, TransactionOptions
from google.cloud.spanner_v1.database import Database

pytestmark = pytest.mark.ddl(
    "CREATE TABLE T (K INT64 NOT NULL, N INT64) PRIMARY KEY (K)",
    "CREATE TABLE Other (K INT64 NOT NULL, N INT64) PRIMARY KEY (K)",
)


@contextmanager
def transaction_of(database: Database, *, begun: bool = True) -> Iterator[Any]:
    """A transaction in a session of its own."""
    session = database.session()
    session.create()
    try:
        transaction = session.transaction()
        if begun:
            transaction.begin()
        yield transaction
    finally:
        session.delete()


def fill(database: Database) -> None:
    """Two rows of zero."""
    with database.batch() as batch:
        batch.insert("T", ("K", "N"), [(1, 0), (2, 0)])


def values(database: Database) -> list[int]:
    """N of all rows, by key."""
    with database.snapshot() as snapshot:
        return [row[0] for row in snapshot.read("T", ("N",), KeySet(all_=True))]


def set_value(transaction: Any, key: int, value: int) -> None:
    """Sets N of a row by DML."""
    assert transaction.execute_update(f"UPDATE T SET N = {value} WHERE K = {key}") == 1


def test_a_commit_to_another_table_inside_a_transaction_function(database: Database) -> None:
    fill(database)
    attempts = 0

    def work(transaction: Any) -> None:
        nonlocal attempts
        attempts += 1
        set_value(transaction, 1, 1)
        with database.batch() as batch:
            batch.insert_or_update("Other", ("K", "N"), [(1, attempts)])
            batch.insert_or_update("T", ("K", "N"), [(2, 2)])

    database.run_in_transaction(work)
    assert attempts == 1
    assert values(database) == [1, 2]


def test_two_sessions_write_different_rows_in_turns(database: Database) -> None:
    fill(database)
    with transaction_of(database) as first, transaction_of(database) as second:
        set_value(first, 1, 1)
        set_value(second, 2, 2)
        second.commit()
        first.commit()
    assert values(database) == [1, 2]


def test_the_younger_of_two_in_conflict_is_aborted(database: Database) -> None:
    fill(database)
    with transaction_of(database) as older, transaction_of(database) as younger:
        set_value(younger, 1, 2)
        set_value(older, 1, 1)
        with pytest.raises(Aborted) as error:
            younger.commit()
        older.commit()
    assert error.value.errors, "it has no retry information"
    assert values(database) == [1, 0]


def test_the_client_retries_with_the_age_of_the_first_attempt(database: Database) -> None:
    """The second attempt is older than a transaction that was begun after the first."""
    fill(database)
    attempts = 0
    with (
        transaction_of(database) as oldest,
        transaction_of(database, begun=False) as newer,
    ):

        def work(transaction: Any) -> None:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                set_value(transaction, 1, 1)
                newer.begin()
                set_value(newer, 2, 9)
                set_value(oldest, 1, 5)
                oldest.commit()
            set_value(transaction, 2, 2)

        database.run_in_transaction(work)
        with pytest.raises(Aborted):
            newer.commit()
    assert attempts == 2
    assert values(database) == [5, 2]


def test_the_lock_mode_of_the_client_is_obeyed(database: Database) -> None:
    """A commit inside of the transaction would wait for its locks, were it not optimistic."""
    attempts: list[list[list[int]]] = []

    def work(transaction: Any) -> None:
        attempts.append(list(transaction.execute_sql("SELECT N FROM T")))
        if len(attempts) == 1:
            with database.batch() as batch:
                batch.insert("T", ("K", "N"), [(1, 1)])
        transaction.insert("T", ("K", "N"), [(2, 2)])

    mode = TransactionOptions.ReadWrite.ReadLockMode.OPTIMISTIC
    database.run_in_transaction(work, read_lock_mode=mode)
    assert attempts == [[], [[1]]]
    assert values(database) == [1, 2]
