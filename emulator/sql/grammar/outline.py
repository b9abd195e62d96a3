"""Parses a statement with the grammar: which parts it has, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulator.sql.functions.callers import check_caller
from emulator.sql.grammar.messages import describe_wrong_token
from emulator.sql.grammar.nodes import Node, Tree
from emulator.sql.grammar.parser import Parser
from emulator.sql.grammar.table import END, read_table
from emulator.sql.grammar.tokens import (
    TOKENS_BETWEEN_CHECKS,
    GrammarError,
    Kind,
    Token,
    scan,
)
from emulator.sql.grammar.words import Classifier

ENDED_BY_NAME = {
    "GRAPH_TABLE": "GRAPH_TABLE",
    "MATCH_RECOGNIZE": "MATCH_RECOGNIZE",
    "BRACE": "A braced constructor",
}


class FeatureError(Exception):
    """The statement uses what this server lacks; ``feature`` names it."""

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


@dataclass(frozen=True, slots=True)
class Outline:
    """A well-formed statement: its tree, and the nodes of this by their rules, the innermost
    first."""

    tree: Tree
    nodes: Mapping[str, Sequence[Node]]

    def find(self, *rules: str) -> list[Node]:
        """The nodes of these rules."""
        return [node for rule in rules for node in self.nodes.get(rule, ())]


def parse(sql: str, start: str) -> Outline:
    """Parses a statement or an expression (``start``).

    Raises GrammarError for what is no GoogleSQL, FeatureError for what is read up to there only.
    """
    tokens = scan(sql)
    parser = Parser(read_table(), start)
    classifier = Classifier(tokens, parser)
    for number, token in enumerate(tokens):
        if number % TOKENS_BETWEEN_CHECKS == 0:
            check_caller()
        if token.kind is Kind.END:
            terminals = [END]
        elif token.text == ">>" and not parser.accepts(parser.table.names[">>"]):
            terminals = [parser.table.names[">"]] * 2
        else:
            terminals = [classifier.classify(number)]
        take(parser, terminals, number, token)
    return Outline(parser.tree, parser.nodes)


def take(parser: Parser, terminals: list[str], number: int, token: Token) -> None:
    """Hands a token to the parser, as one terminal or more."""
    for terminal in terminals:
        if terminal in ENDED_BY_NAME and parser.accepts(terminal):
            raise FeatureError(ENDED_BY_NAME[terminal])
        if not parser.take(terminal, number, token):
            raise GrammarError(describe_wrong_token(parser, token), token.start)
