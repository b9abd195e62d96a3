"""Calls that read a text, with texts that are nearly right."""

from __future__ import annotations

import random
from collections.abc import Iterator

from reference.queries import Query

JSON_TEXTS = (
    '{"a": 1, "b": [true, null, "x"]}', '[1, -2.5e3, "\\u00e9"]', '{"a": {"b": [1, {"c": "d"}]}}',
    '"a"', "null", " [ ] ", "1e400", "12345678901234567890",
)  # fmt: skip
NUMBERS = ("123", "-5", "0x1F", "+7.50", "1e3", " 1 ", "9223372036854775807", ".5", "inf", "-nan")
DATES = ("2024-02-29", "1999-1-2", "0001-01-01", "9999-12-31", "2020/01/02")
TIMES = (
    "2024-02-29 12:34:56.789012345+00", "2024-02-29T12:34:56Z", "2020-3-8 2:30 America/Los_Angeles",
    "1970-01-01", "2021-11-07 01:30:00.5-08:00", "9999-12-31 23:59:59.999999999 UTC",
)  # fmt: skip
SPANS = ("1-2 3 4:5:6.789", "P1Y2M3DT4H5M6.789S", "4 5:6", "-1-2", "5 6:7:8", "+1 2 3", "PT-5M")
ZONES = ("UTC", "+05:30", "America/New_York", "-8", "Etc/GMT+3")
PATHS = ("$", "$.a", "$.a.b[1].c", '$."a b"[0]', "$['a']", "lax $.a", "$[0][1]")
PATTERNS = ("a+b*", "(a|b)?c", "[^a-c]", r"\d{2,3}", "(?i)A.c$", r"\bx\b", "a{2}", "(?P<n>a)")
FORMATS = ("%d|%s", "%05.3d", "%'d %t %T", "%-10s|%%", "%x%X%o", "%.2f %e %g", "%*d", "%p %P")
DATE_FORMATS = ("%Y-%m-%d", "%d/%m/%y", "%b %e, %Y", "%j %Y", "%F", "%D", "%A %d %B %Y")
TIME_FORMATS = ("%Y-%m-%d %H:%M:%E*S%Ez", "%c", "%s", "%I:%M:%S %p %F", "%T %z %x")
TEXTS: dict[str, tuple[str, ...]] = {
    "CAST({} AS INT64)": NUMBERS,
    "CAST({} AS FLOAT64)": NUMBERS,
    "CAST({} AS FLOAT32)": NUMBERS,
    "CAST({} AS NUMERIC)": (*NUMBERS, "99999999999999999999999999999.999999999", "1e-9"),
    "NUMERIC {}": NUMBERS,
    "CAST({} AS BOOL)": ("true", "FALSE", " True", "t", "1"),
    "CAST({} AS DATE)": (*DATES, *TIMES),
    "CAST({} AS TIMESTAMP)": (*TIMES, *DATES),
    "TIMESTAMP {}": TIMES,
    "DATE {}": DATES,
    "CAST({} AS INTERVAL)": SPANS,
    "INTERVAL {} YEAR TO SECOND": SPANS,
    "INTERVAL {} DAY TO MINUTE": SPANS,
    "CAST({} AS UUID)": (
        "aaaaaaaa-0000-4000-8000-000000000000",
        "{11111111222233334444555555555555}",
    ),
    "JSON {}": JSON_TEXTS,
    "PARSE_JSON({})": JSON_TEXTS,
    "PARSE_JSON({}, wide_number_mode => 'round')": JSON_TEXTS,
    "JSON_VALUE({}, '$.a')": JSON_TEXTS,
    "JSON_QUERY({}, '$[1]')": JSON_TEXTS,
    "JSON_QUERY({}, '$.a.b')": JSON_TEXTS,
    "JSON_QUERY_ARRAY({})": JSON_TEXTS,
    "JSON_VALUE_ARRAY({}, '$.b')": JSON_TEXTS,
    'JSON_VALUE(JSON \'{{"a": [1, {{"b": 2}}], "a b": [3]}}\', {})': PATHS,
    'JSON_QUERY(\'{{"a": {{"b": [0, {{"c": 1}}]}}}}\', {})': PATHS,
    "JSON_SET(JSON '{{\"a\": [1]}}', {}, 7)": PATHS,
    'JSON_REMOVE(JSON \'{{"a": {{"b": [1, 2]}}}}\', {})': PATHS,
    "PARSE_DATE('%Y-%m-%d', {})": DATES,
    "PARSE_DATE({}, '2024-02-29')": DATE_FORMATS,
    "PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%E*S%Ez', {})": TIMES,
    "PARSE_TIMESTAMP({}, '2024-02-29 12:34:56')": TIME_FORMATS,
    "FORMAT_DATE({}, DATE '2024-02-29')": DATE_FORMATS,
    "FORMAT_TIMESTAMP({}, TIMESTAMP '2024-02-29 12:34:56.7+00')": TIME_FORMATS,
    "STRING(TIMESTAMP '2024-02-29 12:34:56.7+00', {})": ZONES,
    "TIMESTAMP('2024-03-10 02:30:00', {})": ZONES,
    "EXTRACT(HOUR FROM TIMESTAMP '2024-02-29 12:34:56+00' AT TIME ZONE {})": ZONES,
    "FORMAT({}, 12)": FORMATS,
    "FORMAT({}, 1.5, 'x')": FORMATS,
    "REGEXP_CONTAINS('aab 123 Abc', {})": PATTERNS,
    "REGEXP_EXTRACT('aab 123 Abc', {})": PATTERNS,
    "REGEXP_REPLACE('aab 123', {}, '-')": PATTERNS,
    "REGEXP_REPLACE('aab', '(a)(b)', {})": (r"\1\2", r"\\0", "x", r"\0-"),
    "'a%b_c' LIKE {}": ("a%", "a\\\\%b__", "%c", "a_b%"),
    "FROM_BASE64({})": ("YWJj", "YWI=", "/+8=", "YQ=="),
    "FROM_BASE32({})": ("MFRGG===", "MFRGG", "ME======"),
    "FROM_HEX({})": ("616263", "0f", "F"),
    "SPLIT_SUBSTR({}, '.', -2, 1)": ("a.b.c", "a..b", "."),
    "SOUNDEX({})": ("Ashcraft", "O'Hara", " x1"),
    "TO_JSON({})": ("a\u2028b", 'a"\\', "\t\x01"),
    "NORMALIZE({}, NFKC)": ("ﬁ", "e\u0301", "Å"),
    "TO_CODE_POINTS({})": ("aé", "\U0001f600", ""),
}
"""What reads a text, and texts that it can read."""
CHARACTERS = "0123456789abcxyzTZPYMDHS+-.,:; /\\\"'[]{}()$%*?_eE\t\n\u00e9\u0301"


def make_texts(seed: int, count: int) -> Iterator[Query]:
    """Queries of one call each."""
    for number in range(count):
        choice = random.Random(f"{seed}/text/{number}")
        call, texts = choice.choice([*TEXTS.items()])
        text = choice.choice(texts)
        for _ in range(choice.choice([0, 1, 1, 1, 2, 3])):
            text = change(choice, text, texts)
        yield Query(f"SELECT {call.format(quote(text))} AS x")


def change(choice: random.Random, text: str, others: tuple[str, ...]) -> str:
    """A text with one thing changed."""
    place = choice.randint(0, len(text))
    kind = choice.randrange(5)
    if kind == 0:
        return text[:place] + text[place + 1 :]
    if kind == 1:
        return text[:place] + choice.choice(CHARACTERS) + text[place + 1 :]
    if kind == 2:
        return text[:place] + text[max(place - 1, 0) :]
    if kind == 3:
        return text[:place] + choice.choice(others)[place:]
    return text[:place] + choice.choice(CHARACTERS) + text[place:]


def quote(text: str) -> str:
    """A text as a literal."""
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\x01": "\\x01"}
    return "'" + "".join(escapes.get(each, each) for each in text) + "'"
