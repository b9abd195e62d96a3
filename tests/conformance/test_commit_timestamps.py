"""Columns with allow_commit_timestamp: what may be written, when it may be read, what it holds."""

from __future__ import annotations

import datetime

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from talk import SENTINEL, Transaction, change, commit, ddl, delete, dml, insert, read, rows

OPTION = "OPTIONS (allow_commit_timestamp = true)"
USERS = f"CREATE TABLE Users (Id INT64, Name STRING(MAX), `At` TIMESTAMP {OPTION}, Plain TIMESTAMP)"
SCHEMA = (
    f"{USERS} PRIMARY KEY (Id)",
    f"CREATE TABLE Keyed (Id INT64, `At` TIMESTAMP {OPTION}, Name STRING(MAX))"
    " PRIMARY KEY (Id, `At`)",
    f"CREATE TABLE Down (Id INT64, `At` TIMESTAMP {OPTION}, Name STRING(MAX))"
    " PRIMARY KEY (Id, `At` DESC)",
    f"CREATE TABLE Judged (Id INT64, `At` TIMESTAMP {OPTION}, Name STRING(MAX),"
    " Copy STRING(MAX) AS (Name) STORED, CHECK (Name != '')) PRIMARY KEY (Id)",
    f"CREATE TABLE Indexed (Id INT64, `At` TIMESTAMP {OPTION}, Name STRING(MAX)) PRIMARY KEY (Id)",
    "CREATE INDEX ByNameAndAt ON Indexed (Name, `At`)",
    "CREATE VIEW Seen SQL SECURITY INVOKER AS SELECT t.Id, t.At FROM Judged AS t",
)
NOW = "PENDING_COMMIT_TIMESTAMP()"
LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
FIRST = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)


def ago(seconds: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)


@pytest.mark.ddl(*SCHEMA)
def test_every_kind_of_mutation_writes_the_commit_timestamp(database: Database) -> None:
    at = commit(
        database,
        insert("Users", "Id Name At", (6, "a", SENTINEL)),
        change("update", "Users", "Id Name At", (6, "b", SENTINEL)),
        change("insert_or_update", "Users", "Id Name At", (7, "c", SENTINEL)),
        insert("Users", "Id Name At", (8, "d", None)),
        change("replace", "Users", "Id Name At", (8, "e", SENTINEL)),
    )
    assert read(database, "Users", "Id Name At") == [[6, "b", at], [7, "c", at], [8, "e", at]]


@pytest.mark.ddl(*SCHEMA)
def test_every_kind_of_mutation_writes_it_into_a_key(database: Database) -> None:
    at = commit(
        database,
        insert("Keyed", "Id At Name", (6, SENTINEL, "a")),
        change("update", "Keyed", "Id At Name", (6, SENTINEL, "b")),
        change("insert_or_update", "Keyed", "Id At Name", (7, SENTINEL, "c")),
        change("replace", "Keyed", "Id At Name", (7, SENTINEL, "d")),
    )
    assert read(database, "Keyed", "Id At Name") == [[6, at, "b"], [7, at, "d"]]


@pytest.mark.ddl(*SCHEMA)
def test_the_same_key_at_two_commits_is_two_rows(database: Database) -> None:
    first = commit(database, insert("Keyed", "Id At", (0, SENTINEL)))
    second = commit(database, insert("Keyed", "Id At", (0, SENTINEL)))
    assert read(database, "Keyed", "At") == [[first], [second]]
    assert commit(database, insert("Down", "Id At", (0, SENTINEL))) > second


@pytest.mark.parametrize(
    ("columns", "value"),
    [
        ("Id Name Plain", (6, "a", SENTINEL)),
        ("Id Name At", (6, "a", LAST)),
        ("Id Name At", (6, "a", datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1))),
    ],
)
@pytest.mark.ddl(*SCHEMA)
def test_what_the_column_does_not_take_is_refused(
    database: Database, columns: str, value: tuple[object, ...]
) -> None:
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, insert("Users", columns, value))
    commit(database, insert("Users", "Id Plain", (6, LAST)))


@pytest.mark.ddl(*SCHEMA)
def test_what_the_transaction_wrote_it_may_delete(database: Database) -> None:
    commit(
        database,
        insert("Users", "Id At", (6, SENTINEL)),
        delete("Users", [6]),
        insert("Keyed", "Id At", (1, SENTINEL)),
        delete("Keyed", [1, SENTINEL]),
        insert("Keyed", "Id At Name", (1, SENTINEL, "a"), (1, FIRST, "b")),
        delete("Keyed", KeySet(all_=True)),
    )
    assert read(database, "Users", "Id") == []
    assert read(database, "Keyed", "Id") == []


