"""Mutations of one row and of many, and malformed ones."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from talk import ALL, change, commit, ddl, delete, insert, read

NOW = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
METHODS = ["insert", "update", "insert_or_update", "replace"]

pytestmark = pytest.mark.ddl(
    "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX), Age INT64, Updated TIMESTAMP)"
    " PRIMARY KEY (Id)",
    "CREATE TABLE Threads (Id INT64 NOT NULL, T INT64 NOT NULL, Starred BOOL)"
    " PRIMARY KEY (Id, T), INTERLEAVE IN PARENT Users ON DELETE CASCADE",
)


def users(database: Database) -> list[list[Any]]:
    return read(database, "Users", "Id Name Age")


def test_inserted_rows_are_read_with_nulls_for_what_is_not_given(database: Database) -> None:
    commit(database, insert("Users", "Id Name", (1, "a")), insert("Users", "Id", (2,)))
    assert users(database) == [[1, "a", None], [2, None, None]]
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("Users", "Id", (1,)))


def test_an_update_needs_its_row_and_may_name_the_key_alone(database: Database) -> None:
    with pytest.raises(exceptions.NotFound):
        commit(database, change("update", "Users", "Id Name", (1, "a")))
    commit(database, insert("Users", "Id Name", (1, "a")))
    commit(database, change("update", "Users", "Id", (1,)))
    assert users(database) == [[1, "a", None]]


def test_a_replace_clears_the_columns_that_it_does_not_name(database: Database) -> None:
    commit(database, insert("Users", "Id Name Age", (1, "a", 27)))
    commit(database, change("replace", "Users", "Id Age", (1, 28)))
    assert users(database) == [[1, None, 28]]


def test_a_delete_of_a_row_that_is_not_there_is_none(database: Database) -> None:
    commit(database, insert("Users", "Id", (1,), (2,)))
    commit(database, delete("Users", KeySet(keys=[[1], [1], [7]])))
    assert users(database) == [[2, None, None]]


def test_an_empty_commit_is_one(database: Database) -> None:
    first, second = commit(database), commit(database)
    assert first < second


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("insert_or_update", [[1, "b", 27]]),
        ("update", [[1, "b", 27]]),
        ("replace", [[1, "b", None]]),
    ],
)
def test_the_last_of_several_writes_of_a_row_wins(
    database: Database, method: str, expected: list[list[Any]]
) -> None:
    commit(database, insert("Users", "Id Name Age", (1, "x", 27)))
    commit(database, change(method, "Users", "Id Name", (1, "a"), (1, "b")))
    assert users(database) == expected


def test_a_mutation_that_fails_takes_the_others_along(database: Database) -> None:
    commit(database, insert("Users", "Id", (1,)))
    with pytest.raises(exceptions.NotFound):
        commit(database, delete("Users", ALL), insert("Missing", "Column", (1,)))
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("Users", "Id", (2,), (2,)))
    assert users(database) == [[1, None, None]]


MALFORMED: list[tuple[str, tuple[object, ...], type[Exception]]] = [
    ("Id Id Name", (1, 2, "a"), exceptions.InvalidArgument),
    ("Id Id", (1, 1), exceptions.InvalidArgument),
    ("iD Id", (1, 2), exceptions.InvalidArgument),
    ("Id Name Name", (1, "a", "a"), exceptions.InvalidArgument),
    ("Id Name nAME", (1, "a", "b"), exceptions.InvalidArgument),
    ("Id Name Age", (1, "a"), exceptions.InvalidArgument),
    ("Id Name", (1, "a", 27), exceptions.InvalidArgument),
    ("bad-key Name", (1, "a"), exceptions.NotFound),
    ("Id bad-column", (1, "a"), exceptions.NotFound),
    ("Id Name Age", (NOW, "a", 27), exceptions.FailedPrecondition),
    ("Id Name Age", (1, "a", NOW), exceptions.FailedPrecondition),
    ("Id Name Updated", (1, "a", 27), exceptions.FailedPrecondition),
    ("Id Name", (1, ["a", "b"]), exceptions.FailedPrecondition),
]


@pytest.mark.parametrize(("columns", "row", "error"), MALFORMED)
def test_a_malformed_mutation_is_refused(
    database: Database, columns: str, row: tuple[object, ...], error: type[Exception]
) -> None:
    for method in METHODS:
        with pytest.raises(error):
            commit(database, change(method, "Users", columns, row))
    assert users(database) == []


@pytest.mark.parametrize(
    ("table", "error"),
    [("", (exceptions.InvalidArgument, exceptions.NotFound)), ("bad-table", exceptions.NotFound)],
)
def test_a_mutation_names_a_table(
    database: Database, table: str, error: type[Exception] | tuple[type[Exception], ...]
) -> None:
    for method in METHODS:
        with pytest.raises(error):
            commit(database, change(method, table, "Id Name", (1, "a")))
    with pytest.raises(error):
        commit(database, delete(table, [1]))


def test_a_key_is_given_whole(database: Database) -> None:
    commit(database, insert("Users", "Id", (1,)), insert("Threads", "Id T Starred", (1, 1, True)))
    whole = KeySet(keys=[[1, 1]])
    assert read(database, "Threads", "Id T Starred", whole) == [[1, 1, True]]
    with pytest.raises((exceptions.FailedPrecondition, exceptions.InvalidArgument)):
        read(database, "Threads", "Id T", KeySet(keys=[[1]]))
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, change("update", "Threads", "Id Starred", (1, False)))


def test_names_are_found_in_any_case(database: Database) -> None:
    ddl(database, "CREATE INDEX ByName ON uSERS (nAME)")
    commit(database, insert("uSeRs", "iD NAME", (1, "a")))
    assert read(database, "USERS", "id name", index="BYNAME") == [[1, "a"]]
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE TABLE USERS (Id INT64) PRIMARY KEY (Id)")
