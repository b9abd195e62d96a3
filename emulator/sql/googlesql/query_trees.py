"""Queries: SELECT, set operations, WITH."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.googlesql.call_trees import make_window
from emulator.sql.googlesql.ordering_trees import make_limit, make_order
from emulator.sql.googlesql.source_trees import make_from
from emulator.sql.googlesql.trees import (
    Trees,
    identifier,
    list_names,
    make,
    make_all,
    names_of,
    qualify,
)
from emulator.sql.grammar.nodes import Node, Tree, list_links

SETS: dict[str, type[exp.SetOperation]] = {
    "UNION": exp.Union,
    "INTERSECT": exp.Intersect,
    "EXCEPT_SET": exp.Except,
}
BODIES = ("select", "set_operation", "_subquery")
CONDITIONS: dict[str, type[exp.Expr]] = {
    "where": exp.Where,
    "having": exp.Having,
    "qualify": exp.Qualify,
}


def make_query(trees: Trees, node: Node) -> exp.Expr:
    """A query in standard syntax, with its WITH, ORDER BY and LIMIT."""
    body = next(tree for name, tree in node.parts if name in BODIES)
    made = make_body(trees, body)
    add_with(trees, made, node)
    order = node.node("order_by")
    if order is not None:
        made.set("order", make_order(trees, order))
    limit = node.node("limit")
    if limit is not None:
        make_limit(trees, made, limit)
    return made


def add_with(trees: Trees, made: exp.Expr, node: Node) -> None:
    """Gives a query the WITH clause of its node."""
    clause = node.node("with_clause")
    if clause is None:
        return
    _, links = list_links(clause.inner("with_entries"), "with_entries")
    entries = [make_entry(trees, each.inner("with_entry")) for each in links]
    made.set("with_", exp.With(expressions=entries))


def make_entry(trees: Trees, node: Node) -> exp.CTE:
    """name AS (SELECT ...)"""
    alias = exp.TableAlias(this=identifier(node.get("identifier")))
    return exp.CTE(this=trees.query(node.inner("_subquery")), alias=alias)


def make_body(trees: Trees, tree: Tree) -> exp.Expr:
    """A SELECT, a set operation, or a query in parentheses."""
    first, links = list_links(tree, "set_operation")
    made = make_operand(trees, first)
    for link in links:
        right = make_operand(trees, link.parts[-1][1])
        made = combine(made, link.inner("set_operator"), right)
    return made


def make_operand(trees: Trees, tree: Tree) -> exp.Expr:
    """A SELECT, or a query in parentheses."""
    if isinstance(tree, Node) and tree.rule == "select":
        return make_select(trees, tree)
    return trees.expression(tree)


def combine(left: exp.Expr, operator: Node, right: exp.Expr) -> exp.SetOperation:
    """A set operation."""
    kind = next(SETS[name] for name, _ in operator.parts if name in SETS)
    return kind(this=left, expression=right, distinct=operator.has("DISTINCT"))


def make_select(trees: Trees, node: Node) -> exp.Select:
    """SELECT"""
    made = exp.Select(expressions=make_items(trees, node))
    modify_select(trees, made, node)
    source = node.node("from_clause")
    if source is not None:
        make_from(trees, made, source)
    for name, clause in CONDITIONS.items():
        condition = node.node(name)
        if condition is not None:
            made.set(name, clause(this=make(trees, condition)))
    group = node.node("group_by")
    if group is not None:
        made.set("group", make_group(trees, group))
    return made


def modify_select(trees: Trees, made: exp.Select, node: Node) -> None:
    """Gives a SELECT its DISTINCT, AS STRUCT and WINDOW."""
    if node.has("DISTINCT"):
        made.set("distinct", exp.Distinct())
    kind = node.node("select_as")
    if kind is not None:
        made.set("kind", kind.parts[1][0])
    windows = node.node("window_clause")
    if windows is not None:
        named = [name_window(trees, each) for each in windows.nodes("window_definition")]
        made.set("windows", named)


def name_window(trees: Trees, node: Node) -> exp.Window:
    """name AS (...)"""
    return make_window(trees, node.inner("window"), this=identifier(node.get("identifier")))


def make_items(trees: Trees, node: Node) -> list[exp.Expr]:
    """The items of the list of a SELECT or a THEN RETURN."""
    return [make_item(trees, each) for each in node.inner("select_list").nodes("select_item")]


def make_item(trees: Trees, node: Node) -> exp.Expr:
    """An item: an expression, with a name or without, or what a star stands for."""
    name, first = node.parts[0]
    if name == "expression":
        made = trees.expression(first)
        alias = node.find("identifier")
        return made if alias is None else exp.Alias(this=made, alias=identifier(alias))
    star = make_star(trees, node)
    if name == "star":
        return star
    assert isinstance(first, Node)
    owner_name, owner = first.parts[0]
    if owner_name != "path":
        return exp.Dot(this=trees.expression(owner), expression=star)
    return qualify([*names_of(owner), star])


def make_star(trees: Trees, node: Node) -> exp.Star:
    """* [EXCEPT (...)] [REPLACE (...)]"""
    made = exp.Star()
    modifiers = node.node("star_modifiers")
    if modifiers is None:
        return made
    left_out = modifiers.node("star_except")
    if left_out is not None:
        made.set("except_", [exp.Column(this=each) for each in list_names(left_out)])
    replaced = modifiers.node("star_replace")
    if replaced is not None:
        items = [replace_item(trees, each) for each in replaced.nodes("replace_item")]
        made.set("replace", items)
    return made


def replace_item(trees: Trees, node: Node) -> exp.Alias:
    """x AS name"""
    return exp.Alias(this=make(trees, node), alias=identifier(node.get("identifier")))


def make_group(trees: Trees, node: Node) -> exp.Group:
    """GROUP BY"""
    if node.has("group_by_all"):
        return exp.Group(all=True)
    return exp.Group(
        expressions=[make_grouping(trees, each) for each in node.nodes("grouping_item")]
    )


def make_grouping(trees: Trees, node: Node) -> exp.Expr:
    """A key of GROUP BY, or several sets of keys."""
    name, first = node.parts[0]
    if name == "LPAR":
        return exp.Tuple()
    if name == "expression":
        return trees.expression(first)
    assert isinstance(first, Node)
    if name == "grouping_sets":
        sets = [make_grouping(trees, each) for each in first.nodes("grouping_set")]
        return exp.GroupingSets(expressions=sets)
    return (exp.Rollup if name == "rollup" else exp.Cube)(expressions=make_all(trees, first))
