"""Texts of dates and timestamps: what CAST, TIMESTAMP(...) and PARSE_... read and refuse."""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

READ: list[tuple[str, str | None]] = [
    # A zone stands behind a time: an offset at once, a name behind one space.
    ("TIMESTAMP('2020-01-01 10:00:00 Etc/GMT+5')", "2020-01-01 15:00:00+00"),
    ("TIMESTAMP('2020-01-01 10:00:00 PST8PDT')", "2020-01-01 18:00:00+00"),
    ("TIMESTAMP('2020-01-01 10:00:00+5:3')", "2020-01-01 04:57:00+00"),
    # Local times of the years 0 and 10000.
    ("CAST('0000-12-31 16:07:02' AS TIMESTAMP)", "0001-01-01 00:00:00+00"),
    ("TIMESTAMP '0000-12-31 17:00:00-07'", "0001-01-01 00:00:00+00"),
    ("CAST('10000-01-01 08:00:00+09' AS TIMESTAMP)", "9999-12-31 23:00:00+00"),
    ("TIMESTAMP_TRUNC(TIMESTAMP '9999-12-31 23:30:00+00', HOUR, '+09')", "9999-12-31 23:00:00+00"),
    # Elements of formats: those behind count more than those before.
    ("TIMESTAMP(PARSE_DATE('%j %Y', '60 2020'), 'UTC')", "2020-02-29 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%Y %W', '2020 10'), 'UTC')", "2020-03-09 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%Y %U', '2020 0'), 'UTC')", "2019-12-29 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%G', '2021'), 'UTC')", "2021-01-04 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%Ey', '20'), 'UTC')", "2020-01-01 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%F', '2020-2-3'), 'UTC')", "2020-02-03 00:00:00+00"),
    ("TIMESTAMP(PARSE_DATE('%y%C', '6819'), 'UTC')", "1968-01-01 00:00:00+00"),
    ("PARSE_TIMESTAMP('%I %P', '5 pm', 'UTC')", "1970-01-01 17:00:00+00"),
    ("PARSE_TIMESTAMP('%E3S', '5.1239', 'UTC')", None),
    ("PARSE_TIMESTAMP('%F %T', '10000-01-01 03:00:00', '+05')", None),
    ("PARSE_TIMESTAMP('%Y-%m-%d %H', '10000-01-01 03', '+05')", "9999-12-31 22:00:00+00"),
]
REFUSED = [
    "TIMESTAMP('2020-01-01 10:00:00UTC')",
    "TIMESTAMP('2020-01-01 10:00:00  UTC')",
    "TIMESTAMP('2020-01-01 10:00:00 +5')",
    "TIMESTAMP('2020-01-01 10:00:00 Z')",
    "TIMESTAMP('2020-01-01+05')",
    "TIMESTAMP('2020-01-01 UTC')",
    "TIMESTAMP(' 2020-01-01 10:00:00')",
    "TIMESTAMP('2020-01-01 10:00:00+14:30')",
    "TIMESTAMP('2020-01-01 10:00:00+00', 'Asia/Tokyo')",
    "PARSE_TIMESTAMP('%H:%M:%S %z', '10:30:00 -05:30')",
    "PARSE_TIMESTAMP('%H:%M:%S %z', '10:30:00 +5')",
    "PARSE_DATE('%Y %j', '2019 366')",
    "PARSE_DATE('%Y-%m-%d %H', '2020-01-01 10')",
    "FORMAT_DATE('%J', DATE '2020-01-01')",
    "CAST('x' AS DATE)",
    "CAST(1e40 AS NUMERIC)",
]
FORMATTED = [
    (
        "FORMAT_TIMESTAMP('%Ec|%EX|%Od|%OH|%i|%E12S', TIMESTAMP '2008-12-25 15:04:05+00', 'UTC')",
        "Thu Dec 25 15:04:05 2008|15:04:05|25|15|%i|05.000000000000",
    ),
    ("FORMAT_DATE('%Ec|%EY|%Od|%OH', DATE '2008-12-25')", "%Ec|2008|25|%OH"),
]
NEVER_RUN = [
    "CAST('x' AS INT64)",
    "CAST('x' AS DATE)",
    "CAST('x' AS TIMESTAMP)",
    "CAST('x' AS UUID)",
    "CAST(1e40 AS NUMERIC)",
]


@pytest.mark.parametrize(("expression", "moment"), READ)
def test_a_text_is_read_as_a_moment(blank: Database, expression: str, moment: str | None) -> None:
    if moment is None:
        with pytest.raises(exceptions.OutOfRange):
            ask(blank, f"SELECT {expression}")
        return
    assert ask(blank, f"SELECT {expression} = TIMESTAMP '{moment}'").rows == [(True,)]


@pytest.mark.parametrize("expression", REFUSED)
def test_another_text_is_out_of_range(blank: Database, expression: str) -> None:
    with pytest.raises(exceptions.OutOfRange):
        ask(blank, f"SELECT {expression}")


@pytest.mark.parametrize(("expression", "text"), FORMATTED)
def test_a_format_gives_a_text(blank: Database, expression: str, text: str) -> None:
    assert ask(blank, f"SELECT {expression}").rows == [(text,)]


@pytest.mark.parametrize("cast", NEVER_RUN)
def test_a_bad_cast_that_never_runs_is_no_error(blank: Database, cast: str) -> None:
    assert ask(blank, f"SELECT IF(FALSE, {cast}, NULL) IS NULL").rows == [(True,)]


@pytest.mark.parametrize("literal", ["DATE 'x'", "TIMESTAMP 'x'", "NUMERIC 'x'", "JSON 'x'"])
def test_a_bad_literal_is_an_error_wherever_it_stands(blank: Database, literal: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ask(blank, f"SELECT IF(FALSE, {literal}, NULL) IS NULL")


def test_a_string_literal_has_no_parts_of_a_date(blank: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="EXTRACT does not support literal STRING"):
        ask(blank, "SELECT EXTRACT(DAY FROM '2020-01-01')")
