"""Functions and operators of the PostgreSQL dialect: the examples of Spanner's documentation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from fixtures.postgres_databases import CreatePostgres, query, refusal, write
from google.api_core.exceptions import InvalidArgument, MethodNotImplemented
from google.cloud.spanner_v1.database import Database

NUMBERS = {
    "dpow(2, 3)": 8.0,
    "dsqrt(2::float8)": 1.4142135623730951,
    "sqrt(2.25)": 1.5,
    "2 ^ 3": 8.0,
    "spanner.dot_product('{100}'::int8[], '{200}'::int8[])": 20000.0,
    "round(spanner.cosine_distance('{2.0, 1.0}'::float8[], '{4.0, 3.0}'::float8[])::numeric, 6)": (
        Decimal("0.016130")
    ),
}
TEXTS = {
    "concat('abcde', NULL, 22::text)": None,
    "textcat('abcde', '222')": "abcde222",
    "btrim('\\x1234567890'::bytea, '\\x9012'::bytea)::text": "\\x345678",
    "quote_ident('Example')": '"Example"',
    "spanner.soundex('Ashcraft')": "A261",
    "spanner.split_substr('www.abc.xyz.com', '.', 1, 2)": "www.abc",
    "length(spanner.generate_uuid())": 36,
    "'thomas' !~ 't.*max'": True,
    "'Thomas' ~* '^t'": True,
    "substring('exampletext', 'tex.')": "text",
    "regexp_replace('Thomas', '.[mN]a.', 'M')": "ThM",
    "regexp_match('examBaRBeQUEple', '(bar)(beque)', 'i')": ["BaR", "BeQUE"],
    "regexp_match('a', 'b')": None,
    "regexp_split_to_array('the quick  fox', '\\s+')": ["the", "quick", "fox"],
    "like('abc', 'a_c')": True,
    "text(5) || 'a'": "5a",
}
ARRAYS = {
    "array_cat(ARRAY['cat'], ARRAY['bird'])": ["cat", "bird"],
    "array_cat(ARRAY['cat'], NULL)": None,
    "array_to_string(ARRAY['a', NULL, 'c'], ',', '*')": "a,*,c",
    "array_to_string(ARRAY['a', NULL, 'c'], ',', NULL)": None,
    "array_upper(ARRAY[1, 2, 3, 4], 1)": 4,
    "2 = ANY(ARRAY[1, 2])": True,
    "(1 + 2) >= ALL(ARRAY[1, 2, 3])": True,
    "5 < ANY('{1,NULL}'::bigint[])": None,
    "5 < ALL('{}'::bigint[])": True,
    "ARRAY[1, 2, 3] @> ARRAY[1, 2, 1]": True,
    "ARRAY[1.0] <@ ARRAY[1.00, 2]": True,
    "ARRAY[1, 2] && ARRAY[3]": False,
    """'{a,"b c",NULL,"\\"q"}'::text[]""": ["a", "b c", None, '"q'],
    "(ARRAY['a b', NULL, ''])::text": '{"a b",NULL,""}',
}
DOCUMENTS = {
    """'["a", "b"]'::jsonb || '["a"]'::jsonb""": '["a", "b", "a"]',
    """'{"a": "b"}'::jsonb || '42'::jsonb""": '[{"a": "b"}, 42]',
    """'{"a": "b", "c": "d"}'::jsonb - 'a'""": '{"c": "d"}',
    """'["a", "b"]'::jsonb - 1""": '["a"]',
    """'["a", {"b":1}]'::jsonb #- '{1,b}'""": '["a", {}]',
    """'{"a":1}'::jsonb ?| array['b', 'a']""": "true",
    """'["a"]'::jsonb ?& array['a', 'b']""": "false",
    "jsonb_build_array(1, 'abc', NULL)": '[1, "abc", null]',
    "jsonb_build_object('key1', 1, 'key2', 'abc')": '{"key1": 1, "key2": "abc"}',
    """jsonb_insert('{"a": [0,1,2]}', '{a, 1}', '"new"', true)""": '{"a": [0, 1, "new", 2]}',
    """jsonb_set('[{"f1":1},2]', '{0,f3}', '[2,3]')""": '[{"f1": 1, "f3": [2, 3]}, 2]',
    "jsonb_set('[]', '{a,1}', '1', false)": "[]",
    "'[]'::jsonb #- '{a}'": "[]",
    """jsonb_set_lax('[{"f1":9},2]', '{0,f1}', null)""": '[{"f1": null}, 2]',
    """jsonb_set_lax('[{"f1":9},2]', '{0,f1}', null, true, 'delete_key')""": "[{}, 2]",
    """jsonb_strip_nulls('[{"f1":1, "f2":null}, null]')""": '[{"f1": 1}, null]',
    "to_jsonb(1.2334000)": "1.2334000",
    "to_jsonb(ARRAY['a', NULL])": '["a", null]',
    """jsonb_object_keys('{"bb":1, "a":2}'::jsonb)""": "{a,bb}",
    "spanner.int64_array('[1, -2, 3.0]'::jsonb)": "{1,-2,3}",
    """spanner.jsonb_query_array('[1, {"k": "v"}]'::jsonb)""": '{1,"{\\"k\\": \\"v\\"}"}',
    "('2.5'::jsonb)::bigint": "3",
}
FORMATS = {
    "to_char(125, '999')": " 125",
    "to_char(-125.8, '999D99S')": "125.80-",
    "to_char(1234.5::float8, 'FM9,999.00')": "1,234.50",
    "to_char(12345, '999')": " ###",
    "to_char(-12.5, '9999mi')": "  13-",
    "to_char(1234.5, 'fm9g999d00')": "1,234.50",
    "to_char(-12, 's9999Mi')": "  -12Mi",
    "to_number('<12>', '99pr')": "-12",
    "to_char(timestamptz '2002-04-20 17:31:12.66-07', 'HH12:MI:SS MS, FMMonth FMDDth')": (
        "05:31:12 660, April 20th"
    ),
    "to_char(INTERVAL '1 year 2 months 15 days 10 hours 30 minutes 15.1 seconds',"
    " 'YYYY-MM-DD HH24:MI:SS.MS')": "0001-02-15 10:30:15.100",
    "to_number('12,454.8-', '99G999D9S')": "-12454.8",
    "to_date('05 Dec 2000', 'DD Mon YYYY')": "2000-12-05",
    "to_timestamp('05 Dec 2000', 'DD Mon YYYY')": "2000-12-05 00:00:00-08",
    "to_timestamp('2024-02-29 12', 'YYYY-MM-DD HH24:MI:SS')": "2024-02-29 12:00:00-08",
    "to_timestamp('2024-02-29 3661', 'YYYY-MM-DD SSSS')": "2024-02-29 01:01:01-08",
    "to_date('524-1-2', 'YYY-MM-DD')": "1524-01-02",
    "to_date('2460370', 'J')": "2024-02-29",
    # What Spanner documents as formats of date and timestamptz.
    "'January 8, 1999'::date": "1999-01-08",
    "'1/18/1999'::date": "1999-01-18",
    "'01/02/03'::date": "2003-01-02",
    "'1999-Jan-08'::date": "1999-01-08",
    "'Jan-08-99'::date": "1999-01-08",
    "'08-Jan-99'::date": "1999-01-08",
    "'19990108'::date": "1999-01-08",
    "'990108'::date": "1999-01-08",
    "'1999.008'::date": "1999-01-08",
    "'J2451187'::date": "1999-01-08",
    "'2003-04-12 04:05 AM'::timestamptz": "2003-04-12 04:05:00-07",
    "'2003-04-12 04:05 PM'::timestamptz": "2003-04-12 16:05:00-07",
    "'2003-04-12 040506.789-08'::timestamptz": "2003-04-12 05:05:06.789-07",
    "'2003-04-12 040506+07:30:00'::timestamptz": "2003-04-11 13:35:06-07",
    "'2003-04-12 04:05:06-800'::timestamptz": "2003-04-12 05:05:06-07",
    "'2003-04-12 04:05:06 zulu'::timestamptz": "2003-04-11 21:05:06-07",
    "'2003-04-12 04:05:06 CET'::timestamptz": "2003-04-11 19:05:06-07",
    "'20030412T24:00 America/New_York'::timestamptz": "2003-04-12 21:00:00-07",
    # A time that there is twice is standard time.
    "'2021-11-07 01:30:00'::timestamptz": "2021-11-07 01:30:00-08",
    "'2021-11-07 01:30:00 America/New_York'::timestamptz": "2021-11-06 23:30:00-07",
    "timestamptz '2021-11-06 08:30+00' + interval '1 day'": "2021-11-07 01:30:00-08",
}
INTERVALS = {
    "make_interval(years => 1, months => 2, weeks => 3, days => 15, hours => 10, secs => 15.1)": (
        "P1Y2M36DT10H15.1S"
    ),
    "-INTERVAL '1 year 2 months 15 days 45 seconds 500 microseconds'": "P-1Y-2M-15DT-45.0005S",
    "INTERVAL '1 year 2 months' - INTERVAL '15 days 45 seconds'": "P1Y2M-15DT-45S",
    "INTERVAL '4 months 12 days 20 seconds' * 4.0": "P1Y4M48DT1M20S",
    "INTERVAL '1 hour' / 2.5": "PT24M",
    "TIMESTAMPTZ '2024-12-18T10:00:00+00' - TIMESTAMPTZ '2024-10-03T08:20:00Z'": "PT1825H40M",
    "justify_hours(interval '-12 day 50 hours 10 minutes')": "P-9DT-21H-50M",
    "justify_days(interval '-1 year 45 days')": "P-10M-15D",
    "justify_interval(INTERVAL '-34 days 60 hours')": "P-1M-1DT-12H",
    "INTERVAL '1-2 3 4:05:06'": "P1Y2M3DT4H5M6S",
    "INTERVAL '@ 1 year -3 days 4 hours ago'": "P-1Y3DT-4H",
    "INTERVAL '1.5 months'": "P1M15D",
    "extract(SECOND FROM INTERVAL '1 year 15 seconds 100 milliseconds')": "15.100000",
    "INTERVAL '1 day' = INTERVAL '24 hours'": "true",
    "TIMESTAMPTZ '2021-12-18T10:00:00+00' + INTERVAL '2 months 15 days 40 minutes'": (
        "2022-03-05 02:40:00-08"
    ),
    "TIMESTAMPTZ '2024-03-31T20:00:00Z' - INTERVAL '1 month'": "2024-02-29 13:00:00-08",
    "spanner.timestamptz_add(timestamptz '2001-02-16 20:38:40Z', '1 day 3min')": (
        "2001-02-17 12:41:40-08"
    ),
    "spanner.date('2025-04-14 03:38:40+00'::timestamptz, 'America/New_York')": "2025-04-13",
    "spanner.date_bin('15 minutes', timestamptz '2001-02-16 20:38:40Z',"
    " timestamptz '2001-02-16 20:05:00Z')": "2001-02-16 12:35:00-08",
    "date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'Australia/Sydney')": (
        "2001-02-16 05:00:00-08"
    ),
    "extract(decade from timestamptz '2001-01-01 01:00:00+00')": "200",
    "extract(epoch from timestamptz '0001-01-01 00:00:00+00')": "-62135596800.000000",
    "timestamptz '0001-01-02 00:00:00+00' - timestamptz '0001-01-01 00:00:00+00'": "PT24H",
}


