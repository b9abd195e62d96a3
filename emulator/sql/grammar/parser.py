"""Runs the parse table over tokens: which terminal a token is depends on what the parser takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.sql.grammar.nodes import Leaf, Node, Part, Tree
from emulator.sql.grammar.table import END, Climb, Form, Rule, Table
from emulator.sql.grammar.tokens import Token

ONE_PART = frozenset({Form.RENAMED, Form.PASSED})


@dataclass(frozen=True, slots=True)
class Reduction:
    """A part of the statement: its rule, the tokens where its symbols start, the token after it."""

    rule: Rule
    starts: tuple[int, ...]
    end: int


@dataclass(slots=True)
class Parser:
    """The state of one parse.

    ``watched`` are the origins of the rules whose reductions are kept, in the order in which they
    end: the innermost first.
    """

    table: Table
    start: str
    watched: frozenset[str]
    reductions: list[Reduction] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    values: list[Part | tuple[Part, ...]] = field(default_factory=list)
    climbs: dict[tuple[int, int, str], Climb] = field(init=False)

    def __post_init__(self) -> None:
        self.stack.append(self.table.starts[self.start])
        self.climbs = self.table.climbs.setdefault(self.watched, {})

    @property
    def tree(self) -> Tree:
        """What was parsed."""
        tree = self.values[-1][1]
        assert isinstance(tree, Leaf | Node)
        return tree

    def accepts(self, terminal: str) -> bool:
        """Whether the terminal may come next; the state stays as it is."""
        states, rules = self.table.states, self.table.rules
        stack = self.stack
        kept = len(stack)
        pushed: list[int] = []
        while True:
            state = pushed[-1] if pushed else stack[kept - 1]
            action = states[state].get(terminal)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = rules[-1 - action]
            length = rule.length
            cut = min(length, len(pushed))
            if cut:
                del pushed[-cut:]
            kept -= length - cut
            below = pushed[-1] if pushed else stack[kept - 1]
            pushed.append(states[below][rule.origin])
            if terminal == END and pushed[-1] == self.table.ends[self.start] and kept == 1:
                return True

    def take(self, terminal: str, number: int, token: Token) -> bool:
        """Takes a token, the ``number``-th of the statement; False where it cannot stand here."""
        states, rules, stack = self.table.states, self.table.rules, self.stack
        end = self.table.ends[self.start] if terminal == END else -1
        while True:
            action = states[stack[-1]].get(terminal)
            if action is None:
                return False
            if action >= 0:
                stack.append(action)
                self.starts.append(number)
                self.values.append((terminal, Leaf(terminal, token)))
                return True
            rule = rules[-1 - action]
            if rule.form in ONE_PART and rule.origin not in self.watched:
                stack[-1], name = self.climb(terminal)
                if name:
                    self.rename(name)
            else:
                self.reduce(rule, number)
            if stack[-1] == end:
                return True

    def climb(self, terminal: str) -> Climb:
        """The reductions of one part to one part, such as a sum of one."""
        states, below = self.table.states, self.stack[-2]
        key = (below, self.stack[-1], terminal)
        climb = self.climbs.get(key)
        if climb is None:
            state, name = self.stack[-1], ""
            while True:
                action = states[state].get(terminal, 0)
                rule = self.table.rules[-1 - action] if action < 0 else None
                if rule is None or rule.form not in ONE_PART or rule.origin in self.watched:
                    break
                name = rule.origin if rule.form is Form.RENAMED else name
                state = states[below][rule.origin]
            climb = self.climbs[key] = state, name
        return climb

    def rename(self, name: str) -> None:
        """The last part has the name of another rule."""
        last = self.values[-1]
        if isinstance(last[0], str):
            self.values[-1] = (name, last[1])

    def reduce(self, rule: Rule, number: int) -> None:
        """Replaces the symbols of a rule by its origin."""
        length, stack, starts = rule.length, self.stack, self.starts
        if rule.origin in self.watched:
            children = tuple(starts[len(starts) - length :])
            self.reductions.append(Reduction(rule, children, number))
        self.join_parts(rule)
        if length > 1:
            del stack[-length:]
            del starts[1 - length :]
        elif length == 1:
            del stack[-1]
        else:
            starts.append(number)
        stack.append(self.table.states[stack[-1]][rule.origin])

    def join_parts(self, rule: Rule) -> None:
        """Makes what the rule's form says of the last parts."""
        if rule.form is Form.RENAMED:
            self.rename(rule.origin)
        if rule.form in ONE_PART:
            return
        values = self.values
        first = len(values) - rule.length
        parts: list[Part] = []
        for each in values[first:]:
            if each and isinstance(each[0], str):
                parts.append(each)
            else:
                parts += each
        del values[first:]
        joined = tuple(parts)
        values.append(
            joined if rule.form is Form.SPLICED else (rule.origin, Node(rule.origin, joined))
        )

    def list_expected(self) -> list[str]:
        """Every terminal that may come next."""
        return sorted(each for each in self.table.terminals if self.accepts(each))
