"""Scalar expressions, their values and their types: operators, comparisons, casts, errors."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

MAX = 2**63 - 1
MIN = -(2**63)

VALUES: list[tuple[str, str, object]] = [
    # Integers and division.
    ("1 + 2 * 3", "INT64", 7),
    ("7 / 2", "FLOAT64", 3.5),
    ("DIV(7, 2)", "INT64", 3),
    ("DIV(-7, 2)", "INT64", -3),
    ("MOD(-7, 2)", "INT64", -1),
    ("-9223372036854775808", "INT64", MIN),
    ("9223372036854775807", "INT64", MAX),
    ("0xFF", "INT64", 255),
    ("-0x10", "INT64", -16),
    ("- -5", "INT64", 5),
    ("+5", "INT64", 5),
    ("5 & 3", "INT64", 1),
    ("5 | 3", "INT64", 7),
    ("5 ^ 3", "INT64", 6),
    ("~5", "INT64", -6),
    ("1 << 62", "INT64", 1 << 62),
    ("-1 >> 1", "INT64", MAX),
    ("1 << 64", "INT64", 0),
    # Widening.
    ("1 + 1.5", "FLOAT64", 2.5),
    ("1 + NUMERIC '1.5'", "NUMERIC", Decimal("2.5")),
    ("NUMERIC '1.5' + 1.5", "NUMERIC", Decimal(3)),
    ("NUMERIC '1' / 3", "NUMERIC", Decimal("0.333333333")),
    ("CAST(0.1 AS FLOAT32) = 0.1", "BOOL", True),
    ("CAST(0.1 AS FLOAT32) = CAST('0.1' AS FLOAT64)", "BOOL", False),
    # Float specials.
    ("IEEE_DIVIDE(1, 0)", "FLOAT64", math.inf),
    ("IEEE_DIVIDE(0, 0)", "FLOAT64", math.nan),
    ("CAST('nan' AS FLOAT64)", "FLOAT64", math.nan),
    ("CAST('-inf' AS FLOAT64)", "FLOAT64", -math.inf),
    ("CAST('NaN' AS FLOAT64) = CAST('NaN' AS FLOAT64)", "BOOL", False),
    ("CAST('NaN' AS FLOAT64) != CAST('NaN' AS FLOAT64)", "BOOL", True),
    ("CAST('NaN' AS FLOAT64) < 1.0", "BOOL", False),
    ("CAST('NaN' AS FLOAT64) >= 1.0", "BOOL", False),
    ("IS_NAN(CAST('NaN' AS FLOAT64))", "BOOL", True),
    ("IS_INF(CAST('-inf' AS FLOAT64))", "BOOL", True),
    ("CAST('inf' AS FLOAT64) > 1e308", "BOOL", True),
    ("GREATEST(1.0, CAST('NaN' AS FLOAT64))", "FLOAT64", math.nan),
    ("-0.0", "FLOAT64", -0.0),
    (".5", "FLOAT64", 0.5),
    ("1e3", "FLOAT64", 1000.0),
    ("CAST(1 AS FLOAT64) / CAST(4 AS FLOAT64)", "FLOAT64", 0.25),
    # NULL and three-valued logic.
    ("NULL", "INT64", None),
    ("CAST(NULL AS INT64) + 1", "INT64", None),
    ("CAST(NULL AS INT64) = CAST(NULL AS INT64)", "BOOL", None),
    ("NULL IS NULL", "BOOL", True),
    ("1 IS NOT NULL", "BOOL", True),
    ("NULL AND FALSE", "BOOL", False),
    ("NULL OR TRUE", "BOOL", True),
    ("NOT CAST(NULL AS BOOL)", "BOOL", None),
    ("(1 > 2) IS FALSE", "BOOL", True),
    ("CAST(NULL AS BOOL) IS NOT TRUE", "BOOL", True),
    ("1 IN (2, NULL)", "BOOL", None),
    ("1 NOT IN (2, 3)", "BOOL", True),
    ("1 IN (1, NULL)", "BOOL", True),
    ("1 BETWEEN NULL AND 0", "BOOL", False),
    ("2 NOT BETWEEN 1 AND 3", "BOOL", False),
    # Strings compare by code point.
    ("'a' < 'B'", "BOOL", False),
    ("'Z' < 'a'", "BOOL", True),
    ("'e' < 'é'", "BOOL", True),
    ("'\\uFFFF' < '\\U00010000'", "BOOL", True),
    ("'a' = 'A'", "BOOL", False),
    ("'a' = 'a '", "BOOL", False),
    ("b'\\x00' < b'\\x00\\x00'", "BOOL", True),
    # Literals.
    ('"it\'s"', "STRING", "it's"),
    ("'a\\tb\\n'", "STRING", "a\tb\n"),
    ("r'a\\tb'", "STRING", "a\\tb"),
    ("'''a\nb'''", "STRING", "a\nb"),
    ("b'abc'", "BYTES", b"YWJj"),
    ("b'\\xff\\x00'", "BYTES", b"/wA="),
    ("DATE '2024-02-29'", "DATE", datetime.date(2024, 2, 29)),
    ("JSON '{\"b\": 1, \"a\": [1, 2]}'", "JSON", {"a": [1, 2], "b": 1}),
    ("TRUE", "BOOL", True),
    # Conditionals.
    ("CASE WHEN 1 > 2 THEN 'a' END", "STRING", None),
    ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END", "STRING", "b"),
    ("CASE WHEN TRUE THEN 1 ELSE 2.5 END", "FLOAT64", 1.0),
    ("IF(TRUE, 1, NULL)", "INT64", 1),
    ("COALESCE(NULL, NULL, 3)", "INT64", 3),
    ("IFNULL(NULL, 'x')", "STRING", "x"),
    ("NULLIF(1, 1)", "INT64", None),
    ("GREATEST(1, 3, 2)", "INT64", 3),
    ("LEAST('b', 'a')", "STRING", "a"),
    ("GREATEST(1, NULL)", "INT64", None),
    # LIKE.
    ("'abc' LIKE 'a%'", "BOOL", True),
    ("'ABC' LIKE 'a%'", "BOOL", False),
    ("'a%c' LIKE 'a\\\\%c'", "BOOL", True),
    ("'abc' LIKE 'a\\\\%c'", "BOOL", False),
    ("'a\\nb' LIKE 'a_b'", "BOOL", True),
    ("'abc' NOT LIKE '%z%'", "BOOL", True),
    ("'a' || 'b' || 'c'", "STRING", "abc"),
    ("b'a' || b'b'", "BYTES", b"YWI="),
    ("[1] || [2, 3]", "ARRAY<INT64>", [1, 2, 3]),
    # Casts.
    ("CAST(2.5 AS INT64)", "INT64", 3),
    ("CAST(-2.5 AS INT64)", "INT64", -3),
    ("CAST('0x1F' AS INT64)", "INT64", 31),
    ("CAST(TRUE AS STRING)", "STRING", "true"),
    ("CAST(TRUE AS INT64)", "INT64", 1),
    ("CAST('TRUE' AS BOOL)", "BOOL", True),
    ("CAST(1.0 AS STRING)", "STRING", "1"),
    ("CAST(1e100 AS STRING)", "STRING", "1e+100"),
    ("CAST(1e-7 AS STRING)", "STRING", "1e-07"),
    ("CAST(123456789012345680.0 AS STRING)", "STRING", "1.2345678901234568e+17"),
    ("CAST(CAST(0.1 AS FLOAT32) AS STRING)", "STRING", "0.1"),
    ("CAST(NUMERIC '1.50' AS STRING)", "STRING", "1.5"),
    ("CAST(b'abc' AS STRING)", "STRING", "abc"),
    ("CAST('é' AS BYTES)", "BYTES", b"w6k="),
    ("CAST(DATE '2024-01-02' AS STRING)", "STRING", "2024-01-02"),
    ("CAST(TIMESTAMP '2024-01-02 00:00:00+00' AS STRING)", "STRING", "2024-01-01 16:00:00-08"),
    ("CAST(TIMESTAMP '2024-01-02 00:00:00Z' AS DATE)", "DATE", datetime.date(2024, 1, 1)),
    ("SAFE_CAST('x' AS INT64)", "INT64", None),
    ("SAFE_CAST('12' AS INT64)", "INT64", 12),
    ("SAFE_CAST('2024-13-01' AS DATE)", "DATE", None),
    ("SAFE_CAST(b'\\xff' AS STRING)", "STRING", None),
    ("CAST(NULL AS ARRAY<INT64>)", "ARRAY<INT64>", None),
    ("CAST(CAST('5EC9F4CB-0DD2-4C0C-AF3F-2A5A7FD4D3BB' AS UUID) AS STRING)", "STRING",
     "5ec9f4cb-0dd2-4c0c-af3f-2a5a7fd4d3bb"),
    # Arrays.
    ("[1, 2, 3][OFFSET(0)]", "INT64", 1),
    ("[1, 2, 3][ORDINAL(3)]", "INT64", 3),
    ("[1, 2, 3][SAFE_OFFSET(5)]", "INT64", None),
    ("[1, 2, 3][SAFE_ORDINAL(0)]", "INT64", None),
    ("[1, 2.5]", "ARRAY<FLOAT64>", [1.0, 2.5]),
    ("['a', NULL]", "ARRAY<STRING>", ["a", None]),
    ("ARRAY<INT64>[]", "ARRAY<INT64>", []),
    ("ARRAY<STRING>['x']", "ARRAY<STRING>", ["x"]),
    ("[b'a', NULL]", "ARRAY<BYTES>", [b"YQ==", None]),
    ("[b'a'][OFFSET(0)]", "BYTES", b"YQ=="),
    ("[TRUE, FALSE]", "ARRAY<BOOL>", [True, False]),
    ("[TRUE, FALSE][OFFSET(1)]", "BOOL", False),
    ("[IEEE_DIVIDE(1, 0)][OFFSET(0)]", "FLOAT64", math.inf),
    ("ARRAY_LENGTH([1, 2])", "INT64", 2),
    ("2 IN UNNEST([1, 2])", "BOOL", True),
    ("3 NOT IN UNNEST([1, 2])", "BOOL", True),
    ("1 IN UNNEST(CAST(NULL AS ARRAY<INT64>))", "BOOL", False),
    ("EXISTS(SELECT 1)", "BOOL", True),
    ("(SELECT 'x')", "STRING", "x"),
    ("(SELECT 'x' FROM UNNEST([1]) WHERE FALSE)", "STRING", None),
    ("ARRAY(SELECT x * 2 FROM UNNEST([1, 2]) AS x)", "ARRAY<INT64>", [2, 4]),
]  # fmt: skip

REFUSED: list[tuple[str, type[Exception]]] = [
    ("9223372036854775807 + 1", exceptions.OutOfRange),
    ("-9223372036854775808 - 1", exceptions.OutOfRange),
    ("9223372036854775807 * 2", exceptions.OutOfRange),
    ("-(-9223372036854775808)", exceptions.OutOfRange),
    ("ABS(-9223372036854775808)", exceptions.OutOfRange),
    ("1 / 0", exceptions.OutOfRange),
    ("1.0 / 0.0", exceptions.OutOfRange),
    ("DIV(1, 0)", exceptions.OutOfRange),
    ("MOD(1, 0)", exceptions.OutOfRange),
    ("1e308 * 10", exceptions.OutOfRange),
    ("NUMERIC '99999999999999999999999999999' * 10", exceptions.OutOfRange),
    ("CAST('x' AS INT64)", exceptions.OutOfRange),
    ("CAST(1e19 AS INT64)", exceptions.OutOfRange),
    ("CAST(b'\\xff' AS STRING)", exceptions.OutOfRange),
    ("[1, 2][OFFSET(2)]", exceptions.OutOfRange),
    ("[1, 2][ORDINAL(0)]", exceptions.OutOfRange),
    ("(SELECT x FROM UNNEST([1, 2]) AS x)", exceptions.OutOfRange),
    ("ERROR('no')", exceptions.OutOfRange),
    ("1 << -1", exceptions.OutOfRange),
    ("9223372036854775808", exceptions.InvalidArgument),
    ("'a' + 1", exceptions.InvalidArgument),
    ("'it''s'", exceptions.InvalidArgument),
    ("1 = 'a'", exceptions.InvalidArgument),
    ("JSON '1' = JSON '1'", exceptions.InvalidArgument),
    ("DATE '2024-13-01'", exceptions.InvalidArgument),
    ("TIMESTAMP 'yesterday'", exceptions.InvalidArgument),
    ("CAST(DATE '2024-01-01' AS INT64)", exceptions.InvalidArgument),
    ("no_such_function(1)", exceptions.InvalidArgument),
    ("no_such_column", exceptions.InvalidArgument),
    ("LENGTH(1)", exceptions.InvalidArgument),
    ("IF('x', 1, 2)", exceptions.InvalidArgument),
    ("1 +", exceptions.InvalidArgument),
    ("[1, 'a']", exceptions.InvalidArgument),
    ("CASE WHEN TRUE THEN 1 ELSE 'a' END", exceptions.InvalidArgument),
]


@pytest.mark.parametrize(("expression", "type_", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_an_expression_has_its_value_and_type(
    blank: Database, expression: str, type_: str, value: object
) -> None:
    answer = ask(blank, f"SELECT {expression}")
    assert answer.types == [type_]
    if isinstance(value, float) and math.isnan(value):
        assert isinstance(answer.value, float)
        assert math.isnan(answer.value)
    else:
        assert answer.value == value
        assert isinstance(value, bool) == isinstance(answer.value, bool)


@pytest.mark.parametrize(("expression", "error"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_expression_is_refused_with_its_code(
    blank: Database, expression: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(blank, f"SELECT {expression}")


def test_an_error_in_a_branch_that_is_not_taken_is_none(blank: Database) -> None:
    assert ask(blank, "SELECT IF(TRUE, 1, DIV(1, 0))").value == 1
    assert ask(blank, "SELECT CASE WHEN FALSE THEN 1 / 0 ELSE 2.0 END").value == 2.0
    assert ask(blank, "SELECT COALESCE(1, DIV(1, 0))").value == 1