def values_of(database: Database, expressions: dict[str, Any], cast: str = "") -> dict[str, Any]:
    """The values of expressions, asked in one query."""
    listed = ", ".join(f"({each}){cast}" for each in expressions)
    (row,) = query(database, f"SELECT {listed}")
    return dict(zip(expressions, row, strict=True))


def test_the_documented_examples(create_postgres: CreatePostgres) -> None:
    database = create_postgres()
    plain: list[dict[str, Any]] = [NUMBERS, TEXTS, ARRAYS]
    for expressions in plain:
        assert values_of(database, expressions) == expressions
    for texts in (DOCUMENTS, INTERVALS, FORMATS):
        assert values_of(database, texts, "::text") == texts


@pytest.mark.parametrize(
    ("sql", "feature"),
    [
        ("SELECT to_char(1, 'SG9')", "the pattern SG of numbers"),
        ("SELECT to_char(1, '9999rn')", "the pattern RN of numbers"),
        ("SELECT to_number('1', '9v9')", "the pattern V of numbers"),
        ("SELECT * FROM generate_series(1.5, 3)", "generate_series of numeric"),
        ("SELECT array_agg(DISTINCT x) FROM unnest(ARRAY[1.5]) AS x", "array_agg.DISTINCT ...."),
        ("CALL spanner.cancel_query('1')", "CALL"),
    ],
)
def test_what_is_not_served_is_refused_by_its_name(
    create_postgres: CreatePostgres, sql: str, feature: str
) -> None:
    with pytest.raises(MethodNotImplemented, match=f"{feature}.* is not supported by the embedded"):
        query(create_postgres(), sql)


