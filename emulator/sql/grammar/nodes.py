"""The tree of a statement, as the grammar has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from emulator.sql.grammar.literals import read_name
from emulator.sql.grammar.tokens import Token


class Leaf(NamedTuple):
    """A token, the terminal that it is, and its number in the statement."""

    rule: str
    token: Token
    start: int

    @property
    def text(self) -> str:
        """As written."""
        return self.token.text


class Node(NamedTuple):
    """A rule, and its parts in their order: each with the name that the rule has for it.

    ``start`` is the number of its first token. A rule whose name begins with an underscore is no
    node: its parts stand in the node around it; but operators and what is in ``table.NODES`` are.
    """

    rule: str
    parts: tuple[Part, ...]
    start: int

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

    def inner(self, name: str) -> Node:
        """As ``get``, where the part is never a token."""
        tree = self.get(name)
        if isinstance(tree, Leaf):
            raise KeyError(f"{name} of {self.rule} is a token")
        return tree

    def trees(self, *names: str) -> list[Tree]:
        """The parts of these names."""
        return [tree for each, tree in self.parts if each in names]

    def nodes(self, name: str) -> list[Node]:
        """The parts of this name that are no tokens."""
        return [tree for each, tree in self.parts if each == name and isinstance(tree, Node)]

    def has(self, name: str) -> bool:
        """Whether there is a part of this name."""
        return any(each == name for each, _ in self.parts)


Tree = Node | Leaf
Part = tuple[str, Tree]


def leaves(*trees: Tree) -> Iterator[Leaf]:
    """The tokens, from left to right."""
    pending = list(reversed(trees))
    while pending:
        each = pending.pop()
        if isinstance(each, Leaf):
            yield each
        else:
            pending += [part for _, part in reversed(each.parts)]


def spell_path(path: Tree) -> str:
    """A path, or a word, without backquotes."""
    return "".join(read_name(leaf.text) for leaf in leaves(path))


def list_links(tree: Tree, *rules: str) -> tuple[Tree, list[Node]]:
    """What a chain begins with, and its links from left to right.

    A chain, such as a + b - c, is a node of one of some rules whose first part is one, too. It may
    be longer than Python's stack is deep.
    """
    links: list[Node] = []
    while isinstance(tree, Node) and tree.rule in rules:
        links.append(tree)
        tree = tree.parts[0][1]
    return tree, links[::-1]