@pytest.mark.ddl(*SCHEMA)
def test_in_a_range_the_sentinel_is_later_than_everything(database: Database) -> None:
    at = commit(database, insert("Keyed", "Id At", (1, SENTINEL)))
    for start in (SENTINEL, SENTINEL):
        ranged = KeyRange(start_closed=[1, start], end_open=[1, SENTINEL])
        commit(database, delete("Keyed", KeySet(ranges=[ranged])))
    ranged = KeyRange(start_closed=[1, SENTINEL], end_open=[1, at])
    commit(database, delete("Keyed", KeySet(ranges=[ranged])))
    assert read(database, "Keyed", "At") == [[at]]
    ranged = KeyRange(start_closed=[1, at], end_open=[1, SENTINEL])
    commit(database, delete("Keyed", KeySet(ranges=[ranged])))
    assert read(database, "Keyed", "At") == []


@pytest.mark.ddl(*SCHEMA)
def test_a_range_that_reaches_into_the_future_is_refused(database: Database) -> None:
    def key_range(**bounds: list[object]) -> KeySet:
        return KeySet(ranges=[KeyRange(**bounds)])

    earlier, later, future = ago(2000), ago(1000), ago(-1000)
    commit(database, delete("Keyed", key_range(start_open=[1, earlier], end_open=[1, later])))
    commit(database, delete("Keyed", key_range(start_open=[1, future], end_open=[1, earlier])))
    commit(database, delete("Keyed", key_range(start_open=[1, future], end_open=[1, future])))
    commit(database, delete("Down", key_range(start_open=[1, later], end_open=[1, earlier])))
    commit(database, delete("Down", key_range(start_open=[1, earlier], end_open=[1, future])))
    refused = {
        "Keyed": [
            key_range(start_open=[1, future], end_open=[1, ago(-2000)]),
            key_range(start_open=[1, earlier], end_open=[1, future]),
            key_range(start_closed=[1, future], end_closed=[1, future]),
        ],
        "Down": [
            key_range(start_open=[1, ago(-2000)], end_open=[1, future]),
            key_range(start_open=[1, future], end_open=[1, earlier]),
        ],
    }
    for table, ranges in refused.items():
        for each in ranges:
            with pytest.raises(exceptions.FailedPrecondition):
                commit(database, delete(table, each))


@pytest.mark.ddl(*SCHEMA)
def test_a_range_up_to_a_prefix_takes_the_rows_of_the_same_commit(database: Database) -> None:
    for table, bounds in (
        ("Keyed", {"start_closed": [1, ago(10)], "end_closed": [1]}),
        ("Down", {"start_closed": [1], "end_closed": [1, ago(10)]}),
    ):
        at = commit(
            database,
            insert(table, "Id At Name", (1, SENTINEL, "a")),
            delete(table, KeySet(ranges=[KeyRange(**bounds)])),
            insert(table, "Id At Name", (1, SENTINEL, "b")),
        )
        assert read(database, table, "At Name") == [[at, "b"]]


