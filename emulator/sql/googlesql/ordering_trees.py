"""ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.googlesql.trees import Trees, make, make_all
from emulator.sql.grammar.nodes import Node


def make_order(trees: Trees, node: Node) -> exp.Order:
    """ORDER BY"""
    return exp.Order(expressions=[make_key(trees, each) for each in node.nodes("ordering")])


def make_key(trees: Trees, node: Node) -> exp.Ordered:
    """A key of ORDER BY."""
    return direct_key(trees, make(trees, node), node)


def direct_key(trees: Trees, key: exp.Expr, node: Node | None) -> exp.Ordered:
    """A key with its collation and its direction: NULL comes first upwards, last downwards."""
    collate = node.node("collate") if node is not None else None
    if collate is not None:
        key = exp.Collate(this=key, expression=trees.expression(collate.parts[1][1]))
    down = node is not None and node.has("DESC")
    return exp.Ordered(this=key, desc=down, nulls_first=not down)


def make_limit(trees: Trees, query: exp.Expr, node: Node) -> None:
    """Gives a query its LIMIT and OFFSET."""
    count, *skipped = make_all(trees, node)
    query.set("limit", exp.Limit(expression=count))
    if skipped:
        query.set("offset", exp.Offset(expression=skipped[0]))
