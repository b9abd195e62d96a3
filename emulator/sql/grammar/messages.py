"""What is wrong with a token, in GoogleSQL's words."""

from __future__ import annotations

from emulator.sql.grammar.parser import Parser
from emulator.sql.grammar.table import END
from emulator.sql.grammar.tokens import Kind, Token
from spanner_schema.syntax.googlesql.reserved import RESERVED

DECLARED = {
    "IDENTIFIER": "identifier",
    "STRING": "string literal",
    "BYTES": "bytes literal",
    "INTEGER": "integer literal",
    "FLOAT": "floating point literal",
    "QUERY_LPAR": '"("',
    "EXCEPT_SET": "keyword EXCEPT",
    "FOR_LOCK": "keyword FOR",
    "WITH_EXPR": "keyword WITH",
    "FULL_SET": "keyword FULL",
    "LEFT_SET": "keyword LEFT",
    "INNER_SET": "keyword INNER",
    END: "end of statement",
}
UNTOLD = frozenset({"PIPE", "BRACE", "GRAPH_TABLE", "MATCH_RECOGNIZE", "?"})
ALTERNATIVES_MAX = 3
LITERAL_MAX = 50


def describe_wrong_token(parser: Parser, token: Token) -> str:
    """What was expected, where that is little, and what stands there.

    Hints are not told of, and an identifier stands for too many words.
    """
    expected = parser.list_expected()
    actual = describe_token(token, parser)
    if END in expected:
        return f"Expected end of input but got {actual}"
    told = set(expected) - {parser.table.names["@{"]}
    if len(told) < len(expected):
        told -= {parser.table.names["@"]}
    names = sorted({describe_terminal(each, parser) for each in told} - {""})
    if "IDENTIFIER" not in told and 0 < len(names) <= ALTERNATIVES_MAX:
        return f"Expected {' or '.join(names)} but got {actual}"
    return f"Unexpected {actual}"


def describe_terminal(terminal: str, parser: Parser) -> str:
    """A terminal as a message names it; "" for those that are never told."""
    if terminal in DECLARED:
        return DECLARED[terminal]
    text = parser.table.texts.get(terminal, terminal)
    if text in UNTOLD:
        return ""
    return f"keyword {text}" if text[0].isalpha() else f'"{text}"'


def describe_token(token: Token, parser: Parser) -> str:
    """A token as a message names it."""
    if token.kind is Kind.END:
        return str(token.kind.value)
    word = token.text.upper()
    if token.kind is Kind.WORD and (word in RESERVED or word in parser.table.names):
        return f"keyword {word}"
    if token.kind in {Kind.WORD, Kind.NAME}:
        return f'identifier "{token.text}"'
    if token.kind is Kind.QUOTED:
        return f"identifier {token.text}"
    if token.kind is Kind.SYMBOL:
        return f'"{token.text[0] if token.text == "@{" else token.text}"'
    if token.kind in {Kind.STRING, Kind.BYTES}:
        return f"{token.kind.value} {cut_literal(token.text)}"
    return f'{token.kind.value} "{token.text}"'


def cut_literal(text: str) -> str:
    """A literal of at most LITERAL_MAX characters between its quotes, with both of them."""
    if len(text) <= LITERAL_MAX + 3:
        return text
    quote = text[-3:] if text.endswith(("'''", '"""')) else text[-1]
    return f"{text[: LITERAL_MAX - len(quote) - 1]}...{quote}"
