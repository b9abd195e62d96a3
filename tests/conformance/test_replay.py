"""Numbered requests: DML that is sent again is answered again and runs once; batches of DML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from google.rpc import code_pb2
from talk import READ_ONLY, Transaction, dml, read, rows

USERS = "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)"

Send = Callable[[Transaction, str, int], int]
"""Sends a statement under a number; how many rows it wrote. Raises what it was refused with."""

pytestmark = pytest.mark.ddl(USERS)


def execute_sql(transaction: Transaction, sql: str, seqno: int) -> int:
    return transaction.execute_numbered(sql, seqno)


def execute_streaming(transaction: Transaction, sql: str, seqno: int) -> int:
    return transaction.execute_numbered(sql, seqno, streaming=True)


def execute_batch(transaction: Transaction, sql: str, seqno: int) -> int:
    answer = transaction.execute_numbered_batch([sql], seqno)
    if answer.status.code == code_pb2.ALREADY_EXISTS:
        raise exceptions.AlreadyExists(answer.status.message)
    assert answer.status.code == code_pb2.OK
    return int(answer.result_sets[0].stats.row_count_exact)


WAYS = [execute_sql, execute_streaming, execute_batch]


def insert_statement(key: int, name: str = "a") -> str:
    return f"INSERT INTO Users (Id, Name) VALUES ({key}, '{name}')"


@pytest.mark.parametrize("send", WAYS)
def test_a_number_that_goes_back_is_refused_and_the_transaction_goes_on(
    database: Database, send: Send
) -> None:
    transaction = Transaction(database)
    assert send(transaction, insert_statement(2), 2) == 1
    with pytest.raises(exceptions.InvalidArgument):
        send(transaction, insert_statement(1), 1)
    assert send(transaction, insert_statement(3), 3) == 1
    transaction.commit()
    assert read(database, "Users", "Id") == [[2], [3]]


@pytest.mark.parametrize("send", WAYS)
def test_another_request_under_the_same_number_is_refused(database: Database, send: Send) -> None:
    transaction = Transaction(database)
    assert send(transaction, insert_statement(1), 1) == 1
    with pytest.raises(exceptions.InvalidArgument):
        send(transaction, insert_statement(55, "other"), 1)
    assert send(transaction, insert_statement(2), 2) == 1
    transaction.commit()
    assert read(database, "Users", "Id") == [[1], [2]]


@pytest.mark.parametrize("send", WAYS)
def test_a_request_that_comes_again_gets_the_same_answer(database: Database, send: Send) -> None:
    transaction = Transaction(database)
    for _ in range(2):
        assert send(transaction, insert_statement(1), 1) == 1
        with pytest.raises(exceptions.AlreadyExists):
            send(transaction, insert_statement(1), 2)
    transaction.rollback()


def test_a_batch_that_comes_again_runs_once(database: Database) -> None:
    transaction = Transaction(database)
    statements = [
        insert_statement(1),
        insert_statement(2),
        "UPDATE Users SET Age = IFNULL(Age, 0) + 1 WHERE TRUE",
    ]
    answers = [transaction.execute_numbered_batch(statements, 1) for _ in range(2)]
    for answer in answers:
        assert [r.stats.row_count_exact for r in answer.result_sets] == [1, 1, 2]
        assert answer.status.code == code_pb2.OK
    transaction.commit()
    assert read(database, "Users", "Id Age") == [[1, 1], [2, 1]]


@pytest.mark.parametrize("way", ["sql", "batch"])
def test_a_transaction_that_begins_with_a_statement_is_told_again_with_its_answer(
    database: Database, way: str
) -> None:
    """The first answer names the transaction; the same numbered request in it names none."""
    begun = Transaction.begin_with(database, insert_statement(1), way)
    assert begun.execute_numbered(insert_statement(2), 2) == 1
    begun.commit()
    assert read(database, "Users", "Id") == [[1], [2]]


# Batches.


def test_a_batch_without_statements_is_refused_and_the_transaction_goes_on(
    database: Database,
) -> None:
    transaction = Transaction(database)
    with pytest.raises(exceptions.InvalidArgument):
        transaction.batch_dml()
    renamed = "UPDATE Users SET Name = 'b' WHERE Id = 1"
    assert transaction.batch_dml(insert_statement(1), renamed) == code_pb2.OK
    assert transaction.sql("SELECT Id, Name FROM Users") == [["1", "b"]]
    transaction.commit()
    assert rows(database, "SELECT Id, Name FROM Users") == [[1, "b"]]


def test_a_batch_inserts_updates_and_deletes_beside_plain_statements(database: Database) -> None:
    dml(database, insert_statement(1), insert_statement(2))
    transaction = Transaction(database)
    transaction.sql(insert_statement(4))
    statements = (
        insert_statement(3),
        "UPDATE Users SET Name = 'b' WHERE Id = 1",
        "DELETE FROM Users WHERE Id = 2",
    )
    assert transaction.batch_dml(*statements) == code_pb2.OK
    transaction.commit()
    assert read(database, "Users", "Id Name") == [[1, "b"], [3, "a"], [4, "a"]]


def test_a_batch_against_a_constraint_ends_the_transaction(database: Database) -> None:
    dml(database, insert_statement(1))
    transaction = Transaction(database)
    assert transaction.batch_dml(insert_statement(1)) == code_pb2.ALREADY_EXISTS
    with pytest.raises(exceptions.AlreadyExists):
        transaction.sql("UPDATE Users SET Name = 'b' WHERE Id = 1")
    with pytest.raises(exceptions.AlreadyExists):
        transaction.commit()
    assert read(database, "Users", "Id Name") == [[1, "a"]]


@pytest.mark.parametrize(
    "wrong", ["SELECT * FROM Users", "INSERT INTO Missing (Id) VALUES (1)", "DELETE FROM"]
)
def test_a_batch_stops_at_a_wrong_statement_and_the_transaction_goes_on(
    database: Database, wrong: str
) -> None:
    transaction = Transaction(database)
    answer = transaction.execute_numbered_batch(
        [insert_statement(1), insert_statement(2), wrong, insert_statement(3)], 1
    )
    assert answer.status.code == code_pb2.INVALID_ARGUMENT
    assert [r.stats.row_count_exact for r in answer.result_sets] == [1, 1]
    assert transaction.execute_numbered(insert_statement(4), 2) == 1
    transaction.commit()
    assert read(database, "Users", "Id") == [[1], [2], [4]]


def test_a_batch_needs_a_transaction_that_writes(database: Database) -> None:
    transaction: Any = Transaction(database, READ_ONLY)
    with pytest.raises((exceptions.InvalidArgument, exceptions.FailedPrecondition)):
        transaction.batch_dml(insert_statement(1))
    assert read(database, "Users", "Id") == []
