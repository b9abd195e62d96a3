"""Statements that stopped the embedded server for every client, and what they are now."""

from __future__ import annotations

import re
import threading

import pytest
from fixtures.pace import allow
from fixtures.server import VARIABLE, connect
from google.api_core.exceptions import NotFound, ResourceExhausted
from hypothesis import given
from hypothesis import strategies as st

from emulator import limits
from emulator.engine.clock import wall_micros
from emulator.errors import SpannerError
from emulator.limits import POSTGRES_CHAIN_MAX
from emulator.server import start
from emulator.services import sessions
from emulator.sql.functions.like_patterns import compile_like, ends_in_backslash
from emulator.sql.functions.text import like
from emulator.sql.postgres.parser import parse_statement

SECONDS = 10


def fits(value: str, pattern: str) -> bool:
    """LIKE by its definition: from every place on, what may follow."""
    if not pattern:
        return not value
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return fits(value, rest) or (bool(value) and fits(value[1:], pattern))
    if head == "\\":
        head, rest = rest[0], rest[1:]
    elif head == "_":
        return bool(value) and fits(value[1:], rest)
    return value[:1] == head and fits(value[1:], rest)


TEXTS = st.text(st.sampled_from("ab\n.*é\\%_\0 ["), max_size=8)


@given(TEXTS, TEXTS)
def test_like_is_what_it_was(value: str, pattern: str) -> None:
    if ends_in_backslash(pattern):
        return
    expected = fits(value, pattern)
    assert compile_like(pattern).matches(value) == expected
    latin = (value.encode("latin-1"), pattern.encode("latin-1"))
    assert like(*latin) == int(expected)


def finish(work: object) -> None:
    """Ends within a limit that backtracking would pass by years."""
    assert callable(work)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(allow(SECONDS))
    assert not thread.is_alive(), "it still runs"


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("a" * 50_000, "%a" * 5_000 + "%b"),
        ("a" * 5_000, "%a_" * 500 + "%b"),
        ("a" * 1_000_000, "%" * 100_000 + "b"),
        ("ab" * 300_000, "%" + "ab" * 100_000 + "c%"),
    ],
    ids=range(4),
)
@pytest.mark.parametrize("kind", ["text", "bytes"])
def test_like_takes_time_that_is_linear_in_the_text(kind: str, value: str, pattern: str) -> None:
    pair = (value, pattern) if kind == "text" else (value.encode(), pattern.encode())
    finish(lambda: like(*pair))


def test_like_that_would_take_long_is_refused() -> None:
    with pytest.raises(SpannerError, match="too large for this server"):
        like("a" * 100_000, "_a" * 10_000)


SHAPES = {
    "sum": lambda n: "SELECT " + "1+" * n + "1",
    "collate": lambda n: "SELECT 'a'" + ' COLLATE "C"' * n,
    "join": lambda n: "SELECT * FROM a" + " JOIN b USING (c)" * n,
    "join with AND": lambda n: "SELECT * FROM a" + " JOIN b ON x AND y" * n,
    "union": lambda n: "SELECT 1" + " UNION ALL SELECT 1" * n,
    "cast": lambda n: "SELECT 1" + "::int8" * n,
    "is null": lambda n: "SELECT 1" + " IS NULL" * n,
    "not": lambda n: "SELECT " + "NOT " * n + "true",
    "parentheses": lambda n: "SELECT " + "(" * n + "1" + ")" * n,
    "sum in lists": lambda n: "SELECT f(1, " + "1+" * n + "1, 2)",
    "comments": lambda n: "SELECT " + "1+/* a, b AND c */" * n + "1",
    "strings": lambda n: "SELECT " + "'a,b'||" * n + "''",
    "dollars": lambda n: "SELECT " + "$q$ , $q$||" * n + "''",
    "comments without end": lambda n: "SELECT " + "/*" * n,
    "quotes without end": lambda n: "SELECT " + "$a$$b" * n,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("terms", [2_000, 80_000])
def test_a_deep_statement_of_postgresql_is_an_error(shape: str, terms: int) -> None:
    """With 80,000 terms the parser's stack ended the process: segmentation fault."""
    outcomes: list[object] = []

    def parse() -> None:
        try:
            outcomes.append(parse_statement(SHAPES[shape](terms)))
        except (SpannerError, RecursionError) as error:
            outcomes.append(error)

    finish(parse)
    (outcome,) = outcomes
    if terms > POSTGRES_CHAIN_MAX:
        assert isinstance(outcome, SpannerError)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a IN (" + ",".join(["1"] * 40_000) + ")",
        "SELECT " + "a = 1 AND " * 40_000 + "b",
        "SELECT " + "a = 1 OR " * 40_000 + "b",
        "INSERT INTO t (a, b) VALUES " + ",".join(["(1, 'x, AND (')"] * 30_000),
        "SELECT '" + "a + b " * 20_000 + "'",
        "SELECT 1 /* " + "a + b " * 20_000 + " */",
        'SELECT "' + "a + b " * 20_000 + '"',
        "SELECT E'" + "\\' + b " * 20_000 + "'",
        "SELECT $x$" + "a + b $y$ " * 20_000 + "$x$",
    ],
    ids=range(9),
)
def test_a_long_statement_is_no_deep_one(sql: str) -> None:
    assert len(sql) > POSTGRES_CHAIN_MAX
    parse_statement(sql)
    assert re.match("SELECT|INSERT", sql)


def test_sessions_are_limited_and_idle_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,350,000 sessions were made in 20 seconds."""
    monkeypatch.setenv(VARIABLE, "")
    server = start()
    try:
        database = connect(server.address).database("limited")
        database.create().result(SECONDS)
        api, name = database.spanner_api, database.name
        before = api.create_session(database=name)
        monkeypatch.setattr(limits, "SESSIONS_MAX", 1)
        with pytest.raises(ResourceExhausted, match="Too many sessions"):
            api.create_session(database=name, retry=None)
        later = wall_micros() + 4_000 * 1_000_000
        monkeypatch.setattr(sessions, "wall_micros", lambda: later)
        after = api.create_session(database=name)
        with pytest.raises(NotFound):
            api.get_session(name=before.name)
        assert api.get_session(name=after.name).name == after.name
    finally:
        server.stop()