@pytest.mark.ddl(*SCHEMA)
def test_dml_writes_it_at_commit_and_not_before(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql(f"INSERT INTO Keyed (Id, `At`, Name) VALUES (6, {NOW}, 'a')")
    transaction.sql(f"INSERT INTO Users (Id, `At`) VALUES (1, {NOW}), (2, TIMESTAMP_MICROS(5))")
    transaction.sql(f"UPDATE Users SET `At` = {NOW} WHERE Id = 2")
    assert read(database, "Keyed", "Id") == []
    at = transaction.commit()
    assert read(database, "Keyed", "Id At Name") == [[6, at, "a"]]
    assert read(database, "Users", "Id Name At") == [[1, None, at], [2, None, at]]


@pytest.mark.ddl(*SCHEMA)
def test_dml_may_write_it_many_times(database: Database) -> None:
    transaction = Transaction(database)
    for number in range(2):
        transaction.sql(f"INSERT INTO Judged (Id, `At`) VALUES ({number}, {NOW})")
        transaction.sql(
            f"INSERT INTO Indexed (Id, `At`, Name) VALUES ({number}, {NOW}, 'a{number}')"
        )
    transaction.sql(f"UPDATE Judged SET `At` = {NOW} WHERE Id = 0")
    transaction.sql(f"UPDATE Judged SET `At` = {NOW} WHERE Id = 1")
    code = transaction.batch_dml(
        f"INSERT INTO Users (Id, Name, `At`) VALUES (1, 'a', {NOW})",
        "UPDATE Users SET Name = 'b' WHERE Id = 1",
        f"UPDATE Users SET `At` = {NOW} WHERE Id = 1",
    )
    assert code == 0
    at = transaction.commit()
    assert read(database, "Judged", "At") == [[at], [at]]
    assert read(database, "Indexed", "Name At", index="ByNameAndAt") == [["a0", at], ["a1", at]]
    assert read(database, "Users", "Name At") == [["b", at]]


@pytest.mark.ddl(*SCHEMA)
def test_it_is_a_value_and_nothing_else(database: Database) -> None:
    for sql in (
        f"INSERT INTO Users (Id, `At`) SELECT 1, {NOW}",
        f"INSERT INTO Users (Id, Plain) VALUES (1, {NOW})",
        f"INSERT INTO Users (Id, `At`) VALUES (1, TIMESTAMP_ADD({NOW}, INTERVAL 1 DAY))",
        f"SELECT {NOW}",
    ):
        with pytest.raises(exceptions.InvalidArgument, match="PENDING_COMMIT_TIMESTAMP"):
            dml(database, sql)


@pytest.mark.ddl(*SCHEMA)
def test_a_view_does_not_show_what_is_not_known_yet(database: Database) -> None:
    transaction = Transaction(database)
    transaction.sql(f"INSERT INTO Judged (Id, `At`, Name) VALUES (0, {NOW}, 'a')")
    with pytest.raises(exceptions.InvalidArgument):
        transaction.sql("SELECT Id, `At` FROM Seen")
    transaction.rollback()


def family(*options: str) -> list[str]:
    first, second, third = (f"ts TIMESTAMP {option}" for option in options)
    return [
        f"CREATE TABLE T1 ({first}) PRIMARY KEY (ts)",
        f"CREATE TABLE T2 ({second}, a INT64) PRIMARY KEY (ts, a), INTERLEAVE IN PARENT T1",
        f"CREATE TABLE T3 ({third}, a INT64, b INT64) PRIMARY KEY (ts, a, b),"
        " INTERLEAVE IN PARENT T2",
    ]


@pytest.mark.parametrize(
    ("options", "table", "columns", "row"),
    [
        (("", OPTION, OPTION), "T3", "ts a b", (SENTINEL, 2, 3)),
        ((OPTION, OPTION, ""), "T1", "ts", (SENTINEL,)),
    ],
)
@pytest.mark.ddl
def test_a_family_of_tables_must_agree_before_the_sentinel_is_taken(
    database: Database, options: tuple[str, ...], table: str, columns: str, row: tuple[object, ...]
) -> None:
    ddl(database, *family(*options))
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, insert(table, columns, row))
    plain = ago(10)
    commit(
        database,
        insert("T1", "ts", (plain,)),
        insert("T2", "ts a", (plain, 2)),
        insert("T3", "ts a b", (plain, 2, 3)),
    )
    assert read(database, "T3", "ts") == [[plain]]


@pytest.mark.ddl(*family("", "", "")[:2])
def test_a_family_that_came_to_agree_takes_it_together(database: Database) -> None:
    option = "ALTER COLUMN ts SET OPTIONS (allow_commit_timestamp = true)"
    ddl(database, f"ALTER TABLE T1 {option}")
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, insert("T2", "ts a", (SENTINEL, 2)))
    ddl(database, f"ALTER TABLE T2 {option}")
    at = commit(database, insert("T1", "ts", (SENTINEL,)), insert("T2", "ts a", (SENTINEL, 2)))
    assert read(database, "T2", "ts a") == [[at, 2]]
    at = commit(database, insert("T1", "ts", (SENTINEL,)))
    with pytest.raises((exceptions.NotFound, exceptions.InvalidArgument)):
        commit(database, insert("T2", "ts a", (SENTINEL, 2)))
    commit(database, insert("T2", "ts a", (at, 2)))


@pytest.mark.ddl(
    f"CREATE TABLE Base (Id INT64, A TIMESTAMP {OPTION}, B TIMESTAMP {OPTION}, Name STRING(MAX),"
    f" V TIMESTAMP {OPTION}) PRIMARY KEY (Id, A, B)",
    "CREATE INDEX ByName ON Base (A, Name) STORING (V)",
)
def test_an_index_holds_the_commit_timestamp_too(database: Database) -> None:
    row = (1, SENTINEL, SENTINEL, "a", SENTINEL)
    at = commit(database, insert("Base", "Id A B Name V", row))
    assert read(database, "Base", "Id A B Name V") == [[1, at, at, "a", at]]
    assert read(database, "Base", "A Name V", index="ByName") == [[at, "a", at]]
    assert rows(database, "SELECT V FROM Base@{FORCE_INDEX=ByName}") == [[at]]
