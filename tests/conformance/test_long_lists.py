"""Long lists of literals mean what short ones mean."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from talk import commit, insert, rows

TABLE = (
    "CREATE TABLE T (K INT64, S STRING(MAX), F FLOAT64, N NUMERIC, D DATE, B BYTES(MAX),"
    " L ARRAY<INT64>) PRIMARY KEY (K)"
)
NUMBERS = ", ".join(map(str, range(1, 10_001)))
pytestmark = pytest.mark.ddl(TABLE)


@pytest.fixture(autouse=True)
def three_rows(database: Database) -> None:
    commit(
        database,
        insert("T", "K S F N D B", [1, "a'", 1.0, "2", "2020-01-01", b"YWI="]),
        insert("T", "K S F N D B", [2, "s7", 2.5, "2.5", "2021-01-01", b"YWM="]),
        insert("T", "K S F N D B", [20_000, None, None, None, None, None]),
    )


def texts(*others: str) -> str:
    """A long list of strings."""
    return ", ".join([*(f"'s{n}'" for n in range(200)), *others])


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        (f"K IN ({NUMBERS})", [1, 2]),
        (f"K NOT IN ({NUMBERS})", [20_000]),
        (f"NOT (F IN ({NUMBERS}))", [2]),
        (f"F IN ({NUMBERS})", [1]),
        (f"N IN ({NUMBERS})", [1]),
        (f"S IN ({texts()})", [2]),
        (f"S IN ({texts(repr('x'))}) OR S IN (\n{texts()}\n)", [2]),
        (f"S IN ({texts(chr(34) + 'a' + chr(39) + chr(34))})", [1, 2]),
        (f"D IN ({', '.join(['DATE ' + repr('2020-01-01')] * 150)})", [1]),
        ("D IN (" + ", ".join(["'2020-01-01'"] * 150) + ")", [1]),
        ("B IN (" + ", ".join(["b'ab'"] * 150) + ")", [1]),
        (f"(K, 1) IN (({NUMBERS[0]}, 1))", [1]),
        (f"K IN UNNEST([{NUMBERS}])", [1, 2]),
        (f"K IN (SELECT x FROM UNNEST([{NUMBERS}]) AS x WHERE x > 1)", [2]),
        (f"S <> 'IN ({NUMBERS})' -- IN ({NUMBERS})", [1, 2]),
        (f"K IN (/* {NUMBERS} */ 2)", [2]),
        (f"K IN (-1, +2, {NUMBERS[:600].rpartition(',')[0]})", [1, 2]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_condition_finds_the_same_rows(
    database: Database, condition: str, keys: list[int]
) -> None:
    found = rows(database, f"SELECT K FROM T WHERE {condition}\nORDER BY K")
    assert [key for (key,) in found] == keys


def test_arrays_are_as_long_as_they_are_written(database: Database) -> None:
    items = ", ".join(["K"] * 2_345)
    found = rows(
        database,
        f"SELECT ARRAY_LENGTH([{NUMBERS}]), ARRAY_LENGTH([{items}]), [{NUMBERS}][OFFSET(9999)],"
        f" ARRAY_LENGTH(ARRAY<FLOAT64>[{NUMBERS}]) FROM T WHERE K = 1",
    )
    assert found == [[10_000, 2_345, 10_000, 10_000]]
    with database.batch() as batch:
        batch.insert("T", ["K", "L"], [(5, list(range(3_000)))])
    with_dml = f"UPDATE T SET L = [{NUMBERS}] WHERE K = 5"
    database.run_in_transaction(lambda transaction: transaction.execute_update(with_dml))
    assert rows(database, "SELECT ARRAY_LENGTH(L) FROM T WHERE K = 5") == [[10_000]]


def test_an_error_behind_a_list_keeps_its_place(database: Database) -> None:
    sql = f"SELECT K FROM T\nWHERE K IN ({NUMBERS})\n  AND Nothing = 1"
    with pytest.raises(exceptions.InvalidArgument, match=r"Unrecognized name: Nothing \[at 3:7\]"):
        rows(database, sql)


def test_lists_and_parameters_have_limits(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="maximum allowed length of 10000"):
        rows(database, f"SELECT K FROM T WHERE K IN ({NUMBERS}, 10001)")
    names = [f"p{number}" for number in range(951)]
    sql = f"SELECT K FROM T WHERE K IN ({', '.join('@' + name for name in names)})"
    types = dict.fromkeys(names, param_types.INT64)
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql(sql, params=dict.fromkeys(names, 1), param_types=types)
        with pytest.raises(exceptions.InvalidArgument, match="950"):
            list(result)
