"""Splits a statement into the tokens of the grammar; what no token can be is an error here."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from emulator.sql.functions.callers import check_caller
from emulator.sql.grammar.literals import find_wrong_escape
from spanner_schema.syntax.googlesql.reserved import RESERVED


class Kind(Enum):
    """What a token is, before the parser's state says more; the value is how messages name it."""

    WORD = "identifier"
    NAME = "name"
    QUOTED = "quoted identifier"
    STRING = "string literal"
    BYTES = "bytes literal"
    INTEGER = "integer literal"
    FLOAT = "floating point literal"
    SYMBOL = "symbol"
    END = "end of statement"


class Token(NamedTuple):
    """``text`` is as written. NAME is a word that can be no keyword: it follows a dot or an @."""

    kind: Kind
    text: str
    start: int
    end: int


class GrammarError(Exception):
    """The text is no statement; ``offset`` is the place in it, ``message`` says why."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


BLANK = re.compile(
    r"(?:[ \n\r\t\b\f\v\u00a0\u2000-\u200a\u202f\u205f\u3000]+|--[^\r\n]*|\#[^\r\n]*"
    r"|/\*(?s:.*?)\*/)+"
)
TOKEN = re.compile(
    r"""
    (?P<literal>(?:[rR]?[bB]?|[bB][rR])(?:
         '''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"
        |'(?!'')(?:\\.|[^'\\\n\r])*'|"(?!"")(?:\\.|[^"\\\n\r])*"))
  | (?P<quoted>`(?:\\.|[^`\\\n\r])*`)
  | (?P<float>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<integer>0[xX][0-9a-fA-F]+|\d+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<symbol>@\s*\{|@@|<=|>=|<>|!=|\|\||\|>|=>|->|\+=|-=|<<|>>|[-+*/(),.;<>=@{}\[\]:&|^~?])
    """,
    re.VERBOSE | re.DOTALL,
)
BLANK_STARTS = " \n\r\t\b\f\v-#/"
AFTER_DOT = re.compile(r"[A-Za-z0-9_]+")
UNCLOSED = re.compile(r"(?P<prefix>[rRbB]{0,2})(?P<quote>'''|\"\"\"|'|\"|`)")
KINDS = {
    "quoted": Kind.QUOTED,
    "float": Kind.FLOAT,
    "integer": Kind.INTEGER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
NUMBERS = frozenset({Kind.INTEGER, Kind.FLOAT})
LITERALS = frozenset({Kind.STRING, Kind.BYTES})
PREFIXES = {"": "", "r": "raw ", "b": "", "br": "raw ", "rb": "raw "}


TOKENS_BETWEEN_CHECKS = 256
"""After so many tokens it is asked whether anybody waits for the statement any more."""


def scan(text: str) -> list[Token]:
    """The tokens of a text, without blanks and comments; the last one is END. Raises GrammarError.

    END stands after the last token's blanks.
    """
    tokens: list[Token] = []
    start, length = skip_blanks(text, 0), len(text)
    while start < length:
        if len(tokens) % TOKENS_BETWEEN_CHECKS == 0:
            check_caller()
        token = read_token(text, start, tokens)
        if token.kind is not Kind.SYMBOL and token.kind is not Kind.WORD:
            check_neighbours(text, token, tokens)
        tokens.append(token)
        start = token.end
        if start < length and (text[start] in BLANK_STARTS or text[start] > "~"):
            start = skip_blanks(text, start)
    tokens.append(Token(Kind.END, "", length, length))
    return tokens


def skip_blanks(text: str, offset: int) -> int:
    """The place after the blanks and comments at a place."""
    blank = BLANK.match(text, offset)
    return blank.end() if blank else offset


def read_token(text: str, start: int, before: list[Token]) -> Token:
    """The token at a place. Raises GrammarError."""
    named = AFTER_DOT.match(text, start) if is_name_next(text, start, before) else None
    if named:
        return Token(Kind.NAME, named.group(), start, named.end())
    if is_path_dot(text, start, before):
        return Token(Kind.SYMBOL, ".", start, start + 1)
    match = None if text.startswith("/*", start) else TOKEN.match(text, start)
    if match is None:
        raise GrammarError(describe_no_token(text, start), start)
    written = match.group()
    if match.lastgroup == "literal":
        kind = Kind.BYTES if "b" in written[:2].lower().split(written[-1])[0] else Kind.STRING
        return Token(kind, written, start, match.end())
    if match.lastgroup == "symbol" and written.startswith("@") and written.endswith("{"):
        written = "@{"
    return Token(KINDS[match.lastgroup or ""], written, start, match.end())


def is_name_next(text: str, start: int, before: list[Token]) -> bool:
    """Whether a word here can be no keyword: after the dot of a path, and after @."""
    if not before or before[-1].kind is not Kind.SYMBOL:
        return False
    if before[-1].text in {"@", "@@"}:
        return not text[start].isdigit()
    return before[-1].text == "." and len(before) > 1 and ends_operand(before[-2])


def is_path_dot(text: str, start: int, before: list[Token]) -> bool:
    """Whether a dot goes on with a path: ``a.1`` is a name after a dot, not a number."""
    if text[start] != "." or not before or before[-1].kind in NUMBERS:
        return False
    return ends_operand(before[-1])


def ends_operand(token: Token) -> bool:
    """Whether a dot after the token reads a field."""
    if token.kind is Kind.WORD:
        return token.text.upper() not in RESERVED
    return token.kind is not Kind.SYMBOL or token.text in {")", "]", "?", "}"}


def check_neighbours(text: str, token: Token, before: list[Token]) -> None:
    """Literals are apart from what follows, and hold escapes that mean something."""
    follows = text[token.end : token.end + 1]
    is_number = token.kind is Kind.INTEGER or (
        token.kind is Kind.FLOAT and not token.text.endswith(".")
    )
    if is_number and (follows == "_" or (follows.isascii() and follows.isalnum())):
        raise GrammarError("Missing whitespace between literal and alias", token.end)
    if token.kind in LITERALS:
        check_literal(token, before)
    elif token.kind is Kind.QUOTED:
        if token.text == "``":
            raise GrammarError("Invalid empty identifier", token.start)
        refuse_wrong_escape(token, "identifier")


def check_literal(token: Token, before: list[Token]) -> None:
    """Checks the escapes of a string or bytes literal, and its distance from the one before."""
    kind = "string literal" if token.kind is Kind.STRING else "bytes literal"
    refuse_wrong_escape(token, kind)
    if before and before[-1].kind in LITERALS:
        if before[-1].end == token.start:
            raise GrammarError(
                "Concatenated string literals must be separated by whitespace or comments",
                token.start,
            )
        if before[-1].kind is not token.kind:
            raise GrammarError("String and bytes literals cannot be concatenated.", token.start)


def refuse_wrong_escape(token: Token, kind: str) -> None:
    """Raises GrammarError at the first escape that means nothing."""
    wrong = find_wrong_escape(token.text)
    if wrong:
        raise GrammarError(f"Invalid {kind}: {wrong[1]}", token.start + wrong[0])


def describe_no_token(text: str, start: int) -> str:
    """Why no token begins at a place."""
    unclosed = UNCLOSED.match(text, start)
    if unclosed:
        prefix = unclosed["prefix"].lower()
        triple = "triple-quoted " if len(unclosed["quote"]) == 3 else ""
        if unclosed["quote"] == "`":
            return "Unclosed identifier literal"
        kind = "bytes" if "b" in prefix else "string"
        return f"Unclosed {triple}{PREFIXES.get(prefix, '')}{kind} literal"
    if text.startswith("/*", start):
        return "Unclosed comment"
    return f'Illegal input character "{text[start]}"'
