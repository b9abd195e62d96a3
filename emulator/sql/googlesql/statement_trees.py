"""Statements, queries and expressions of GoogleSQL as trees."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import count

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql import (
    call_trees,
    constructor_trees,
    dml_trees,
    literal_trees,
    operator_trees,
    query_trees,
)
from emulator.sql.googlesql.pipe_trees import Pipeline
from emulator.sql.googlesql.trees import Maker, Trees, read_hints
from emulator.sql.grammar.check import read
from emulator.sql.grammar.nodes import Leaf, Node, Tree
from emulator.sql.parsed import Parsed

MAKERS: dict[str, Maker] = {
    **literal_trees.MAKERS,
    **operator_trees.MAKERS,
    **call_trees.MAKERS,
    **constructor_trees.MAKERS,
}
STATEMENTS: dict[str, Callable[[Trees, Node], Parsed]] = {
    "insert": dml_trees.make_insert,
    "update": dml_trees.make_update,
    "delete": dml_trees.make_delete,
}


class StatementTrees:
    """Makes the trees of one statement."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def expression(self, tree: Tree) -> exp.Expr:
        """Any expression. Raises UNIMPLEMENTED, by its name, for what has no tree."""
        if isinstance(tree, Leaf) and tree.rule in literal_trees.LEAVES:
            return literal_trees.LEAVES[tree.rule](tree)
        maker = MAKERS.get(tree.rule)
        if maker is None or isinstance(tree, Leaf):
            name = tree.rule.strip("_").replace("_", " ").upper()
            raise errors.unimplemented(f"{name} in an expression")
        return maker(self, tree)

    def query(self, node: Node) -> exp.Expr:
        """The query in a node, without its parentheses."""
        inside = node.inner("query")
        piped = inside.node("piped")
        if piped is not None:
            return Pipeline(self, piped).make()
        return query_trees.make_query(self, inside)

    def hidden_name(self) -> str:
        """A name for a column that no statement can name otherwise."""
        return f"$pipe{next(self._numbers)}"


def read_statement(sql: str, type_names: Collection[str] = (), locks: bool = True) -> Parsed:
    """One query or DML statement.

    ``type_names`` are the types of the proto bundle; ``locks`` allows FOR UPDATE.

    Raises INVALID_ARGUMENT ("Syntax error: ... [at line:column]") for what GoogleSQL's parser
    refuses, UNIMPLEMENTED for what it takes and this server lacks.
    """
    tree = read(sql, "statement", type_names, locks)
    assert isinstance(tree, Node)
    trees = StatementTrees()
    hints = read_hints(tree)
    for name, node in tree.parts:
        make = STATEMENTS.get(name)
        if make is not None and isinstance(node, Node):
            parsed = make(trees, node)
            parsed.hints.update(hints)
            return parsed
    return Parsed(trees.query(tree), hints=hints)


def read_expression(sql: str, type_names: Collection[str] = ()) -> exp.Expr:
    """A scalar expression of a schema; as ``read_statement``."""
    return StatementTrees().expression(read(sql, "expression", type_names))
