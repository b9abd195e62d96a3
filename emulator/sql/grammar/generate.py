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
    numbers: dict[Any, int] = {}
    for actions in parse_table.states.values():
        for _, target in actions.values():
            if not isinstance(target, int):
                numbers.setdefault(target, len(numbers))
    rules = [[each.origin.name, [s.name for s in each.expansion]] for each in numbers]
    states = [
        {
            symbol: target if isinstance(target, int) else -1 - numbers[target]
            for symbol, (_, target) in sorted(parse_table.states[state].items())
        }
        for state in sorted(parse_table.states)
    ]
    return {
        "grammar": hash_grammar(grammar),
        "texts": texts,
        "rules": rules,
        "starts": parse_table.start_states,
        "ends": parse_table.end_states,
        "states": states,
    }


def main() -> None:
    """Writes the table beside the grammar; the same grammar gives the same bytes."""
    text = json.dumps(make_table(), separators=(",", ":"), sort_keys=True)
    TABLE_PATH.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
