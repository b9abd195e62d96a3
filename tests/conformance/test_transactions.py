"""Transactions: what each kind may do, what an error leaves behind, reading one's own writes."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from talk import (
    PARTITIONED,
    READ_ONLY,
    SENTINEL,
    Transaction,
    change,
    commit,
    ddl,
    delete,
    dml,
    insert,
    read,
    rows,
)

TABLE = "CREATE TABLE T (A STRING(MAX) NOT NULL, B STRING(MAX), V STRING(MAX)) PRIMARY KEY (A, B)"
USERS = "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX)) PRIMARY KEY (Id)"
FIRST = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.ddl(TABLE)
def test_a_read_only_transaction_is_neither_committed_nor_rolled_back(database: Database) -> None:
    for end in (Transaction.commit, Transaction.rollback):
        transaction = Transaction(database, READ_ONLY)
        assert transaction.read("T", "A") == []
        assert transaction.read_timestamp is not None
        with pytest.raises(exceptions.FailedPrecondition):
            end(transaction)


@pytest.mark.ddl(TABLE)
def test_dml_does_not_run_in_a_read_only_transaction(database: Database) -> None:
    transaction = Transaction(database, READ_ONLY)
    with pytest.raises(exceptions.InvalidArgument, match="read-write or partitioned-dml"):
        transaction.sql("INSERT INTO T (A) VALUES ('a')")
    assert transaction.sql("SELECT A FROM T") == []
    with pytest.raises(exceptions.InvalidArgument, match="single-use"):
        rows(database, "INSERT INTO T (A) VALUES ('a')")


@pytest.mark.ddl(TABLE)
def test_a_timestamp_must_be_one_that_can_be_read(database: Database) -> None:
    at = commit(database, insert("T", "A B V", ("a", "b", "c")))
    for name in ("read_timestamp", "min_read_timestamp"):
        bound: dict[str, Any] = {name: at}
        assert read(database, "T", "A B V", **bound) == [["a", "b", "c"]]
    with pytest.raises((exceptions.InvalidArgument, exceptions.FailedPrecondition)):
        read(database, "T", "A", read_timestamp=FIRST)


@pytest.mark.ddl(TABLE)
def test_a_rollback_may_be_sent_twice(database: Database) -> None:
    transaction = Transaction(database)
    assert transaction.read("T", "A") == []
    transaction.rollback()
    transaction.rollback()
    with pytest.raises(exceptions.FailedPrecondition):
        transaction.commit(insert("T", "A", ("a",)))
    with pytest.raises(exceptions.FailedPrecondition):
        transaction.read("T", "A")


@pytest.mark.ddl(TABLE)
def test_after_a_commit_there_is_no_rollback_and_no_read(database: Database) -> None:
    transaction = Transaction(database)
    transaction.read("T", "A")
    transaction.commit(insert("T", "A B V", ("a", "b", "c")))
    with pytest.raises(exceptions.FailedPrecondition):
        transaction.rollback()
    with pytest.raises(exceptions.FailedPrecondition):
        transaction.read("T", "A")


@pytest.mark.ddl(TABLE)
def test_a_commit_that_is_sent_again_gives_the_same_answer(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql("INSERT INTO T (A) VALUES ('a')")
    first = transaction.commit()
    assert transaction.commit() == first


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (insert("Missing", "A", ("a",)), exceptions.NotFound),
        (insert("Users", "Id Missing", (1, "a")), exceptions.NotFound),
        (insert("Users", "Id Name", (1,)), exceptions.InvalidArgument),
        (change("update", "Users", "Id Name", (22, "a")), exceptions.NotFound),
        (delete("Missing", KeySet(all_=True)), exceptions.NotFound),
    ],
)
@pytest.mark.ddl(TABLE, USERS)
def test_a_commit_that_failed_fails_again_in_the_same_way(
    database: Database, wrong: Callable[[object], None], error: type[Exception]
) -> None:
    transaction = Transaction(database)
    transaction.sql("INSERT INTO Users (Id, Name) VALUES (7, 'a')")
    with pytest.raises(error):
        transaction.commit(insert("Users", "Id", (8,)), wrong)
    with pytest.raises(error):
        transaction.commit(insert("Users", "Id", (9,)))
    with pytest.raises(exceptions.GoogleAPICallError):
        transaction.read("Users", "Id")
    assert read(database, "Users", "Id") == []
    dml(database, "INSERT INTO Users (Id) VALUES (1)")
    assert read(database, "Users", "Id") == [[1]]


@pytest.mark.ddl(TABLE, USERS)
def test_a_statement_that_makes_no_sense_leaves_the_transaction_as_it_was(
    database: Database,
) -> None:
    transaction = Transaction(database)
    transaction.sql("INSERT INTO Users (Id, Name) VALUES (1, 'a')")
    for sql in (
        "SELECT Id FROM Missing",
        "UPDATE Users SET Missing = 'a' WHERE Id = 1",
        "UPDATE Missing SET Name = 'a' WHERE Id = 1",
        "DELETE * FROM Users",
    ):
        with pytest.raises(exceptions.InvalidArgument):
            transaction.sql(sql)
    with pytest.raises(exceptions.NotFound):
        transaction.read("Missing", "Id")
    transaction.sql("UPDATE Users SET Name = 'b' WHERE Id = 22")
    transaction.commit(insert("Users", "Id", (2,), (3,)))
    assert read(database, "Users", "Id Name") == [[1, "a"], [2, None], [3, None]]


@pytest.mark.ddl(TABLE, USERS)
def test_a_statement_against_a_constraint_ends_all_writing(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql("INSERT INTO Users (Id, Name) VALUES (1, 'a')")
    for sql in (
        "INSERT INTO Users (Id, Name) VALUES (1, 'again')",
        "INSERT INTO Users (Id, Name) VALUES (2, 'new')",
    ):
        with pytest.raises(exceptions.AlreadyExists):
            transaction.sql(sql)
    for _ in range(2):
        with pytest.raises(exceptions.AlreadyExists):
            transaction.commit(insert("Users", "Id", (3,)))
    assert read(database, "Users", "Id") == []


@pytest.mark.ddl(TABLE, USERS)
def test_after_an_error_of_a_constraint_there_is_still_a_rollback(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql("INSERT INTO Users (Id, Name) VALUES (1, 'a')")
    with pytest.raises(exceptions.AlreadyExists):
        transaction.sql("INSERT INTO Users (Id, Name) VALUES (1, 'again')")
    transaction.rollback()
    with pytest.raises(exceptions.FailedPrecondition):
        transaction.commit(insert("Users", "Id", (2,)))
    assert read(database, "Users", "Id") == []


@pytest.mark.ddl(TABLE)
def test_a_strong_read_sees_the_last_commit(database: Database) -> None:
    first = commit(database, insert("T", "A B V", ("a", "b", "1")))
    second = commit(database, change("update", "T", "A B V", ("a", "b", "2")))
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.read("T", ["V"], KeySet(all_=True))) == [["2"]]
        assert snapshot._transaction_read_timestamp >= second > first
    assert rows(database, "SELECT V FROM T", min_read_timestamp=first) == [["2"]]
    assert rows(database, "SELECT V FROM T", read_timestamp=first) == [["1"]]


@pytest.mark.parametrize("key", ["1", "2", "3"])
@pytest.mark.ddl(TABLE)
def test_mutations_of_a_commit_follow_each_other(database: Database, key: str) -> None:
    ranged = KeyRange(start_closed=["a", "1"], end_closed=["a", "3"])
    commit(
        database,
        delete("T", KeySet(ranges=[ranged])),
        insert("T", "A B V", ("a", key, "old")),
        change("update", "T", "A B V", ("a", key, "new")),
    )
    assert read(database, "T", "A B V") == [["a", key, "new"]]


PARTITIONED_SCHEMA = (
    """CREATE TABLE P (Id INT64 NOT NULL, Name STRING(MAX), Age INT64,
      `At` TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)""",
    "CREATE SEQUENCE seq OPTIONS (sequence_kind = 'bit_reversed_positive')",
)
PEOPLE = insert("P", "Id Name Age", (1, "a", 27), (2, "b", 32), (10, "c", 31))


@pytest.mark.ddl(*PARTITIONED_SCHEMA)
def test_partitioned_dml_updates_and_deletes(database: Database) -> None:
    commit(database, PEOPLE)
    updated = "UPDATE P SET Name = NULL, `At` = PENDING_COMMIT_TIMESTAMP() WHERE Id > 1"
    assert database.execute_partitioned_dml(updated) == 2
    assert rows(database, "SELECT Id FROM P WHERE Name IS NOT NULL OR `At` IS NULL") == [[1]]
    for function, expected in (("GET_INTERNAL_SEQUENCE_STATE", 1), ("GET_NEXT_SEQUENCE_VALUE", 0)):
        drawn = f"UPDATE P SET Age = {function}(SEQUENCE seq) WHERE Id = 1"
        assert database.execute_partitioned_dml(drawn) == 1
        assert rows(database, "SELECT COUNT(*) FROM P WHERE Age IS NULL") == [[expected]]
    assert database.execute_partitioned_dml("DELETE FROM P WHERE TRUE") == 3
    assert rows(database, "SELECT Id FROM P") == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM P",
        "INSERT INTO P (Id, Name) VALUES (20, 'a')",
        "UPDATE P SET Name = 'a' WHERE Id = (SELECT MAX(Id) FROM P)",
    ],
)
@pytest.mark.ddl(*PARTITIONED_SCHEMA)
def test_partitioned_dml_is_for_plain_updates_and_deletes(database: Database, sql: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        database.execute_partitioned_dml(sql)


@pytest.mark.ddl(*PARTITIONED_SCHEMA)
def test_a_partitioned_transaction_neither_reads_nor_runs_batches(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        Transaction(database, PARTITIONED).read("P", "Id")
    with pytest.raises(exceptions.InvalidArgument):
        Transaction(database, PARTITIONED).batch_dml("DELETE FROM P WHERE TRUE")


OPTION = "OPTIONS (allow_commit_timestamp = true)"
OWN = (
    f"CREATE TABLE Keyed (Id STRING(9), Ts TIMESTAMP {OPTION}, V STRING(9)) PRIMARY KEY (Id, Ts)",
    "CREATE INDEX KeyedByV ON Keyed (V)",
    f"CREATE TABLE Child (Id STRING(9), Ts TIMESTAMP {OPTION}, N INT64) PRIMARY KEY (Id, Ts, N),"
    " INTERLEAVE IN PARENT Keyed",
    f"CREATE TABLE Plain (Id STRING(9), K STRING(9), Ts TIMESTAMP {OPTION}) PRIMARY KEY (Id)",
    "CREATE INDEX PlainByTs ON Plain (Ts)",
    "CREATE INDEX PlainByK ON Plain (K)",
    "CREATE TABLE Mails (Id INT64, Mail STRING(MAX)) PRIMARY KEY (Id)",
    "CREATE UNIQUE INDEX ByMail ON Mails (Mail)",
)
EARLY = "2020-01-01T00:00:00Z"
NOW = "PENDING_COMMIT_TIMESTAMP()"


@pytest.mark.ddl(*OWN)
def test_explicit_timestamps_are_read_before_the_commit(database: Database) -> None:
    at = commit(database, insert("Keyed", "Id Ts V", ("a", SENTINEL, "x")))
    assert rows(database, "SELECT Ts FROM Keyed") == [[at]]
    transaction = Transaction(database)
    transaction.sql(f"INSERT INTO Keyed (Id, Ts, V) VALUES ('b', '{EARLY}', 'y')")
    transaction.sql(f"INSERT INTO Plain (Id, K, Ts) VALUES ('b', 'k', '{EARLY}')")
    assert transaction.sql("SELECT Ts FROM Keyed WHERE Id = 'b'") == [[EARLY]]
    assert transaction.read("Keyed", "Id Ts V", "b", EARLY) == [["b", EARLY, "y"]]
    assert transaction.read("Plain", "Id Ts", EARLY, index="PlainByTs") == [["b", EARLY]]
    transaction.rollback()


@pytest.mark.ddl(*OWN)
def test_a_table_whose_key_waits_for_the_commit_is_not_read(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql(f"INSERT INTO Keyed (Id, Ts, V) VALUES ('a', '{EARLY}', 'x')")
    transaction.sql(f"INSERT INTO Child (Id, Ts, N) VALUES ('a', '{EARLY}', 1)")
    transaction.sql(f"INSERT INTO Keyed (Id, Ts, V) VALUES ('b', {NOW}, 'y')")
    for sql in (
        "SELECT Ts FROM Keyed",
        "SELECT Id FROM Keyed",
        "SELECT V FROM Keyed WHERE Id = 'a'",
        "SELECT V FROM Keyed@{FORCE_INDEX=KeyedByV}",
    ):
        with pytest.raises(exceptions.InvalidArgument):
            transaction.sql(sql)
    with pytest.raises(exceptions.InvalidArgument):
        transaction.read("Keyed", "Id V", "a", EARLY)
    with pytest.raises(exceptions.InvalidArgument):
        transaction.read("Keyed", "Id V", "x", index="KeyedByV")
    assert transaction.read("Child", "Id N", "a", EARLY, "1") == [["a", "1"]]
    transaction.rollback()


@pytest.mark.ddl(*OWN)
def test_a_parent_is_read_while_its_childs_key_waits(database: Database) -> None:
    transaction = Transaction(database)
    at = commit(database, insert("Keyed", "Id Ts V", ("a", SENTINEL, "x")))
    text = at.rfc3339()  # type: ignore[attr-defined]
    transaction.sql(f"INSERT INTO Child (Id, Ts, N) VALUES ('a', '{text}', 1)")
    assert transaction.read("Keyed", "V", "a", text) == [["x"]]
    transaction.rollback()


@pytest.mark.ddl(*OWN)
def test_beside_a_column_that_waits_the_others_are_read(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql(f"INSERT INTO Plain (Id, K, Ts) VALUES ('a', 'k', {NOW})")
    assert transaction.sql("SELECT Id, K FROM Plain") == [["a", "k"]]
    assert transaction.sql("SELECT K FROM Plain@{FORCE_INDEX=PlainByK}") == [["k"]]
    assert transaction.read("Plain", "Id K", "a") == [["a", "k"]]
    for sql in ("SELECT Ts FROM Plain", "SELECT Ts FROM Plain@{FORCE_INDEX=PlainByTs}"):
        with pytest.raises(exceptions.InvalidArgument):
            transaction.sql(sql)
    with pytest.raises(exceptions.InvalidArgument):
        transaction.read("Plain", "Id Ts", "a")
    with pytest.raises(exceptions.InvalidArgument):
        transaction.read("Plain", "Id", EARLY, index="PlainByTs")
    transaction.rollback()


@pytest.mark.ddl(*OWN)
def test_an_index_shows_and_judges_what_is_not_committed_yet(database: Database) -> None:
    dml(database, "INSERT INTO Mails (Id, Mail) VALUES (1, 'a@x')")
    transaction = Transaction(database)
    transaction.sql("UPDATE Mails SET Mail = 'b@x' WHERE Id = 1")
    transaction.sql("INSERT INTO Mails (Id, Mail) VALUES (2, 'a@x')")
    forced = "SELECT Id, Mail FROM Mails@{FORCE_INDEX=ByMail} ORDER BY Mail"
    assert transaction.sql(forced) == [["2", "a@x"], ["1", "b@x"]]
    assert transaction.read("Mails", "Id", "b@x", index="ByMail") == [["1"]]
    with pytest.raises(exceptions.AlreadyExists):
        transaction.sql("INSERT INTO Mails (Id, Mail) VALUES (3, 'a@x')")
    transaction.rollback()
    assert rows(database, "SELECT Id, Mail FROM Mails") == [[1, "a@x"]]


@pytest.mark.ddl(TABLE)
def test_bounds_of_every_kind_read_what_was_committed_by_then(database: Database) -> None:
    first = commit(database, insert("T", "A B V", ("a", "b", "1")))
    second = commit(database, insert("T", "A B V", ("c", "d", "2")))
    minute = datetime.timedelta(minutes=1)
    assert read(database, "T", "A", read_timestamp=first) == [["a"]]
    assert read(database, "T", "A", read_timestamp=second) == [["a"], ["c"]]
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=50)
    bounds: tuple[dict[str, Any], ...] = (
        {"max_staleness": minute},
        {"min_read_timestamp": first},
        {"min_read_timestamp": soon},
        {"read_timestamp": soon},
    )
    for bound in bounds:
        keys = [row[0] for row in read(database, "T", "A", **bound)]
        assert keys in ([], ["a"], ["a", "c"])
    assert read(database, "T", "A", read_timestamp=soon) == [["a"], ["c"]]


@pytest.mark.ddl(TABLE)
def test_a_timestamp_hours_ahead_is_not_waited_for(database: Database) -> None:
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)
    for name in ("read_timestamp", "min_read_timestamp"):
        bound: dict[str, Any] = {name: later}
        with pytest.raises((exceptions.DeadlineExceeded, exceptions.FailedPrecondition)):
            read(database, "T", "A", **bound)
        with pytest.raises((exceptions.DeadlineExceeded, exceptions.FailedPrecondition)):
            rows(database, "SELECT A FROM T", **bound)


@pytest.mark.ddl(TABLE)
def test_a_table_that_was_dropped_is_not_found(database: Database) -> None:
    ddl(database, "DROP TABLE T")
    with pytest.raises(exceptions.NotFound, match="Table not found: T"):
        read(database, "T", "A")
