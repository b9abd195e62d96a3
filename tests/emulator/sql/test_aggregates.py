"""Aggregate functions: DISTINCT, ORDER BY, LIMIT, HAVING MAX, IGNORE NULLS; overflow and NaN."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    (
        "SELECT COUNT(DISTINCT x), COUNT(x), SUM(DISTINCT x), AVG(x) FROM "
        "UNNEST([1, 1, 2, NULL]) AS x",
        "INT64, INT64, INT64, FLOAT64",
        (2, 3, 3, 1.3333333333333333),
    ),
    (
        "SELECT SUM(x), AVG(x), MIN(x), MAX(x) FROM UNNEST([NUMERIC '1.5', NUMERIC '2']) AS x",
        "NUMERIC, NUMERIC, NUMERIC, NUMERIC",
        (Decimal("3.5"), Decimal("1.75"), Decimal("1.5"), Decimal("2")),
    ),
    (
        "SELECT SUM(x), AVG(x), MIN(x), MAX(x) FROM UNNEST([1.5, CAST('nan' AS FLOAT64)]) AS x",
        "FLOAT64, FLOAT64, FLOAT64, FLOAT64",
        ("nan", "nan", "nan", "nan"),
    ),
    (
        "SELECT SUM(x), AVG(x), MIN(x) FROM UNNEST([CAST(1.5 AS FLOAT32)]) AS x",
        "FLOAT64, FLOAT64, FLOAT32",
        (1.5, 1.5, 1.5),
    ),
    ("SELECT SUM(x) FROM UNNEST(CAST([] AS ARRAY<INT64>)) AS x", "INT64", None),
    (
        "SELECT AVG(x) FROM UNNEST([9223372036854775807, 9223372036854775807]) AS x",
        "FLOAT64",
        9.223372036854776e18,
    ),
    ("SELECT MIN(x), MAX(x) FROM UNNEST(['b', 'a', NULL]) AS x", "STRING, STRING", ("a", "b")),
    (
        "SELECT MIN(x), MAX(x) FROM UNNEST([DATE '2024-01-01', NULL]) AS x",
        "DATE, DATE",
        (date(2024, 1, 1), date(2024, 1, 1)),
    ),
    (
        "SELECT LOGICAL_AND(x), LOGICAL_OR(x) FROM UNNEST([TRUE, FALSE, NULL]) AS x",
        "BOOL, BOOL",
        (False, True),
    ),
    (
        "SELECT BIT_AND(x), BIT_OR(x), BIT_XOR(x) FROM UNNEST([12, 10, NULL]) AS x",
        "INT64, INT64, INT64",
        (8, 14, 6),
    ),
    ("SELECT COUNTIF(x > 1) FROM UNNEST([1, 2, NULL]) AS x", "INT64", 1),
    ("SELECT COUNTIF(DISTINCT x > 1) FROM UNNEST([1, 2, 3]) AS x", "INT64", 1),
    ("SELECT ARRAY_AGG(x) FROM UNNEST([1, NULL]) AS x", "ARRAY<INT64>", [1, None]),
    ("SELECT ARRAY_AGG(x IGNORE NULLS) FROM UNNEST([1, NULL]) AS x", "ARRAY<INT64>", [1]),
    (
        "SELECT ARRAY_AGG(DISTINCT x IGNORE NULLS ORDER BY x DESC LIMIT 2) FROM "
        "UNNEST([1, 2, 2, NULL, 3]) AS x",
        "ARRAY<INT64>",
        [3, 2],
    ),
    ("SELECT ARRAY_AGG(x ORDER BY -x LIMIT 1) FROM UNNEST([1, 2]) AS x", "ARRAY<INT64>", [2]),
    (
        "SELECT ARRAY_AGG(STRUCT(x AS n)) FROM UNNEST([1, 2]) AS x",
        "ARRAY<STRUCT<n INT64>>",
        [[1], [2]],
    ),
    ("SELECT ARRAY_AGG(x) FROM UNNEST(CAST([] AS ARRAY<STRING>)) AS x", "ARRAY<STRING>", None),
    (
        "SELECT ARRAY_CONCAT_AGG(x.a ORDER BY x.o DESC) FROM UNNEST([STRUCT([1, "
        "2] AS a, 1 AS o), STRUCT([3], 2)]) AS x",
        "ARRAY<INT64>",
        [3, 1, 2],
    ),
    (
        "SELECT STRING_AGG(x), STRING_AGG(x, '&'), STRING_AGG(DISTINCT x, '-' "
        "ORDER BY x DESC LIMIT 2) FROM UNNEST(['b', 'a', NULL, 'c', 'b']) AS x",
        "STRING, STRING, STRING",
        ("b,a,c,b", "b&a&c&b", "c-b"),
    ),
    ("SELECT STRING_AGG(x) FROM UNNEST([b'a', b'b']) AS x", "BYTES", b"YSxi"),
    (
        "SELECT ANY_VALUE(x HAVING MAX y), ANY_VALUE(x HAVING MIN y) FROM "
        "UNNEST([STRUCT('a' AS x, 1 AS y), STRUCT('b', 2), STRUCT('c', NULL)])",
        "STRING, STRING",
        ("b", "a"),
    ),
    ("SELECT ANY_VALUE(x) FROM UNNEST([5]) AS x", "INT64", 5),
    (
        "SELECT STDDEV(x), VARIANCE(x), VAR_SAMP(x), STDDEV_SAMP(x) FROM UNNEST([10, 14, 18]) AS x",
        "FLOAT64, FLOAT64, FLOAT64, FLOAT64",
        (4.0, 16.0, 16.0, 4.0),
    ),
    ("SELECT VARIANCE(x) FROM UNNEST([1.0]) AS x", "FLOAT64", None),
    ("SELECT COUNT(*), COUNT(1) FROM UNNEST([1, 2])", "INT64, INT64", (2, 2)),
    (
        "SELECT COUNT(DISTINCT x) FROM UNNEST([CAST('nan' AS FLOAT64), "
        "CAST('nan' AS FLOAT64), 0.0, -0.0]) AS x",
        "INT64",
        2,
    ),
    ("SELECT MAX(DISTINCT x) FROM UNNEST([1, 3]) AS x", "INT64", 3),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("SELECT SUM(x) FROM UNNEST([9223372036854775807, 1]) AS x", exceptions.OutOfRange),
    ("SELECT ARRAY_AGG([x]) FROM UNNEST([1, 2]) AS x", exceptions.InvalidArgument),
    (
        "SELECT SUM(x HAVING MAX y) FROM UNNEST([STRUCT(1 AS x, 1 AS y), "
        "STRUCT(5, 2), STRUCT(6, 2)])",
        exceptions.MethodNotImplemented,
    ),
    (
        "SELECT COUNT(* HAVING MAX y) FROM UNNEST([STRUCT(1 AS x, 1 AS y), "
        "STRUCT(5, 2), STRUCT(6, 2)])",
        exceptions.MethodNotImplemented,
    ),
    ("SELECT COUNT(DISTINCT x) FROM UNNEST([[1]]) AS x", exceptions.InvalidArgument),
    ("SELECT MAX(x) FROM UNNEST([STRUCT(1)]) AS x", exceptions.InvalidArgument),
    ("SELECT SUM('a')", exceptions.InvalidArgument),
    ("SELECT APPROX_COUNT_DISTINCT(1)", exceptions.InvalidArgument),
    ("SELECT VAR_POP(1.0)", exceptions.InvalidArgument),
]


def query(text: str) -> str:
    return text if text.startswith("SELECT") else f"SELECT {text}"


@pytest.mark.parametrize(("text", "types", "row"), VALUES, ids=[v[0] for v in VALUES])
def test_a_call_has_its_value_and_type(blank: Database, text: str, types: str, row: object) -> None:
    check(blank, query(text), types, row)


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_call_is_refused_with_its_code(
    blank: Database, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(blank, query(text))
