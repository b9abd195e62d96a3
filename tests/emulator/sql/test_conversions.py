"""Conditional functions, SAFE., conversions."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    ("IF(NULL, 1, 2)", "INT64", 2),
    ("NULLIF('a', 'b')", "STRING", "a"),
    ("COALESCE(NULL, 1.5, 2)", "FLOAT64", 1.5),
    ("SAFE.DIV(1, 0)", "INT64", None),
    ("SAFE.PARSE_DATE('%F', 'x')", "DATE", None),
    ("SAFE.SUBSTR('abc', 1, -1)", "STRING", None),
    ("CAST(' 12 ' AS INT64)", "INT64", 12),
    ("CAST('1e3' AS FLOAT64)", "FLOAT64", 1000.0),
    ("CAST(1.5 AS NUMERIC)", "NUMERIC", Decimal("1.5")),
    ("CAST(NUMERIC '1.5' AS INT64)", "INT64", 2),
    ("CAST([1, 2] AS ARRAY<STRING>)", "ARRAY<STRING>", ["1", "2"]),
    ("CAST([1, NULL] AS ARRAY<FLOAT64>)", "ARRAY<FLOAT64>", [1.0, None]),
    ("CAST('2020-1-2' AS DATE)", "DATE", date(2020, 1, 2)),
    ("SAFE_CAST('abc' AS DATE)", "DATE", None),
    ("SAFE_CAST(1e20 AS INT64)", "INT64", None),
    ("CAST(STRUCT(1, 'a') AS STRUCT<x FLOAT64, y STRING>).x", "FLOAT64", 1.0),
    ("CAST(0x1F AS STRING)", "STRING", "31"),
    ("-0x10", "INT64", -16),
    ("1 = 1.0", "BOOL", True),
    ("1 IS DISTINCT FROM NULL", "BOOL", True),
    ("CAST('nan' AS FLOAT64) IS NOT DISTINCT FROM CAST('nan' AS FLOAT64)", "BOOL", True),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("IFERROR(1/0, 2.0)", exceptions.InvalidArgument),
    ("ISERROR(1/0)", exceptions.InvalidArgument),
    ("NULLIFERROR(1/0)", exceptions.InvalidArgument),
    ("ERROR('no')", exceptions.OutOfRange),
    ("CAST('1_0' AS INT64)", exceptions.OutOfRange),
    ("CAST('\u0661' AS INT64)", exceptions.OutOfRange),
    ("CAST(9.3e18 AS INT64)", exceptions.OutOfRange),
    ("CAST(b'\\xff' AS STRING)", exceptions.OutOfRange),
    ("CAST('x' AS UUID)", exceptions.InvalidArgument),
    ("CAST(TRUE AS FLOAT64)", exceptions.InvalidArgument),
    ("CAST(JSON '1' AS STRING)", exceptions.InvalidArgument),
    ("CAST(1 AS STRING(3))", exceptions.MethodNotImplemented),
    ("CAST(1e39 AS FLOAT32)", exceptions.OutOfRange),
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
