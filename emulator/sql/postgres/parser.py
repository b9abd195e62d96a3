"""PostgreSQL's own parser, in front of everything: what it refuses is a syntax error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.grammar.places import mark_place

try:
    import pgparse
except ImportError:  # there is no wheel for every platform
    pgparse = None

Fields = dict[str, Any]
SCAN = re.compile(
    r"""
    (?P<hint>/\*@(?P<inside>.*?)\*/)
  | (?P<other>--[^\n]* | /\*.*?\*/ | [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
      | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Hints, and what may look like one inside."""


def parse_statement(sql: str) -> Fields:
    """One statement as libpg_query's tree. Raises INVALID_ARGUMENT for a syntax error."""
    if pgparse is None:
        raise errors.failed_precondition(
            "The PostgreSQL dialect needs the Python package pgparse, which has no wheel for this"
            " platform: install pgparse, or create a database with the GoogleSQL dialect."
        )
    try:
        statements = pgparse.parse(sql)
    except pgparse.PGQueryError as error:
        raise syntax_error(sql, error.message, error.position) from error
    if len(statements) != 1:
        raise errors.invalid_argument(
            f"Syntax error: expected a single statement, found {len(statements)}"
        )
    tree: Fields = statements[0]["stmt"]
    return tree


def parse_expression(text: str) -> Fields:
    """A scalar expression of a schema. Raises INVALID_ARGUMENT."""
    tree = parse_statement(f"SELECT ({text})")
    select = tree.get("SelectStmt", {})
    targets = select.get("targetList", [])
    if len(targets) != 1 or set(select) - {"targetList", "limitOption", "op"}:
        raise errors.invalid_argument(f"Syntax error: {text[:80]!r} is not one expression")
    expression: Fields = targets[0]["ResTarget"]["val"]
    return expression


def syntax_error(sql: str, message: str, position: int) -> SpannerError:
    """A syntax error in PostgreSQL's words, with its place; positions count from one."""
    offset = min(max(position - 1, 0), max(len(sql) - 1, 0))
    where = f" {mark_place(sql, offset)}" if sql.strip() else ""
    return errors.invalid_argument(f"[ERROR] {message}{where}")


def find_hints(sql: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The hints of a statement: where each begins, in bytes, and its names in capitals."""
    for match in SCAN.finditer(sql):
        if match["hint"] is not None:
            yield len(sql[: match.start()].encode()), read_hint(match["inside"])


def read_hint(inside: str) -> dict[str, str]:
    """name=value, ..., with values as written. Raises INVALID_ARGUMENT."""
    hints = {}
    for part in inside.split(","):
        name, sign, value = part.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise errors.invalid_argument(
                f"Syntax error: a hint is name=value, not {part.strip()!r}"
            )
        hints[name.strip().upper()] = value.strip()
    return hints
