"""The parts of a query in pipe syntax: its operators, and what they name."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.parser import Reduction
from emulator.sql.grammar.tokens import Kind, Token

PIPED = "piped"
OPERATORS = {
    *("pipe_select", "pipe_extend", "pipe_set", "pipe_drop", "pipe_rename", "pipe_as"),
    *("pipe_where", "pipe_aggregate", "pipe_join", "pipe_order", "pipe_limit"),
    *("pipe_set_operation", "pipe_sample"),
}
END_ALIASES = {"pipe_select", "pipe_aggregate", "pipe_as", "pipe_set_operation"}
"""After these, nobody can name a table inside."""
WATCHED = OPERATORS | {
    *("select_list", "select_item", "star", "star_modifiers", "star_except", "select_as"),
    *("pipe_set_item", "pipe_rename_item", "pipe_aggregate_item", "pipe_group_item", "pipe_item"),
    *("pipe_and_order", "pipe_direction", "pipe_query", "set_operator"),
    *("alias", "table_path", "ordering", "with_clause"),
}
INDEXED = WATCHED | {PIPED}
WORDS = {Kind.WORD, Kind.QUOTED, Kind.NAME}
Reference = tuple[str, str]
"""A table inside and one of its columns, both in one case."""


class Parts:
    """The parts of a statement, by where they are: each look costs what it finds."""

    def __init__(self, outline: Outline) -> None:
        self._tokens = outline.tokens
        self._by_rule = defaultdict[str, list[Reduction]](list)
        self._operators = defaultdict[int, list[Reduction]](list)
        waiting = list[Reduction]()
        for part in outline.parts:
            if part.rule.origin not in INDEXED:
                continue
            self._by_rule[part.rule.origin].append(part)
            if part.rule.origin in OPERATORS:
                waiting.append(part)
            elif part.rule.origin == PIPED:
                while waiting and waiting[-1].starts[0] >= part.starts[0]:
                    self._operators[part.end].insert(0, waiting.pop())
        for listed in self._by_rule.values():
            listed.sort(key=lambda part: (part.starts[0], -part.end))
        self._starts = {
            name: [part.starts[0] for part in listed] for name, listed in self._by_rule.items()
        }

    def list_operators(self, pipeline: Reduction) -> list[Reduction]:
        """The operators of a query, in their order, without those of queries inside it."""
        return self._operators[pipeline.end]

    def find(self, name: str, start: int, end: int) -> list[Reduction]:
        """The parts of a rule from a token on, up to the one before another; those around others
        come first."""
        starts = self._starts.get(name, [])
        among = slice(bisect_left(starts, start), bisect_left(starts, end))
        return [part for part in self._by_rule[name][among] if part.end <= end]

    def find_outer(self, name: str, start: int, end: int) -> list[Reduction]:
        """Those that are in no other one of them."""
        outer = list[Reduction]()
        for part in self.find(name, start, end):
            if not outer or part.starts[0] >= outer[-1].end:
                outer.append(part)
        return outer

    def find_own(self, operator: Reduction, name: str, nested: bool = False) -> list[Reduction]:
        """The parts of an operator, but for those of queries in pipe syntax inside it; ``nested``:
        with those that are in another one of them."""
        start, end = operator.starts[0], operator.end
        inner, own = iter(self.find_outer(PIPED, start, end)), list[Reduction]()
        query = next(inner, None)
        for part in self.find(name, start, end):
            while query is not None and query.end <= part.starts[0]:
                query = next(inner, None)
            if query is not None and part.starts[0] >= query.starts[0]:
                continue
            if nested or not own or part.starts[0] >= own[-1].end:
                own.append(part)
        return own

    def find_aliases(self, start: int, end: int) -> frozenset[str]:
        """The tables in a part of FROM that can be named from outside."""
        depth, depths = 0, {}
        for number in range(start, end):
            depth += {"(": 1, ")": -1}.get(self._tokens[number].text, 0)
            depths[number] = depth
        names = set()
        for part in self.find("table_path", start, end):
            if "alias" not in part.rule.symbols and part.rule.symbols[0] == "path":
                after = part.starts[1] if len(part.starts) > 1 else part.end
                names.add((after - 1, fold(self._tokens[after - 1])))
        for part in self.find("alias", start, end):
            names.add((part.end - 1, fold(self._tokens[part.end - 1])))
        return frozenset(name for number, name in names if depths[number] == 0)


def find_references(
    tokens: Sequence[Token], start: int, end: int
) -> Iterator[tuple[int, Reference]]:
    """Where tokens are ``t.a``, and not behind another dot."""
    for number in range(start, end - 2):
        first, dot, second = tokens[number : number + 3]
        behind = number > 0 and tokens[number - 1].text == "."
        if dot.text == "." and not behind and first.kind in WORDS and second.kind in WORDS:
            yield number, (fold(first), fold(second))


def fold(token: Token) -> str:
    """A name as names are compared."""
    return token.text.strip("`").casefold()


def list_references(
    tokens: Sequence[Token], operators: Sequence[Reduction], aliases: Iterable[str]
) -> list[Reference]:
    """What operators say of tables inside, while they can be named."""
    known, found = set(aliases), dict[Reference, None]()
    for operator in operators:
        for _, reference in find_references(tokens, operator.starts[0], operator.end):
            if reference[0] in known:
                found[reference] = None
        if operator.rule.origin in END_ALIASES:
            break
    return list(found)
