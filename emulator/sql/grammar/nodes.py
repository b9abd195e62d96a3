"""The tree of a statement, as the grammar has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from emulator.sql.grammar.tokens import Token


class Leaf(NamedTuple):
    """A token, and the terminal that it is."""

    rule: str
    token: Token

    @property
    def text(self) -> str:
        """As written."""
        return self.token.text


class Node(NamedTuple):
    """A rule, and its parts in their order: each with the name that the rule has for it.

    A rule whose name begins with an underscore is no node: its parts stand in the node around it;
    but operators and what is in ``table.NODES`` are.
    """

    rule: str
    parts: tuple[Part, ...]

    def find(self, name: str) -> Tree | None:
        """The first part of this name."""
        for each, tree in self.parts:
            if each == name:
                return tree
        return None

    def node(self, name: str) -> Node | None:
        """As ``find``, where the part is never a token."""
        tree = self.find(name)
        return tree if isinstance(tree, Node) else None

    def get(self, name: str) -> Tree:
        """The first part of this name, which is there."""
        tree = self.find(name)
        if tree is None:
            raise KeyError(f"{self.rule} has no {name}")
        return tree

    def list(self, *names: str) -> list[Tree]:
        """The parts of these names."""
        return [tree for each, tree in self.parts if each in names]

    def has(self, name: str) -> bool:
        """Whether there is a part of this name."""
        return any(each == name for each, _ in self.parts)


Tree = Node | Leaf
Part = tuple[str, Tree]


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The tokens, from left to right."""
    pending: list[Tree] = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, Leaf):
            yield each
        else:
            pending += [part for _, part in reversed(each.parts)]