def test_functions_in_from_give_rows(create_postgres: CreatePostgres) -> None:
    database = create_postgres("CREATE TABLE t (id bigint PRIMARY KEY, items text[], j jsonb)")
    write(
        database,
        """INSERT INTO t VALUES (1, '{a,"b c"}', '[{"k": "v"}, 2]'), (2, ARRAY[]::text[], '[]')""",
    )
    for sql, rows in (
        ("SELECT * FROM generate_series(3, 0, -2)", [[3], [1]]),
        ("SELECT n FROM generate_series(1, 2) AS n", [[1], [2]]),
        ("SELECT id, x FROM t CROSS JOIN LATERAL unnest(t.items) AS x", [[1, "a"], [1, "b c"]]),
        (
            "SELECT id, u.x FROM t LEFT JOIN unnest(t.items) AS u(x) ON true WHERE id = 2",
            [[2, None]],
        ),
        (
            "SELECT t.id, e ->> 'k' FROM t, jsonb_array_elements(t.j) AS e",
            [[1, "v"], [1, None]],
        ),
        ("SELECT q.b, q.a FROM (SELECT 1, 2) AS q(a, b)", [[2, 1]]),
        ("SELECT x.a FROM t AS x(a) WHERE a = 2 GROUP BY (a, 1 + a)", [[2]]),
        ("SELECT bit_and(x), bit_or(x) FROM unnest(ARRAY[6, 3]) AS x", [[2, 7]]),
    ):
        assert query(database, sql) == rows
    spans = "(SELECT interval '1 day' AS x UNION ALL SELECT interval '12 hours') AS q"
    sql = f"SELECT sum(x)::text, avg(x)::text, max(x)::text, min(x)::text FROM {spans}"
    assert query(database, sql) == [["P1DT12H", "PT18H", "P1D", "PT12H"]]


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        ("SELECT DISTINCT ON (1) 1", MethodNotImplemented, "DISTINCT ON clauses are not supported"),
        ("SELECT rank() OVER ()", InvalidArgument, "Window functions are not supported"),
        ("SELECT * FROM (VALUES (1)) AS v", MethodNotImplemented, "VALUES lists in FROM"),
        (
            "WITH RECURSIVE q AS (SELECT 1 AS x) SELECT * FROM q",
            MethodNotImplemented,
            "Recursive WITH expressions are not supported",
        ),
        ("SELECT '{1,2'::bigint[]", InvalidArgument, "malformed array literal"),
        ("SELECT '99-Jan-08'::date", InvalidArgument, "date/time field value out of range"),
        (
            "SELECT 'today'::timestamptz",
            InvalidArgument,
            "invalid input syntax for type timestamp with time zone",
        ),
        (
            "SELECT '2003-04-12 04:05:06 PST'::timestamptz",
            InvalidArgument,
            'time zone "PST" not recognized',
        ),
        (
            "SELECT '2003-04-12 13:05 PM'::timestamptz",
            InvalidArgument,
            "date/time field value out of range",
        ),
        (
            "SELECT interval '1 fortnight'",
            InvalidArgument,
            "invalid input syntax for type interval",
        ),
        ("SELECT regexp_match('a', '(')", Exception, "Cannot parse regular expression"),
        ("SELECT 1 + interval '1 day'", InvalidArgument, "operator does not exist"),
    ],
)
def test_what_is_refused_is_said_in_spanners_words(
    create_postgres: CreatePostgres, sql: str, kind: type[Exception], words: str
) -> None:
    error = refusal(lambda: query(create_postgres(), sql))
    assert isinstance(error, kind)
    assert words in (error.message or "")
