"""Functions of numbers: types, overflow, domains, bits, distances."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    ("ABS(-5)", "INT64", 5),
    ("ABS(-1.5)", "FLOAT64", 1.5),
    ("ABS(NUMERIC '-1.5')", "NUMERIC", Decimal("1.5")),
    ("SIGN(-5)", "INT64", -1),
    ("SIGN(-2.5)", "FLOAT64", -1.0),
    ("SIGN(NUMERIC '0')", "NUMERIC", Decimal("0")),
    ("ROUND(2.5)", "FLOAT64", 3.0),
    ("ROUND(-2.5)", "FLOAT64", -3.0),
    ("ROUND(123.456, 1)", "FLOAT64", 123.5),
    ("ROUND(123.456, -1)", "FLOAT64", 120.0),
    ("ROUND(NUMERIC '2.5')", "NUMERIC", Decimal("3")),
    ("ROUND(5)", "FLOAT64", 5.0),
    ("TRUNC(2.8)", "FLOAT64", 2.0),
    ("TRUNC(-2.8)", "FLOAT64", -2.0),
    ("TRUNC(NUMERIC '2.89', 1)", "NUMERIC", Decimal("2.8")),
    ("CEIL(2.1)", "FLOAT64", 3.0),
    ("CEILING(-2.5)", "FLOAT64", -2.0),
    ("FLOOR(-2.1)", "FLOAT64", -3.0),
    ("FLOOR(NUMERIC '-2.1')", "NUMERIC", Decimal("-3")),
    ("FLOOR(3)", "FLOAT64", 3.0),
    ("DIV(20, 4)", "INT64", 5),
    ("DIV(NUMERIC '20.5', NUMERIC '3')", "NUMERIC", Decimal("6")),
    ("MOD(25, 12)", "INT64", 1),
    ("MOD(NUMERIC '25.5', 12)", "NUMERIC", Decimal("1.5")),
    ("MOD(-9223372036854775807 - 1, -1)", "INT64", 0),
    ("POW(2, 3)", "FLOAT64", 8.0),
    ("POW(2, 0.5)", "FLOAT64", 1.4142135623730951),
    ("POWER(NUMERIC '2', NUMERIC '3')", "NUMERIC", Decimal("8")),
    ("SQRT(25)", "FLOAT64", 5.0),
    ("SAFE.SQRT(-1)", "FLOAT64", None),
    ("EXP(0)", "FLOAT64", 1.0),
    ("LN(1)", "FLOAT64", 0.0),
    ("LOG(100, 10)", "FLOAT64", 2.0),
    ("LOG(8, 2)", "FLOAT64", 3.0),
    ("LOG10(1000)", "FLOAT64", 3.0),
    ("SIN(0)", "FLOAT64", 0.0),
    ("ACOSH(1)", "FLOAT64", 0.0),
    ("ATANH(0.5)", "FLOAT64", 0.5493061443340548),
    ("COSH(0)", "FLOAT64", 1.0),
    ("TANH(1e10)", "FLOAT64", 1.0),
    ("ATAN2(1, 1)", "FLOAT64", 0.7853981633974483),
    ("IEEE_DIVIDE(-1, 0)", "FLOAT64", -math.inf),
    ("IEEE_DIVIDE(0, 0)", "FLOAT64", "nan"),
    ("SAFE_DIVIDE(1, 0)", "FLOAT64", None),
    ("SAFE_DIVIDE(20, 4)", "FLOAT64", 5.0),
    ("SAFE_ADD(9223372036854775807, 1)", "INT64", None),
    ("SAFE_SUBTRACT(5, 3)", "INT64", 2),
    ("SAFE_MULTIPLY(9223372036854775807, 2)", "INT64", None),
    ("SAFE_NEGATE(-9223372036854775807 - 1)", "INT64", None),
    ("SAFE_NEGATE(1.5)", "FLOAT64", -1.5),
    ("SAFE_NEGATE(NUMERIC '1.5')", "NUMERIC", Decimal("-1.5")),
    ("GREATEST(1, 2.5)", "FLOAT64", 2.5),
    ("LEAST(DATE '2024-01-01', '2023-01-01')", "DATE", date(2023, 1, 1)),
    ("GREATEST(NUMERIC '1', 2)", "NUMERIC", Decimal("2")),
    ("BIT_COUNT(-1)", "INT64", 64),
    ("BIT_COUNT(b'\\xff\\x01')", "INT64", 9),
    ("BIT_REVERSE(1, FALSE)", "INT64", -9223372036854775808),
    ("BIT_REVERSE(4611686018427387904, TRUE)", "INT64", 1),
    ("BIT_REVERSE(1, CAST(NULL AS BOOL))", "INT64", None),
    ("b'\\x0f' & b'\\xf1'", "BYTES", b"AQ=="),
    ("b'\\x0f' | b'\\xf0'", "BYTES", b"/w=="),
    ("b'\\x0f' ^ b'\\xff'", "BYTES", b"8A=="),
    ("~b'\\x0f'", "BYTES", b"8A=="),
    ("b'\\x01\\x02' << 4", "BYTES", b"ECA="),
    ("b'\\x01\\x02' >> 4", "BYTES", b"ABA="),
    ("-CAST(1.5 AS FLOAT32)", "FLOAT32", -1.5),
    ("CAST(1.5 AS FLOAT32) * 2", "FLOAT64", 3.0),
    ("COSINE_DISTANCE([1.0, 2.0], [3.0, 4.0])", "FLOAT64", 0.01613008990009257),
    ("EUCLIDEAN_DISTANCE([1.0, 2.0], [3.0, 4.0])", "FLOAT64", 2.8284271247461903),
    ("DOT_PRODUCT([1.0, 2.0], [3.0, 4.0])", "FLOAT64", 11.0),
    ("DOT_PRODUCT([1, 2], [3, 4])", "FLOAT64", 11.0),
    ("POW(NUMERIC '2', 3)", "NUMERIC", Decimal("8")),
    ("POW(1, CAST('nan' AS FLOAT64))", "FLOAT64", 1.0),
    ("SQRT(NUMERIC '2')", "NUMERIC", Decimal("1.414213562")),
    ("EXP(NUMERIC '1')", "NUMERIC", Decimal("2.718281828")),
    ("LOG(NUMERIC '8', NUMERIC '2')", "NUMERIC", Decimal("3")),
    ("SAFE_DIVIDE(NUMERIC '1', 4)", "NUMERIC", Decimal("0.25")),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("POW(-1, 0.5)", exceptions.OutOfRange),
    ("POW(0, -1)", exceptions.OutOfRange),
    ("SQRT(-1)", exceptions.OutOfRange),
    ("EXP(1000)", exceptions.OutOfRange),
    ("LN(0)", exceptions.OutOfRange),
    ("ACOS(2)", exceptions.OutOfRange),
    ("ATANH(1)", exceptions.OutOfRange),
    ("b'\\x01' & b'\\x01\\x02'", exceptions.OutOfRange),
    ("1e400", exceptions.InvalidArgument),
    ("CAST(1e39 AS FLOAT32)", exceptions.OutOfRange),
    ("COSINE_DISTANCE([0.0], [1.0])", exceptions.OutOfRange),
    ("LN(NUMERIC '0')", exceptions.OutOfRange),
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
