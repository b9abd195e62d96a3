"""Makes the parse table of the grammar: ``python -m emulator.sql.grammar.generate``.

lark turns googlesql.lark into an LALR(1) table, which takes seconds; the server reads the table
from a file of the package, in milliseconds, and does without lark.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from lark import Lark
from lark.lexer import Lexer

from emulator.sql.grammar.table import GRAMMAR_PATH, STARTS, TABLE_PATH, hash_grammar


class NoLexer(Lexer):
    """Tokens come from elsewhere: lark makes the table only."""

    def __init__(self, lexer_conf: object) -> None:
        """As lark calls it."""

    def lex(self, lexer_state: object, parser_state: object) -> Any:
        """Never called."""
        raise NotImplementedError


def make_table() -> dict[str, Any]:
    """The table as plain values, as ``table.read_table`` takes them.

    An action is the number of the next state, or -1 minus the number of a rule to reduce.
    Raises lark.exceptions.GrammarError where two rules meet.
    """
    grammar = GRAMMAR_PATH.read_text()
    lark = Lark(grammar, start=list(STARTS), parser="lalr", lexer=NoLexer)
    parser = lark.parser.parser
    parse_table = parser._parse_table
    texts = {each.name: each.pattern.value for each in lark.terminals if each.pattern is not None}
    order = order_states(parse_table.states, parse_table.start_states)
    states = {state: number for number, state in enumerate(order)}
    rules = order_rules(parse_table.states)
    numbers = {rule: number for number, rule in enumerate(rules)}
    return {
        "grammar": hash_grammar(grammar),
        "texts": texts,
        "rules": [describe_rule(rule) for rule in rules],
        "starts": {name: states[state] for name, state in parse_table.start_states.items()},
        "ends": {name: states[state] for name, state in parse_table.end_states.items()},
        "states": [
            {
                symbol: states[target] if isinstance(target, int) else -1 - numbers[target]
                for symbol, (_, target) in parse_table.states[state].items()
            }
            for state in order
        ],
    }


def order_states(
    states: dict[int, dict[str, tuple[Any, Any]]], starts: dict[str, int]
) -> list[int]:
    """The states as they are reached from the starts; lark numbers them anew in each run."""
    order = [starts[name] for name in STARTS]
    reached = set(order)
    for state in order:
        for _, (_, target) in sorted(states[state].items(), key=lambda item: item[0]):
            if isinstance(target, int) and target not in reached:
                reached.add(target)
                order.append(target)
    return order


def order_rules(states: dict[int, dict[str, tuple[Any, Any]]]) -> list[Any]:
    """The rules that are reduced, in the order of their names."""
    targets = [target for actions in states.values() for _, target in actions.values()]
    return sorted({each for each in targets if not isinstance(each, int)}, key=describe_rule)


def describe_rule(rule: Any) -> list[Any]:
    """The origin of a rule and its symbols."""
    return [rule.origin.name, [symbol.name for symbol in rule.expansion]]


def main() -> None:
    """Writes the table beside the grammar; the same grammar gives the same bytes."""
    text = json.dumps(make_table(), separators=(",", ":"), sort_keys=True)
    TABLE_PATH.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
