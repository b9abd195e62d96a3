"""Splits Spanner's SQL text into tokens, with their positions in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.names import NAME_LENGTH_MAX
from spanner_schema.model.schema import Dialect


class TokenKind(Enum):
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

    kind: TokenKind
    text: str
    value: str
    start: int
    end: int


GOOGLESQL_PATTERN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<string>(?:[rR]?[bB]?|[bB][rR])(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<quoted>`(?:\\.|[^`\\\n])+`)
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F]+
        |\d+(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<symbol><=|>=|<>|!=|\|\||=>|@\{|/(?!\*)|[-+*(),.;<>=@{}\[\]:&|^~?%$!])
    """,
    re.VERBOSE | re.DOTALL,
)

POSTGRESQL_PATTERN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>[eE]?'(?:''|[^'])*')
  | (?P<quoted>"(?:""|[^"])+")
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
  | (?P<symbol>::|<=|>=|<>|!=|\|\||->>|->|/(?!\*)|[-+*(),.;<>=@{}\[\]:&|^~?%$!\#])
    """,
    re.VERBOSE | re.DOTALL,
)

KINDS_BY_GROUP = {
    "string": TokenKind.STRING,
    "quoted": TokenKind.QUOTED,
    "number": TokenKind.NUMBER,
    "word": TokenKind.WORD,
    "symbol": TokenKind.SYMBOL,
}


def locate(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1."""
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def tokenize(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> Iterator[Token]:
    """Splits a text into tokens, without blanks and comments; the last one is END.

    PostgreSQL ignores the case of names without quotes: their values are in lower case.
    Raises DdlSyntaxError.
    """
    pattern = POSTGRESQL_PATTERN if dialect is Dialect.POSTGRESQL else GOOGLESQL_PATTERN
    offset = 0
    while offset < len(text):
        match = pattern.match(text, offset)
        if match is None:
            position = locate(text, offset)
            raise DdlSyntaxError(*position, "a token", repr(text[offset : offset + 10]))
        offset = match.end()
        if match.lastgroup in KINDS_BY_GROUP:
            kind = KINDS_BY_GROUP[match.lastgroup]
            value = read_value(match.group(), kind, dialect)
            yield Token(kind, match.group(), value, match.start(), match.end())
    yield Token(TokenKind.END, "", "", offset, offset)


def read_value(text: str, kind: TokenKind, dialect: Dialect) -> str:
    """What a token means: a quoted name without its quotes, others as the dialect reads them."""
    value = text[1:-1] if kind is TokenKind.QUOTED else text
    if dialect is Dialect.GOOGLESQL:
        return value
    if kind not in {TokenKind.QUOTED, TokenKind.WORD}:
        return value.lower()
    name = value.replace('""', '"') if kind is TokenKind.QUOTED else value.lower()
    return name.encode()[: NAME_LENGTH_MAX[dialect]].decode(errors="ignore")


def split_statements(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> list[tuple[str, int]]:
    """Splits a script at its semicolons: each statement with the offset where it starts."""
    statements: list[tuple[str, int]] = []
    current: list[Token] = []
    for token in tokenize(text, dialect):
        if token.text == ";" or token.kind is TokenKind.END:
            if current:
                statements.append((text[current[0].start : current[-1].end], current[0].start))
            current = []
        else:
            current.append(token)
    return statements
