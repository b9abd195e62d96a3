"""Queries over tables: nested results, hints, locks, samples, keys of NUMERIC, sizes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from talk import rows

pytestmark = pytest.mark.ddl(
    "CREATE TABLE Users (UserId INT64, Name STRING(MAX), Age INT64) PRIMARY KEY (UserId)",
    "CREATE TABLE Threads (UserId INT64, ThreadId INT64, Starred BOOL) "
    "PRIMARY KEY (UserId, ThreadId), INTERLEAVE IN PARENT Users",
    "CREATE INDEX ByName ON Users (Name)",
    "CREATE TABLE Amounts (K NUMERIC, V INT64) PRIMARY KEY (K)",
)


@pytest.fixture(autouse=True)
def fill(database: Database) -> None:
    with database.batch() as batch:
        batch.insert(
            "Users",
            ("UserId", "Name", "Age"),
            [(1, "Douglas Adams", 49), (2, "Suzanne Collins", 61), (3, "J.R.R. Tolkien", 81)],
        )
        batch.insert(
            "Threads",
            ("UserId", "ThreadId", "Starred"),
            [(1, 1, True), (1, 4, False), (2, 2, None)],
        )
        batch.insert(
            "Amounts",
            ("K", "V"),
            [(None, None), (Decimal("-12.3"), -1), (0, 0), (Decimal("12.3"), 1)],
        )


def test_rows_of_a_child_come_as_an_array_of_structs(database: Database) -> None:
    answer = ask(
        database,
        "SELECT u.Name, ARRAY(SELECT AS STRUCT t.ThreadId, t.Starred FROM Threads t"
        " WHERE t.UserId = u.UserId ORDER BY t.ThreadId DESC) AS threads"
        " FROM Users u WHERE u.UserId IN (1, 3) ORDER BY u.UserId",
    )
    assert answer.types == ["STRING", "ARRAY<STRUCT<ThreadId INT64, Starred BOOL>>"]
    assert answer.rows == [("Douglas Adams", [[4, False], [1, True]]), ("J.R.R. Tolkien", [])]


def test_aggregates_order_and_limit_their_values(database: Database) -> None:
    answer = ask(
        database,
        "SELECT ARRAY_AGG(UserId ORDER BY UserId DESC LIMIT 2), STRING_AGG(Name ORDER BY Name),"
        " STRING_AGG(Name, '; ' ORDER BY Age DESC LIMIT 2), STDDEV(UserId) > .6 FROM Users",
    )
    assert answer.rows == [
        (
            [3, 2],
            "Douglas Adams,J.R.R. Tolkien,Suzanne Collins",
            "J.R.R. Tolkien; Suzanne Collins",
            True,
        )
    ]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("K < 0", [-1]),
        ("K = 0", [0]),
        ("K < -12.1 OR K > 12.2", [-1, 1]),
        ("K IS NULL", [None]),
        ("K IS NOT NULL", [-1, 0, 1]),
    ],
)
def test_a_numeric_key_compares_with_literals(
    database: Database, where: str, values: list[object]
) -> None:
    rows = ask(database, f"SELECT V FROM Amounts WHERE {where} ORDER BY K").rows
    assert [row[0] for row in rows] == values


@pytest.mark.parametrize(
    "sql",
    [
        "@{OPTIMIZER_VERSION=1} SELECT Age FROM Users WHERE UserId = 2",
        "@{LOCK_SCANNED_RANGES=EXCLUSIVE} SELECT Age FROM Users WHERE UserId = 2",
        "SELECT Age FROM Users@{FORCE_INDEX=ByName} WHERE Name = 'Suzanne Collins'",
        "SELECT Age FROM Users@{FORCE_INDEX=_BASE_TABLE, GROUPBY_SCAN_OPTIMIZATION=TRUE}"
        " WHERE UserId = 2",
        "SELECT u.Age FROM Users u JOIN@{JOIN_METHOD=APPLY_JOIN} Threads t ON u.UserId = t.UserId"
        " WHERE t.ThreadId = 2",
        "SELECT Age FROM Users WHERE UserId = 2 GROUP@{GROUP_METHOD=HASH_GROUP} BY Age",
        "@{spanner.optimizer_version=1, other_engine.anything=2} SELECT Age FROM Users"
        " WHERE UserId = 2",
        "@{spanner_emulator.disable_query_null_filtered_index_check=true}"
        " SELECT Age FROM Users@{spanner.force_index=ByName,"
        " spanner_emulator.disable_query_null_filtered_index_check=true}"
        " WHERE Name = 'Suzanne Collins'",
    ],
)
def test_hints_change_no_result(database: Database, sql: str) -> None:
    assert ask(database, sql).rows == [(61,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Age FROM Users@{FORCE_INDEX=Nope}",
        "SELECT Age FROM Users@{NO_SUCH_HINT=1}",
        "@{NO_SUCH_HINT=1} SELECT Age FROM Users",
        "@{OPTIMIZER_VERSION=1, spanner.no_such_hint=1} SELECT Age FROM Users",
        "SELECT invalid-identifier FROM Users",
        "SELECT u.Age FROM Users u WHERE u.Nope = 1",
    ],
)
def test_a_query_that_names_what_is_not_there_is_refused(database: Database, sql: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ask(database, sql)


def test_a_query_for_update_reads_and_the_transaction_writes(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        rows = list(transaction.execute_sql("SELECT Age FROM Users WHERE UserId = 1 FOR UPDATE"))
        transaction.execute_update(f"UPDATE Users SET Age = {rows[0][0] + 1} WHERE UserId = 1")

    database.run_in_transaction(work)
    assert ask(database, "SELECT Age FROM Users WHERE UserId = 1").value == 50


def test_a_sample_is_a_part_of_the_rows(database: Database) -> None:
    rows = ask(database, "SELECT UserId FROM Users TABLESAMPLE RESERVOIR (2 ROWS)").rows
    assert len(set(rows)) == 2
    assert set(rows) <= {(1,), (2,), (3,)}
    assert (
        ask(database, "SELECT COUNT(*) FROM Users TABLESAMPLE BERNOULLI (100 PERCENT)").value == 3
    )
    with pytest.raises((exceptions.OutOfRange, exceptions.InvalidArgument)):
        ask(database, "SELECT 1 FROM Users TABLESAMPLE BERNOULLI (-1 PERCENT)")


def test_what_is_too_large_is_refused(database: Database) -> None:
    joins = " ".join(f"JOIN Users u{n} ON u{n}.UserId = u0.UserId" for n in range(1, 22))
    with pytest.raises(exceptions.InvalidArgument, match="joins exceeds"):
        ask(database, f"SELECT u0.Age FROM Users u0 {joins}")
    with pytest.raises(exceptions.InvalidArgument, match="Query string length"):
        ask(database, f"SELECT '{'a' * 1024 * 1024}'")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1.5 IN UNNEST(x.L) FROM (SELECT [1] AS L) AS x",
        "SELECT NUMERIC '1' + x IN UNNEST([1.5]) FROM UNNEST([1]) AS x",
        "SELECT COUNT(DISTINCT x, x) FROM UNNEST([1]) AS x",
        "SELECT ARRAY_CONCAT_AGG(x.L IGNORE NULLS) FROM (SELECT [1] AS L) AS x",
    ],
)
def test_arguments_of_other_types_or_numbers_are_refused(database: Database, query: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        rows(database, query)


@pytest.mark.parametrize(
    "call",
    [
        "COSINE_DISTANCE([1e200, 1.0], [1.0, 1.0])",
        "EUCLIDEAN_DISTANCE([1e200], [-1e200])",
        "DOT_PRODUCT([1e200], [1e200])",
    ],
)
def test_a_distance_that_overflows_is_out_of_range(database: Database, call: str) -> None:
    with pytest.raises(exceptions.OutOfRange, match="double overflow"):
        rows(database, f"SELECT {call}")


def test_the_name_of_an_element_hides_a_column_of_that_name(database: Database) -> None:
    query = "SELECT f FROM (SELECT 1 AS F, ['a', 'b'] AS W) AS x, UNNEST(x.W) AS f ORDER BY f"
    assert rows(database, query) == [["a"], ["b"]]


def test_a_timestamp_of_the_last_hours_is_truncated_in_a_zone_that_is_past_them(
    database: Database,
) -> None:
    last = "TIMESTAMP '9999-12-31 23:59:59+00'"
    query = f"SELECT STRING(TIMESTAMP_TRUNC({last}, %s, 'Asia/Tokyo'), 'UTC')"
    assert rows(database, query % "MONTH") == [["9999-12-31 15:00:00+00"]]
    assert rows(database, query % "ISOWEEK") == [["9999-12-26 15:00:00+00"]]
