"""Runs the parse table over tokens: which terminal a token is depends on what the parser takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from emulator.sql.grammar.nodes import Leaf, Node, Part, Tree
from emulator.sql.grammar.table import END, Climb, Form, Rule, Table
from emulator.sql.grammar.tokens import Token

ONE_PART = frozenset({Form.RENAMED, Form.PASSED})


@dataclass(slots=True)
class Parser:
    """The state of one parse. ``nodes`` are those that have ended, by their rules: the innermost
    first."""

    table: Table
    start: str
    nodes: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    stack: list[int] = field(default_factory=list)
    parts: list[Part | list[Part]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stack.append(self.table.starts[self.start])

    @property
    def tree(self) -> Tree:
        """What was parsed."""
        last = self.parts[-1]
        assert isinstance(last, tuple)
        return last[1]

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
                self.parts.append((terminal, Leaf(terminal, token, number)))
                return True
            rule = rules[-1 - action]
            if rule.form in ONE_PART:
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
        climb = self.table.climbs.get(key)
        if climb is None:
            state, name = self.stack[-1], ""
            while True:
                action = states[state].get(terminal, 0)
                rule = self.table.rules[-1 - action] if action < 0 else None
                if rule is None or rule.form not in ONE_PART:
                    break
                name = rule.origin if rule.form is Form.RENAMED else name
                state = states[below][rule.origin]
            climb = self.table.climbs[key] = state, name
        return climb

    def rename(self, name: str) -> None:
        """The last part has the name of another rule."""
        last = self.parts[-1]
        if isinstance(last, tuple):
            self.parts[-1] = (name, last[1])

    def reduce(self, rule: Rule, number: int) -> None:
        """Replaces the symbols of a rule by its origin, their parts by what its form says."""
        stack, parts = self.stack, self.parts
        first = len(parts) - rule.length
        joined = join_parts(parts[first:])
        del parts[first:], stack[len(stack) - rule.length :]
        stack.append(self.table.states[stack[-1]][rule.origin])
        if rule.form is Form.SPLICED:
            parts.append(joined)
            return
        node = Node(rule.origin, tuple(joined), joined[0][1].start if joined else number)
        self.nodes[rule.origin].append(node)
        parts.append((rule.origin, node))

    def list_expected(self) -> list[str]:
        """Every terminal that may come next."""
        return sorted(each for each in self.table.terminals if self.accepts(each))


def join_parts(parts: list[Part | list[Part]]) -> list[Part]:
    """Parts, and the parts of what is no node, in one row. The first row grows: a list of thousands
    is made of as many rows."""
    joined = parts[0] if parts and isinstance(parts[0], list) else []
    for each in parts[1:] if joined else parts:
        if isinstance(each, list):
            joined += each
        else:
            joined.append(each)
    return joined
