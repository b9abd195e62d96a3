"""Splits Spanner's SQL text into tokens, with their places in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ddl.errors import DdlSyntaxError
from ddl.schema import Dialect


class Kind(Enum):
    """What a token is."""

    WORD = "a name"
    QUOTED = "a quoted name"
    STRING = "a string"
    NUMBER = "a number"
    SYMBOL = "a symbol"
    END = "the end of the statement"


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is as written, ``value`` what it means (a name without its quotes)."""

    kind: Kind
    text: str
    value: str
    start: int
    end: int


PATTERN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<string>(?:[rR]?[bB]?|[bB][rR])(?:'''(?:\\.|.)*?'''|\"\"\"(?:\\.|.)*?\"\"\"
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<quoted>`(?:\\.|[^`\\\n])+`)
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F]+
        |\d+(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<symbol><=|>=|<>|!=|\|\||=>|@\{|[-+*/(),.;<>=@{}\[\]:&|^~?%$!])
    """,
    re.VERBOSE | re.DOTALL,
)

POSTGRES = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>[eE]?'(?:''|[^'])*')
  | (?P<quoted>"(?:""|[^"])+")
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
  | (?P<symbol>::|<=|>=|<>|!=|\|\||->>|->|[-+*/(),.;<>=@{}\[\]:&|^~?%$!\#])
    """,
    re.VERBOSE | re.DOTALL,
)

KINDS = {
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column (from 1) of an offset."""
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def tokenize(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> Iterator[Token]:
    """The tokens of a text, without blanks and comments, and an END at last.

    PostgreSQL: a name that is not quoted means the same in any case, and is given in small letters.
    """
    postgres = dialect is Dialect.POSTGRESQL
    pattern = POSTGRES if postgres else PATTERN
    offset = 0
    while offset < len(text):
        match = pattern.match(text, offset)
        if match is None:
            raise DdlSyntaxError(*place(text, offset), "a token", repr(text[offset : offset + 10]))
        offset = match.end()
        if match.lastgroup in KINDS:
            written = match.group()
            value = written[1:-1] if match.lastgroup == "quoted" else written
            if postgres:
                quoted = match.lastgroup == "quoted"
                value = value.replace('""', '"') if quoted else value.lower()
            yield Token(KINDS[match.lastgroup], written, value, match.start(), match.end())
    yield Token(Kind.END, "", "", offset, offset)


def split(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> list[tuple[str, int]]:
    """The statements of a script, each with the offset at which it starts."""
    statements: list[tuple[str, int]] = []
    current: list[Token] = []
    for token in tokenize(text, dialect):
        if token.text == ";" or token.kind is Kind.END:
            if current:
                statements.append((text[current[0].start : current[-1].end], current[0].start))
            current = []
        else:
            current.append(token)
    return statements
