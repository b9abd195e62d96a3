"""What the makers of trees share: how they call each other, names, hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sqlglot import exp

from emulator import errors
from emulator.sql.grammar.hints import read_entries
from emulator.sql.grammar.literals import read_name
from emulator.sql.grammar.nodes import Leaf, Node, Tree, leaves
from emulator.sql.parsed import Hints

COLUMN_PARTS = ("this", "table", "db", "catalog")
"""The arguments of a Column, from its last name to the first."""
TABLE_PARTS = ("this", "db", "catalog")


class Trees(Protocol):
    """Makes the trees of one statement."""

    def expression(self, tree: Tree) -> exp.Expr:
        """Any expression."""
        ...

    def query(self, node: Node) -> exp.Expr:
        """The query in a node, without its parentheses."""
        ...

    def hidden_name(self) -> str:
        """A name for a column that no statement can name otherwise."""
        ...


Maker = Callable[[Trees, Node], exp.Expr]


def make_all(trees: Trees, node: Node, *names: str) -> list[exp.Expr]:
    """The trees of the parts of these names, by default of the expressions."""
    return [trees.expression(each) for each in node.trees(*(names or ("expression",)))]


def make(trees: Trees, node: Node, name: str = "expression") -> exp.Expr:
    """The tree of a part that is there."""
    return trees.expression(node.get(name))


def names_of(*paths: Tree) -> list[exp.Identifier]:
    """The names of a path, or of several."""
    words = [each for each in leaves(*paths) if each.rule == "IDENTIFIER"]
    return [identifier(each) for each in words]


def identifier(leaf: Tree) -> exp.Identifier:
    """A name."""
    assert isinstance(leaf, Leaf)
    return exp.Identifier(this=read_name(leaf.text))


def column(path: Tree) -> exp.Expr:
    """A name, or a path: its first four names are a Column, the others fields of it."""
    return qualify(names_of(path))


def table(path: Tree) -> exp.Table:
    """A table, or a path to an array."""
    made = names_of(path)
    first, rest = made[: len(TABLE_PARTS)], made[len(TABLE_PARTS) :]
    parts: dict[str, exp.Expr] = dict(zip(TABLE_PARTS, reversed(first), strict=False))
    parts["this"] = add_fields(parts["this"], rest)
    return exp.Table(**parts)


def qualify(names: Sequence[exp.Expr]) -> exp.Expr:
    """A column by its names, of which the last may be a star."""
    first, rest = names[: len(COLUMN_PARTS)], names[len(COLUMN_PARTS) :]
    return add_fields(exp.Column(**dict(zip(COLUMN_PARTS, reversed(first), strict=False))), rest)


def add_fields(tree: exp.Expr, names: Iterable[exp.Expr]) -> exp.Expr:
    """x.a.b"""
    for each in names:
        tree = exp.Dot(this=tree, expression=each)
    return tree


def add_where(trees: Trees, made: exp.Expr, node: Node) -> None:
    """Gives a statement the WHERE clause of its node."""
    where = node.node("where")
    if where is not None:
        made.set("where", exp.Where(this=make(trees, where)))


def list_names(node: Node) -> list[exp.Identifier]:
    """The names in a part ``identifiers``: (a, b)"""
    return [identifier(each) for each in node.inner("identifiers").trees("identifier")]


def is_plain(path: Tree) -> bool:
    """Whether a path of an assignment has names only: no extension and no element."""
    tree: Tree | None = path
    while isinstance(tree, Node):
        if not {name for name, _ in tree.parts} <= {"update_path", "DOT", "identifier"}:
            return False
        tree = tree.find("update_path")
    return True


def alias_of(node: Node) -> exp.Identifier | None:
    """The name of a part ``alias``."""
    alias = node.node("alias")
    return identifier(alias.get("identifier")) if alias is not None else None


def read_hints(node: Node) -> Hints:
    """The hints of a node but those for other engines: names in capitals, values as written."""
    hint = node.node("hint")
    if hint is None:
        return {}
    if hint.has("INTEGER"):
        raise errors.unimplemented("A hint that is a number")
    return {".".join(names): value for names, value in read_entries(hint)}
