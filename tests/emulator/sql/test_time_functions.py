"""Functions of DATE and TIMESTAMP: parts, zones, limits, format elements."""

from __future__ import annotations

from datetime import date

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    (
        "FORMAT_TIMESTAMP('%c', TIMESTAMP '2050-12-25 15:30:55+00', 'UTC')",
        "STRING",
        "Sun Dec 25 15:30:55 2050",
    ),
    (
        "FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%E6S%Ez %Z', TIMESTAMP '2050-12-25 "
        "15:30:55.123456789+00', 'Asia/Kolkata')",
        "STRING",
        "2050-12-25T21:00:55.123456+05:30 UTC+5:30",
    ),
    (
        "FORMAT_TIMESTAMP('%E*S|%E3S|%s|%Q|%j|%U|%W|%V|%G|%k|%l|%p|%P|%%', "
        "TIMESTAMP '2021-01-03 09:05:06.1+00', 'UTC')",
        "STRING",
        "06.1|06.100|1609664706|1|003|01|00|53|2020| 9| 9|AM|am|%",
    ),
    ("FORMAT_DATE('%x %A %B %d', DATE '2008-12-25')", "STRING", "12/25/08 Thursday December 25"),
    (
        "PARSE_TIMESTAMP('%c', 'Thu Dec 25 07:30:00 2008', 'UTC')",
        "TIMESTAMP",
        "2008-12-25T07:30:00.000000Z",
    ),
    (
        "PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%E*S%Ez', '2024-02-29 23:59:59.123456789+05:30')",
        "TIMESTAMP",
        "2024-02-29T18:29:59.123456789Z",
    ),
    ("PARSE_TIMESTAMP('%s', '1611179220')", "TIMESTAMP", "2021-01-20T21:47:00.000000Z"),
    (
        "PARSE_TIMESTAMP('%F %I:%M %p', '2024-01-02 12:05 am', 'UTC')",
        "TIMESTAMP",
        "2024-01-02T00:05:00.000000Z",
    ),
    ("PARSE_DATE('%Y%m%d', '20240102')", "DATE", date(2024, 1, 2)),
    ("PARSE_DATE('%x', '12/25/08')", "DATE", date(2008, 12, 25)),
    ("EXTRACT(WEEK FROM DATE '2020-12-25')", "INT64", 51),
    ("EXTRACT(WEEK(MONDAY) FROM DATE '2020-12-25')", "INT64", 51),
    ("EXTRACT(ISOWEEK FROM DATE '2021-01-03')", "INT64", 53),
    ("EXTRACT(HOUR FROM TIMESTAMP '2020-12-25 15:30:00+00' AT TIME ZONE 'UTC')", "INT64", 15),
    ("EXTRACT(HOUR FROM TIMESTAMP '2020-12-25 15:30:00+00')", "INT64", 7),
    ("EXTRACT(DATE FROM TIMESTAMP '2020-12-25 01:30:00+00')", "DATE", date(2020, 12, 24)),
    ("EXTRACT(NANOSECOND FROM TIMESTAMP '2020-12-25 01:30:00.123456789+00')", "INT64", 123456789),
    (
        "TIMESTAMP_TRUNC(TIMESTAMP '2020-12-25 15:40:00+00', HOUR, 'Asia/Kolkata')",
        "TIMESTAMP",
        "2020-12-25T15:30:00.000000Z",
    ),
    (
        "TIMESTAMP_TRUNC(TIMESTAMP '2020-12-25 15:40:00+00', ISOYEAR, 'UTC')",
        "TIMESTAMP",
        "2019-12-30T00:00:00.000000Z",
    ),
    ("DATE_TRUNC(DATE '2024-01-10', WEEK(THURSDAY))", "DATE", date(2024, 1, 4)),
    ("DATE_DIFF(DATE '2017-10-15', DATE '2017-10-14', WEEK)", "INT64", 1),
    ("DATE_DIFF(DATE '2017-12-18', DATE '2017-12-17', ISOWEEK)", "INT64", 1),
    ("DATE_DIFF(DATE '2017-12-18', DATE '2017-12-17', WEEK(MONDAY))", "INT64", 1),
    ("DATE_DIFF(DATE '2017-12-30', DATE '2014-12-30', ISOYEAR)", "INT64", 2),
    ("DATE_ADD(DATE '2024-01-31', INTERVAL 1 MONTH)", "DATE", date(2024, 2, 29)),
    (
        "TIMESTAMP '2020-01-01 00:00:00.123456789 Europe/Berlin'",
        "TIMESTAMP",
        "2019-12-31T23:00:00.123456789Z",
    ),
    ("TIMESTAMP('2020-01-01', '+05:30')", "TIMESTAMP", "2019-12-31T18:30:00.000000Z"),
    (
        "STRING(TIMESTAMP '2020-06-01 00:00:00.120Z', 'America/New_York')",
        "STRING",
        "2020-05-31 20:00:00.120-04",
    ),
    ("DATE(TIMESTAMP '2020-06-01 00:00:00Z', 'UTC')", "DATE", date(2020, 6, 1)),
    ("UNIX_SECONDS(TIMESTAMP '1969-12-31 23:59:59.5Z')", "INT64", -1),
    ("TIMESTAMP_MICROS(-1)", "TIMESTAMP", "1969-12-31T23:59:59.999999Z"),
    ("UNIX_DATE(DATE '1969-12-31')", "INT64", -1),
    (
        "GENERATE_DATE_ARRAY('2024-01-31', '2024-05-01', INTERVAL 1 MONTH)",
        "ARRAY<DATE>",
        [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31), date(2024, 4, 30)],
    ),
    (
        "GENERATE_DATE_ARRAY('2024-01-03', '2024-01-01', INTERVAL -1 DAY)",
        "ARRAY<DATE>",
        [date(2024, 1, 3), date(2024, 1, 2), date(2024, 1, 1)],
    ),
    ("DATE '2024-01-01' < '2024-02-01'", "BOOL", True),
    ("CAST('2024-01-01T00:00:00.5+01' AS TIMESTAMP)", "TIMESTAMP", "2023-12-31T23:00:00.5Z"),
    ("CAST(DATE '2024-07-01' AS TIMESTAMP)", "TIMESTAMP", "2024-07-01T07:00:00.000000Z"),
    ("CURRENT_TIMESTAMP() > TIMESTAMP '2020-01-01'", "BOOL", True),
    ("CURRENT_TIMESTAMP = CURRENT_TIMESTAMP()", "BOOL", True),
    ("CURRENT_DATE('UTC') > '2020-01-01'", "BOOL", True),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("FORMAT_DATE('%H', DATE '2008-12-25')", exceptions.MethodNotImplemented),
    ("PARSE_TIMESTAMP('%a %b %e %Y %I:%M:%S', 'Thu Dec 25 07:30:00 2008')", exceptions.OutOfRange),
    ("PARSE_DATE('%F', '2024-13-01')", exceptions.OutOfRange),
    ("PARSE_DATE('%U', '1')", exceptions.MethodNotImplemented),
    ("EXTRACT(CENTURY FROM DATE '2020-12-25')", exceptions.InvalidArgument),
    ("DATE_ADD(DATE '9999-12-31', INTERVAL 1 DAY)", exceptions.OutOfRange),
    ("TIMESTAMP_ADD(TIMESTAMP '9999-12-31 23:59:59Z', INTERVAL 1 SECOND)", exceptions.OutOfRange),
    (
        "TIMESTAMP_ADD(TIMESTAMP '2020-01-01 00:00:00Z', INTERVAL 1 MONTH)",
        exceptions.InvalidArgument,
    ),
    (
        "TIMESTAMP_DIFF(TIMESTAMP '9999-12-31 23:59:59Z', TIMESTAMP '0001-01-01 "
        "00:00:00Z', NANOSECOND)",
        exceptions.OutOfRange,
    ),
    ("TIMESTAMP '0001-01-01 00:00:00+14'", exceptions.InvalidArgument),
    ("DATE(2024, 2, 30)", exceptions.OutOfRange),
    ("TIMESTAMP_SECONDS(9223372036854775807)", exceptions.OutOfRange),
    ("DATE_FROM_UNIX_DATE(99999999999)", exceptions.OutOfRange),
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
