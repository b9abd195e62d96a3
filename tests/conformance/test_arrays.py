"""Array columns: every kind of mutation, NULLs inside and instead, empty ones, limits."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from talk import change, commit, insert, read

pytestmark = pytest.mark.ddl(
    "CREATE TABLE A (Id INT64, S ARRAY<STRING(10)>, L ARRAY<STRING(MAX)>, B ARRAY<BYTES(10)>,"
    " N ARRAY<INT64>, T ARRAY<TIMESTAMP>, D ARRAY<DATE>, M ARRAY<NUMERIC>, J ARRAY<JSON>)"
    " PRIMARY KEY (Id)"
)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("S", ["test", None]),
        ("S", []),
        ("B", [b"MTIz", None]),
        ("B", []),
        ("N", [1, 2, 3]),
        ("T", [datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)] * 3),
        ("D", [datetime.date(1, 1, 1)]),
        ("N", None),
    ],
)
def test_an_array_comes_back_and_the_others_are_null(
    database: Database, column: str, value: list[Any] | None
) -> None:
    commit(database, insert("A", f"Id {column}", (1, value)))
    assert read(database, "A", f"{column} L") == [[value, None]]


@pytest.mark.parametrize(
    ("method", "numbers"), [("insert_or_update", [1]), ("update", [1]), ("replace", None)]
)
def test_an_array_is_replaced_whole(
    database: Database, method: str, numbers: list[int] | None
) -> None:
    commit(database, insert("A", "Id S N", (1, ["old", "older"], [1])))
    commit(database, change(method, "A", "Id S", (1, ["new"])))
    assert read(database, "A", "S N") == [[["new"], numbers]]


def test_the_length_of_a_type_is_that_of_each_element(database: Database) -> None:
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, insert("A", "Id S", (1, ["short", "x" * 11])))
    commit(database, insert("A", "Id S", (1, ["é" * 10])))


def test_a_long_array_is_written(database: Database) -> None:
    long = ["a" * 250_000] * 4
    commit(database, insert("A", "Id L", (1, long)))
    assert read(database, "A", "L") == [[long]]


def test_a_day_that_is_none_is_refused(database: Database) -> None:
    with pytest.raises((exceptions.InvalidArgument, exceptions.FailedPrecondition)):
        commit(database, insert("A", "Id D", (1, ["0000-00-00"])))


MAY_BE_NULL = (
    "IF(false, ARRAY<STRUCT<INT64>>[], null)",
    "CASE WHEN false THEN ARRAY(SELECT AS STRUCT 'one' AS one) END",
    "(SELECT ARRAY_AGG(STRUCT(n)) FROM UNNEST([1]) AS n)",
    "CAST(NULL AS ARRAY<STRUCT<INT64>>)",
    "IFNULL(CAST(NULL AS ARRAY<STRUCT<INT64>>), NULL)",
    "[STRUCT(1)] UNION ALL SELECT NULL",
)


@pytest.mark.parametrize("expression", MAY_BE_NULL)
def test_an_array_of_structs_that_may_be_null_is_no_result(
    blank: Database, expression: str
) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match="null-valued array of struct"):
        ask(blank, f"SELECT {expression}")


@pytest.mark.parametrize(
    "expression",
    [
        "IF(false, ARRAY<STRUCT<INT64>>[], [])",
        "CASE WHEN false THEN ARRAY(SELECT AS STRUCT 'one' AS one) ELSE [] END",
        "(SELECT COALESCE(ARRAY_AGG(STRUCT(n)), []) FROM UNNEST([1]) AS n WHERE false)",
        "IFNULL(x, []) FROM (SELECT ARRAY_AGG(STRUCT(n)) AS x FROM UNNEST([0]) AS n WHERE n > 0)",
    ],
)
def test_an_array_of_structs_that_is_never_null_is_one(blank: Database, expression: str) -> None:
    assert ask(blank, f"SELECT {expression}").value == []


def test_a_group_always_has_an_array_of_structs(blank: Database) -> None:
    grouped = "SELECT ARRAY_AGG(STRUCT(n)) FROM UNNEST([1, 1]) AS n GROUP BY n"
    assert ask(blank, grouped).value == [[1], [1]]
