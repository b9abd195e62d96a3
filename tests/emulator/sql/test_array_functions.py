"""Functions of arrays, with and without a lambda."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    ("ARRAY_LENGTH(CAST(NULL AS ARRAY<INT64>))", "INT64", None),
    ("ARRAY_CONCAT([1], [2, 3], CAST(NULL AS ARRAY<INT64>))", "ARRAY<INT64>", None),
    ("ARRAY_CONCAT([1], [2.5])", "ARRAY<FLOAT64>", [1.0, 2.5]),
    ("ARRAY_REVERSE(['a', 'b'])", "ARRAY<STRING>", ["b", "a"]),
    ("ARRAY_FIRST([1, 2])", "INT64", 1),
    ("ARRAY_LAST(['a', 'b'])", "STRING", "b"),
    ("ARRAY_MIN([8, NULL, 4])", "INT64", 4),
    ("ARRAY_MAX([8, NULL, 4])", "INT64", 8),
    ("ARRAY_MAX([1.0, CAST('nan' AS FLOAT64)])", "FLOAT64", "nan"),
    ("ARRAY_MAX(['a', 'b'])", "STRING", "b"),
    ("ARRAY_SLICE(['a','b','c','d','e'], 1, 3)", "ARRAY<STRING>", ["b", "c", "d"]),
    ("ARRAY_SLICE(['a','b','c','d','e'], -3, -2)", "ARRAY<STRING>", ["c", "d"]),
    ("ARRAY_SLICE(['a','b'], -10, 10)", "ARRAY<STRING>", ["a", "b"]),
    ("ARRAY_SLICE(['a','b'], 1, 0)", "ARRAY<STRING>", []),
    ("ARRAY_INCLUDES([1, 2, 3], 2)", "BOOL", True),
    ("ARRAY_INCLUDES(['a', NULL], 'b')", "BOOL", False),
    ("ARRAY_INCLUDES([1, 2], e -> e > 1)", "BOOL", True),
    ("ARRAY_INCLUDES_ALL([1, 2, 3], [1, 2])", "BOOL", True),
    ("ARRAY_INCLUDES_ANY([1, 2], [4])", "BOOL", False),
    ("ARRAY_IS_DISTINCT([1, 1])", "BOOL", False),
    ("ARRAY_IS_DISTINCT([1, NULL])", "BOOL", True),
    ("ARRAY_TO_STRING(['a', NULL, 'b'], '--')", "STRING", "a--b"),
    ("ARRAY_TO_STRING(['a', NULL, 'b'], '--', 'X')", "STRING", "a--X--b"),
    ("ARRAY_TO_STRING([b'a', b'b'], b'-')", "BYTES", b"YS1i"),
    ("ARRAY_TO_STRING(CAST(NULL AS ARRAY<STRING>), '-')", "STRING", None),
    ("ARRAY_FILTER([1, 2, 3], e -> e > 1)", "ARRAY<INT64>", [2, 3]),
    ("ARRAY_FILTER([0, 2, 1], (e, i) -> e > i)", "ARRAY<INT64>", [2]),
    ("ARRAY_TRANSFORM([1, 2], e -> e * 2.5)", "ARRAY<FLOAT64>", [2.5, 5.0]),
    ("ARRAY_TRANSFORM([1, 2], (e, i) -> e + i)", "ARRAY<INT64>", [1, 3]),
    ("ARRAY_TRANSFORM([STRUCT(1 AS a)], e -> e.a + 1)", "ARRAY<INT64>", [2]),
    ("GENERATE_ARRAY(1, 5)", "ARRAY<INT64>", [1, 2, 3, 4, 5]),
    ("GENERATE_ARRAY(5, 1)", "ARRAY<INT64>", []),
    ("GENERATE_ARRAY(10, 0, -3)", "ARRAY<INT64>", [10, 7, 4, 1]),
    ("GENERATE_ARRAY(1, 2, 0.5)", "ARRAY<FLOAT64>", [1.0, 1.5, 2.0]),
    ("GENERATE_ARRAY(NUMERIC '1', NUMERIC '2')", "ARRAY<NUMERIC>", [Decimal("1"), Decimal("2")]),
    ("GENERATE_ARRAY(1, NULL)", "ARRAY<INT64>", None),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("ARRAY_FIRST(ARRAY<INT64>[])", exceptions.OutOfRange),
    ("GENERATE_ARRAY(1, 5, 0)", exceptions.OutOfRange),
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
