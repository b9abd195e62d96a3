"""PostgreSQL's own parser, in front of everything: what it refuses is a syntax error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from emulator import errors
from emulator.errors import SpannerError
from emulator.limits import POSTGRES_CHAIN_MAX
from emulator.sql.grammar.places import mark_place

try:
    import pgparse
except ImportError:  # there is no wheel for every platform
    pgparse = None

Fields = dict[str, Any]
SCAN = re.compile(
    r"""
    (?P<hint>/\*@(?P<inside>.*?)\*/)
  | (?P<other>--[^\n]* | /\*(?:.*?\*/|.*) | [eE]'(?:\\.|''|[^'\\])*+'? | '(?:''|[^'])*+'?
      | "(?:""|[^"])*+"? | \$(?P<tag>[A-Za-z_]*+)\$(?:.*?\$(?P=tag)\$|.*))
    """,
    re.VERBOSE | re.DOTALL,
)
"""Hints, and what may look like one inside; what has no end takes all that is left."""
WORDS = re.compile(
    r"""
    (?P<passed>\s+ | --[^\n]* | /\*(?:.*?\*/|.*))
  | [eE]'(?:\\.|''|[^'\\])*'? | '(?:''|[^'])*'? | "(?:""|[^"])*"?
  | \$(?P<quote>(?:[^\W\d]\w*)?)\$(?:.*?\$(?P=quote)\$|.*)
  | [\w$]+ | (?:(?!/\*|--)[-+*/<>=~!@\#%^&|`?])+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""Words and signs. What has no end takes all that is left: it is a syntax error."""
LIST_WORDS = frozenset({"AND", "OR"})
TABLE_WORDS = frozenset({"JOIN", "UNION", "INTERSECT", "EXCEPT"})


def parse_statement(sql: str) -> Fields:
    """One statement as libpg_query's tree. Raises INVALID_ARGUMENT for a syntax error."""
    if pgparse is None:
        raise errors.failed_precondition(
            "The PostgreSQL dialect needs the Python package pgparse, which has no wheel for this"
            " platform: install pgparse, or create a database with the GoogleSQL dialect."
        )
    refuse_deep_nesting(sql)
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


def refuse_deep_nesting(sql: str) -> None:
    """Raises INVALID_ARGUMENT for a statement whose tree may be deeper than the parser's stack.

    A tree is at most as deep as there are words and signs without an end of a list between them:
    AND and OR make lists, too. Joins and unions stand in each other wherever they are.
    """
    if len(sql) <= POSTGRES_CHAIN_MAX:
        return
    around, chain, chained_tables = [0], 0, 0
    for match in WORDS.finditer(sql):
        word = match[0]
        if word in "([":
            chain += 1
            around.append(chain)
        elif word in ")]":
            chain = around.pop() if len(around) > 1 else chain
        elif word in ",;" or word.upper() in LIST_WORDS:
            chain = around[-1]
        elif match.lastgroup != "passed":
            chain += 1
            chained_tables += word.upper() in TABLE_WORDS
        if max(chain, chained_tables) > POSTGRES_CHAIN_MAX:
            raise errors.nested_too_deeply("statement")


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
    place, read = 0, 0
    for match in SCAN.finditer(sql):
        if match["hint"] is not None:
            place += len(sql[read : match.start()].encode())
            read = match.start()
            yield place, read_hint(match["inside"])


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
