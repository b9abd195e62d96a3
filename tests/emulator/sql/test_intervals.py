"""INTERVAL: literals, casts, parts, arithmetic with times and numbers, order, what is refused."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1 import Type, TypeCode, param_types
from google.cloud.spanner_v1.data_types import Interval
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from emulator.sql.functions import intervals

HOUR = 3_600_000_000_000

# Expression, as CAST(... AS STRING) writes it.
WRITTEN = [
    ("INTERVAL 4 QUARTER", "1-0 0 0:0:0"),
    ("INTERVAL 6 WEEK", "0-0 42 0:0:0"),
    ("INTERVAL 90000 SECOND", "0-0 0 25:0:0"),
    ("INTERVAL 90 SECOND", "0-0 0 0:1:30"),
    ("INTERVAL -5 DAY", "0-0 -5 0:0:0"),
    ("INTERVAL -25 MONTH", "-2-1 0 0:0:0"),
    ("INTERVAL -90 MINUTE", "0-0 0 -1:30:0"),
    ("INTERVAL (1 + 1) HOUR", "0-0 0 2:0:0"),
    ("INTERVAL 1500 NANOSECOND", "0-0 0 0:0:0.000001500"),
    ("INTERVAL '10:20:30.52' HOUR TO SECOND", "0-0 0 10:20:30.520"),
    ("INTERVAL '1-2' YEAR TO MONTH", "1-2 0 0:0:0"),
    ("INTERVAL '1 -15' MONTH TO DAY", "0-1 -15 0:0:0"),
    ("INTERVAL '1 5:30' DAY TO MINUTE", "0-0 1 5:30:0"),
    ("INTERVAL '8 20 17' MONTH TO HOUR", "0-8 20 17:0:0"),
    ("INTERVAL '-23-2 10 -12:30' YEAR TO MINUTE", "-23-2 10 -12:30:0"),
    ("INTERVAL '-23-2 10 -0:30' YEAR TO MINUTE", "-23-2 10 -0:30:0"),
    ("INTERVAL '-2 10 0:30' MONTH TO MINUTE", "-0-2 10 0:30:0"),
    ("INTERVAL '-30:10' MINUTE TO SECOND", "0-0 0 -0:30:10"),
    ("INTERVAL '1-2 3 4:5:6.789999' YEAR TO SECOND", "1-2 3 4:5:6.789999"),
    ("MAKE_INTERVAL(1, 6, 15)", "1-6 15 0:0:0"),
    ("MAKE_INTERVAL(hour => 10, second => 20)", "0-0 0 10:0:20"),
    ("MAKE_INTERVAL(1, minute => 5, day => 2)", "1-0 2 0:5:0"),
    ("MAKE_INTERVAL()", "0-0 0 0:0:0"),
    ("CAST('1-2 3 10:20:30.456' AS INTERVAL)", "1-2 3 10:20:30.456"),
    ("CAST('1-2' AS INTERVAL)", "1-2 0 0:0:0"),
    ("CAST('10:20:30' AS INTERVAL)", "0-0 0 10:20:30"),
    ("CAST('P1Y2M3D' AS INTERVAL)", "1-2 3 0:0:0"),
    ("CAST('PT10H20M30,456S' AS INTERVAL)", "0-0 0 10:20:30.456"),
    ("SAFE_CAST('10:20' AS INTERVAL)", None),
    ("JUSTIFY_DAYS(INTERVAL 29 DAY)", "0-0 29 0:0:0"),
    ("JUSTIFY_DAYS(INTERVAL -30 DAY)", "-0-1 0 0:0:0"),
    ("JUSTIFY_DAYS(INTERVAL -65 DAY)", "-0-2 -5 0:0:0"),
    ("JUSTIFY_DAYS(INTERVAL 370 DAY)", "1-0 10 0:0:0"),
    ("JUSTIFY_HOURS(INTERVAL 47 HOUR)", "0-0 1 23:0:0"),
    ("JUSTIFY_HOURS(INTERVAL -12345 MINUTE)", "0-0 -8 -13:45:0"),
    ("JUSTIFY_INTERVAL(INTERVAL '29 49:00:00' DAY TO SECOND)", "0-1 1 1:0:0"),
    ("INTERVAL '1:2:3' HOUR TO SECOND * 10", "0-0 0 10:20:30"),
    ("4 * INTERVAL 35 SECOND", "0-0 0 0:2:20"),
    ("INTERVAL 10 YEAR / 3", "3-4 0 0:0:0"),
    ("INTERVAL 1 MONTH / 12", "0-0 2 12:0:0"),
    ("-(INTERVAL 1 DAY)", "0-0 -1 0:0:0"),
    ("INTERVAL 1 DAY - INTERVAL 1 HOUR", "0-0 1 -1:0:0"),
    ("DATE '2021-05-20' - DATE '2020-04-19'", "0-0 396 0:0:0"),
    ("TIMESTAMP '2021-06-01 12:34:56.789' - TIMESTAMP '2021-05-31 00:00:00'",
     "0-0 0 36:34:56.789"),
    ("CAST(NULL AS INTERVAL)", None),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "text"), WRITTEN)
def test_an_interval_is_written_as_documented(
    blank: Database, expression: str, text: str | None
) -> None:
    answer = ask(blank, f"SELECT {expression}, CAST({expression} AS STRING)")
    assert answer.types == ["INTERVAL", "STRING"]
    ((value, written),) = answer.rows
    assert written == text
    assert (value is None) == (text is None)
    if text is not None:
        assert value == parse_interval(text)


def parse_interval(text: str) -> Interval:
    result = intervals.parse_iso(intervals.parse_interval(text))
    return Interval(result.months, result.days, result.nanos)


def test_parts_are_extracted_each_with_its_sign(blank: Database) -> None:
    parts = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    listed = ", ".join(f"EXTRACT({part} FROM i)" for part in parts)
    rows = ask(
        blank,
        f"SELECT {listed} FROM UNNEST([INTERVAL '1-2 3 4:5:6.789999' YEAR TO SECOND,"
        " INTERVAL '0-13 370 48:61:61' YEAR TO SECOND,"
        " INTERVAL '-22-6 10 -12:30' YEAR TO MINUTE]) AS i WITH OFFSET o ORDER BY o",
    ).rows
    assert rows == [
        (1, 2, 3, 4, 5, 6, 789, 789999),
        (1, 1, 370, 49, 2, 1, 0, 0),
        (-22, -6, 10, -12, -30, 0, 0, 0),
    ]


def test_times_are_moved_by_an_interval(blank: Database) -> None:
    moment = "TIMESTAMP '2021-05-02 00:01:02.345+00'"
    check(
        blank,
        f"SELECT {moment} + INTERVAL 25 HOUR, {moment} - INTERVAL 10 SECOND,"
        f" INTERVAL 1 DAY + {moment}",
        "TIMESTAMP, TIMESTAMP, TIMESTAMP",
        (
            "2021-05-03T01:01:02.345Z",
            "2021-05-02T00:00:52.345Z",
            "2021-05-03T00:01:02.345Z",
        ),
    )


def test_intervals_compare_and_sort_by_their_length(blank: Database) -> None:
    check(
        blank,
        "SELECT INTERVAL 1 MONTH = INTERVAL 30 DAY, INTERVAL 25 HOUR > INTERVAL 1 DAY,"
        " INTERVAL 1 DAY IN (INTERVAL 24 HOUR), INTERVAL 1 DAY BETWEEN INTERVAL 2 HOUR AND"
        " INTERVAL 1 YEAR,"
        " INTERVAL 1 DAY IN (SELECT INTERVAL 24 HOUR),"
        " ARRAY_INCLUDES([INTERVAL 1 DAY], INTERVAL 24 HOUR),"
        " NULLIF(INTERVAL 1 DAY, INTERVAL 24 HOUR) IS NULL,"
        " CASE INTERVAL 1 DAY WHEN INTERVAL 24 HOUR THEN TRUE END",
        "BOOL, BOOL, BOOL, BOOL, BOOL, BOOL, BOOL, BOOL",
        (True, True, True, True, True, True, True, True),
    )
    rows = ask(
        blank,
        "SELECT CAST(i AS STRING) FROM UNNEST([INTERVAL 1 MONTH, INTERVAL -1 DAY, NULL,"
        " INTERVAL 29 DAY]) AS i ORDER BY i",
    ).rows
    assert rows == [(None,), ("0-0 -1 0:0:0",), ("0-0 29 0:0:0",), ("0-1 0 0:0:0",)]


def test_intervals_are_aggregated(blank: Database) -> None:
    texts = ", ".join(f"CAST({name}(i) AS STRING)" for name in ("SUM", "AVG", "MIN", "MAX"))
    rows = "FROM UNNEST([INTERVAL 1 MONTH, INTERVAL 31 DAY, NULL, INTERVAL -3 HOUR]) AS i"
    check(
        blank,
        f"SELECT {texts} {rows}",
        "STRING, STRING, STRING, STRING",
        ("0-1 31 -3:0:0", "0-0 20 7:0:0", "0-0 0 -3:0:0", "0-0 31 0:0:0"),
    )
    check(
        blank, f"SELECT SUM(i), MAX(i) {rows} WHERE i IS NULL", "INTERVAL, INTERVAL", (None, None)
    )
    answer = ask(
        blank,
        "SELECT CAST(SUM(i) OVER (ORDER BY i) AS STRING)"
        " FROM UNNEST([INTERVAL 2 DAY, INTERVAL 1 DAY]) AS i ORDER BY i",
    )
    assert answer.rows == [("0-0 1 0:0:0",), ("0-0 3 0:0:0",)]


def test_an_interval_is_iso_8601_in_json(blank: Database) -> None:
    check(
        blank,
        "SELECT TO_JSON_STRING(TO_JSON(INTERVAL '10:20:30.52' HOUR TO SECOND)),"
        " TO_JSON_STRING(TO_JSON(INTERVAL -25 MONTH)),"
        " TO_JSON_STRING(TO_JSON([INTERVAL '1 5:30' DAY TO MINUTE]))",
        "STRING, STRING, STRING",
        ('"PT10H20M30.52S"', '"P-2Y-1M"', '["P1DT5H30M"]'),
    )


def test_an_interval_is_a_parameter_and_an_element(blank: Database) -> None:
    sent = Interval(months=14, days=-3, nanos=-HOUR - 1)
    types = {"i": param_types.INTERVAL}
    assert ask(blank, "SELECT @i", {"i": sent}, types).rows == [(sent,)]
    array = {"i": Type(code=TypeCode.ARRAY, array_element_type=param_types.INTERVAL)}
    assert ask(blank, "SELECT @i", {"i": [sent, None]}, array).rows == [([sent, None],)]
    assert ask(blank, "SELECT ARRAY_AGG(i) FROM (SELECT INTERVAL 1 DAY AS i)").rows == [
        ([Interval(days=1)],)
    ]
    with pytest.raises(exceptions.InvalidArgument):
        ask(blank, "SELECT @i", {"i": "1 day"}, types)


REFUSED: list[tuple[str, type[Exception]]] = [
    ("SELECT INTERVAL '-23-2 10 0:-30' YEAR TO MINUTE", exceptions.InvalidArgument),
    ("SELECT INTERVAL '23--2 10 0:30' YEAR TO MINUTE", exceptions.InvalidArgument),
    ("SELECT INTERVAL '1' DAY TO YEAR", exceptions.InvalidArgument),
    ("SELECT INTERVAL 1 FORTNIGHT", exceptions.InvalidArgument),
    ("SELECT INTERVAL 1.5 DAY", exceptions.InvalidArgument),
    ("SELECT INTERVAL 10001 YEAR", exceptions.OutOfRange),
    ("SELECT MAKE_INTERVAL(day => 3660001)", exceptions.OutOfRange),
    ("SELECT MAKE_INTERVAL(1, year => 2)", exceptions.InvalidArgument),
    ("SELECT MAKE_INTERVAL(decade => 2)", exceptions.InvalidArgument),
    ("SELECT CAST('soon' AS INTERVAL)", exceptions.OutOfRange),
    ("SELECT CAST(5 AS INTERVAL)", exceptions.InvalidArgument),
    ("SELECT INTERVAL 1 DAY / 0", exceptions.OutOfRange),
    ("SELECT INTERVAL 1 DAY * 1.5", exceptions.InvalidArgument),
    ("SELECT INTERVAL 1 DAY + 1", exceptions.InvalidArgument),
    ("SELECT DATE '2024-01-01' + INTERVAL 1 DAY", exceptions.InvalidArgument),
    ("SELECT TIMESTAMP '2024-01-01' + INTERVAL 1 MONTH", exceptions.OutOfRange),
    ("SELECT EXTRACT(QUARTER FROM INTERVAL 1 DAY)", exceptions.InvalidArgument),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "refusal"), REFUSED)
def test_what_makes_no_interval_is_refused(
    blank: Database, sql: str, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        ask(blank, sql)


def test_no_column_is_an_interval(database: Database) -> None:
    for type_ in ("INTERVAL", "ARRAY<INTERVAL>"):
        with pytest.raises(exceptions.FailedPrecondition, match="INTERVAL"):
            database.update_ddl([f"CREATE TABLE T (K INT64, I {type_}) PRIMARY KEY (K)"]).result(30)


PARTS = st.builds(
    intervals.Interval,
    st.integers(-intervals.MONTHS_MAX, intervals.MONTHS_MAX),
    st.integers(-intervals.DAYS_MAX, intervals.DAYS_MAX),
    st.integers(-intervals.NANOS_MAX, intervals.NANOS_MAX),
)


@given(PARTS)
def test_both_writings_are_read_back(result: intervals.Interval) -> None:
    assert intervals.parse_iso(result.iso()) == result
    assert intervals.parse_interval(result.text()) == result.iso()
    client = Interval.from_str(result.iso())
    assert (client.months, client.days, client.nanos) == (result.months, result.days, result.nanos)
