"""Which terminal of the grammar a token is: by the words around it, and by what the parser takes.

Reserved words are keywords everywhere. A word that is not reserved is a keyword where the grammar
can take it and the next token fits, and a name everywhere else.
"""

from __future__ import annotations

from emulator.sql.grammar.parser import Parser
from emulator.sql.grammar.tokens import Kind, Token
from spanner_schema.syntax.googlesql.reserved import RESERVED

SET_OPERATORS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
QUERY_BEGINS = frozenset({"SELECT", "FROM", "WITH"})
QUERY_GOES_ON = frozenset({"ORDER", "LIMIT", "FOR", "|>"}) | SET_OPERATORS
LITERAL_PREFIXES = {
    *("DATE", "TIMESTAMP", "NUMERIC", "DECIMAL", "JSON"),
    *("DATETIME", "TIME", "BIGNUMERIC", "BIGDECIMAL"),
}
BEFORE_PARENTHESIS = {
    *("SAFE_CAST", "REPLACE_FIELDS", "REPEATABLE", "PIVOT", "DESCRIPTOR", "OPTIONS"),
    *("GRAPH_TABLE", "MATCH_RECOGNIZE"),
}
BEFORE_NAME = {"TABLE", "MODEL", "SEQUENCE", "FUNCTION", "CONNECTION", "GRAPH"}
INSERT_MODES = frozenset({"UPDATE", "REPLACE"})
PARENTHESES = {"(", ")"}
REFUSED_BY_NAME = {"|>": "PIPE", "{": "BRACE"}
REFUSED_WORDS = frozenset({"GRAPH_TABLE", "MATCH_RECOGNIZE"})
LITERALS = {
    Kind.NAME: "IDENTIFIER",
    Kind.QUOTED: "IDENTIFIER",
    Kind.STRING: "STRING",
    Kind.BYTES: "BYTES",
    Kind.INTEGER: "INTEGER",
    Kind.FLOAT: "FLOAT",
}
WORDS = frozenset({Kind.WORD, Kind.QUOTED})


def find_query_parentheses(tokens: list[Token]) -> frozenset[int]:
    """The parentheses that hold a query, and nothing else: the numbers of their tokens."""
    queries: set[int] = set()
    opened: list[int] = []
    closed_by: dict[int, int] = {}
    places = [number for number, token in enumerate(tokens) if token.text in PARENTHESES]
    for number in places:
        if tokens[number].text == "(":
            opened.append(number)
        elif opened:
            closed_by[opened.pop()] = number
    for number in reversed(places):
        if tokens[number].text == "(" and begins_query(tokens, number + 1, queries, closed_by):
            queries.add(number)
    return frozenset(queries)


def begins_query(
    tokens: list[Token], number: int, queries: set[int], closed_by: dict[int, int]
) -> bool:
    """Whether a query begins at a token."""
    token = tokens[number]
    if number in queries:
        after = tokens[closed_by[number] + 1] if number in closed_by else tokens[-1]
        return after.text == ")" or is_set_prefix(tokens, closed_by.get(number, -1) + 1)
    word = token.text.upper()
    if token.kind is not Kind.WORD:
        return False
    if word == "WITH":
        return tokens[number + 1].text != "("
    if word == "TABLE":
        return tokens[number + 1].kind in WORDS
    return word in QUERY_BEGINS


def is_set_prefix(tokens: list[Token], number: int) -> bool:
    """Whether what follows a parenthesized query goes on with a query."""
    word = tokens[number].text.upper()
    return word in QUERY_GOES_ON or is_outer_mode(tokens, number)


def is_outer_mode(tokens: list[Token], number: int) -> bool:
    """FULL, LEFT or INNER (OUTER) before a set operator: not of a join."""
    if tokens[number].text.upper() not in {"FULL", "LEFT", "INNER"}:
        return False
    after = tokens[number + 1].text.upper()
    if after == "OUTER":
        after = tokens[number + 2].text.upper()
    return after in SET_OPERATORS


class Classifier:
    """Names the terminals of one statement's tokens, one after another."""

    def __init__(self, tokens: list[Token], parser: Parser) -> None:
        self.tokens = tokens
        self.parser = parser
        self.queries = find_query_parentheses(tokens)

    def classify(self, number: int) -> str:
        """The terminal of a token; "" for what the grammar does not know."""
        token = self.tokens[number]
        if token.kind is Kind.WORD:
            word = token.text.upper()
            return (
                self.classify_reserved(word, number)
                if word in RESERVED
                else self.classify_word(word, number)
            )
        if token.kind is Kind.SYMBOL:
            return self.classify_symbol(token.text, number)
        return LITERALS[token.kind]

    def classify_reserved(self, word: str, number: int) -> str:
        """The terminal of a reserved word."""
        after = self.tokens[number + 1].text.upper()
        if word == "EXCEPT" and after in {"ALL", "DISTINCT", "@{", "@"}:
            return "EXCEPT_SET"
        if word == "FOR" and after == "UPDATE":
            return "FOR_LOCK"
        if word == "WITH" and after == "(":
            return "WITH_EXPR"
        if is_outer_mode(self.tokens, number):
            return f"{word}_SET"
        return self.parser.table.names.get(word) or (word if word in REFUSED_WORDS else "")

    def classify_word(self, word: str, number: int) -> str:
        """The terminal of a word that is not reserved."""
        table = self.parser.table
        terminal = table.names.get(word) or (word if word in REFUSED_WORDS else "")
        if terminal and self.fits(word, number) and self.parser.accepts(terminal):
            return terminal
        return "IDENTIFIER"

    def fits(self, word: str, number: int) -> bool:
        """Whether the next token is one that the keyword can have."""
        after = self.tokens[number + 1]
        if word in LITERAL_PREFIXES and not (word == "TIME" and after.text.upper() == "ZONE"):
            return after.kind in {Kind.STRING, Kind.BYTES} or self.follows(number, "SYSTEM")
        if word in BEFORE_PARENTHESIS:
            return after.text == "("
        if word in BEFORE_NAME:
            return after.kind in WORDS and after.text.upper() != "CLAMPED"
        if word in INSERT_MODES and self.follows(number, "INSERT"):
            return after.kind in WORDS and after.text.upper() != "VALUES"
        if word == "CLAMPED":
            return after.text.upper() == "BETWEEN"
        if word == "UNPIVOT":
            return after.text.upper() in {"(", "EXCLUDE", "INCLUDE"}
        return True

    def follows(self, number: int, word: str) -> bool:
        """Whether the token before is this word."""
        return number > 0 and self.tokens[number - 1].text.upper() == word

    def classify_symbol(self, text: str, number: int) -> str:
        """The terminal of a symbol."""
        if text == "(" and number in self.queries and self.parser.accepts("QUERY_LPAR"):
            return "QUERY_LPAR"
        if text in REFUSED_BY_NAME:
            return REFUSED_BY_NAME[text]
        return self.parser.table.names.get(text, "")
