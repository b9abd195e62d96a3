"""Queries: SELECT, set operations, WITH."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.googlesql.call_trees import make_window
from emulator.sql.googlesql.ordering_trees import make_limit, make_order
from emulator.sql.googlesql.source_trees import make_from
from emulator.sql.googlesql.trees import (
    Trees,
    identifier,
    make,
    make_all,
    names_of,
    qualify,
)
from emulator.sql.grammar.nodes import Node, Tree

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
    """A query with its WITH, ORDER BY and LIMIT."""
    body = next(tree for name, tree in node.parts if name in BODIES)
    assert isinstance(body, Node)
    made = make_body(trees, body)
    with_clause = node.node("with_clause")
    if with_clause is not None:
        entries = with_clause.node("with_entries")
        assert entries is not None
        made.set("with_", exp.With(expressions=list_entries(trees, entries)))
    order = node.node("order_by")
    if order is not None:
        made.set("order", make_order(trees, order))
    limit = node.node("limit")
    if limit is not None:
        make_limit(trees, made, limit)
    return made


def list_entries(trees: Trees, node: Node) -> list[exp.CTE]:
    """The queries of a WITH clause."""
    entries: list[Node] = []
    pending: Node | None = node
    while pending is not None:
        entry = pending.node("with_entry")
        assert entry is not None
        entries.insert(0, entry)
        pending = pending.node("with_entries")
    return [make_entry(trees, each) for each in entries]


def make_entry(trees: Trees, node: Node) -> exp.CTE:
    """name AS (SELECT ...)"""
    inside = node.node("_subquery")
    assert inside is not None
    alias = exp.TableAlias(this=identifier(node.get("identifier")))
    return exp.CTE(this=trees.query(inside), alias=alias)


def make_body(trees: Trees, node: Node) -> exp.Expr:
    """A SELECT, a set operation, or a query in parentheses."""
    links: list[Node] = []
    while node.rule == "set_operation":
        links.append(node)
        first = node.parts[0][1]
        assert isinstance(first, Node)
        node = first
    made = make_select(trees, node) if node.rule == "select" else trees.expression(node)
    for link in reversed(links):
        operator, right = link.node("set_operator"), link.parts[-1][1]
        assert operator is not None
        assert isinstance(right, Node)
        kind = next(SETS[name] for name, _ in operator.parts if name in SETS)
        distinct = operator.has("DISTINCT")
        made = kind(this=made, expression=make_body(trees, right), distinct=distinct)
    return made


def make_select(trees: Trees, node: Node) -> exp.Select:
    """SELECT"""
    listed = node.node("select_list")
    assert listed is not None
    made = exp.Select(expressions=make_items(trees, listed))
    if node.has("DISTINCT"):
        made.set("distinct", exp.Distinct())
    kind = node.node("select_as")
    if kind is not None:
        made.set("kind", kind.parts[1][0])
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
    windows = node.node("window_clause")
    if windows is not None:
        made.set(
            "windows", [name_window(trees, each) for each in windows.list("window_definition")]
        )
    return made


def name_window(trees: Trees, tree: Tree) -> exp.Window:
    """name AS (...)"""
    assert isinstance(tree, Node)
    return make_window(trees, tree.get("window"), this=identifier(tree.get("identifier")))


def make_items(trees: Trees, node: Node) -> list[exp.Expr]:
    """The items of SELECT or THEN RETURN."""
    return [make_item(trees, each) for each in node.list("select_item")]


def make_item(trees: Trees, tree: Tree) -> exp.Expr:
    """An item: an expression, with a name or without, or what a star stands for."""
    assert isinstance(tree, Node)
    name, first = tree.parts[0]
    if name == "expression":
        made = trees.expression(first)
        alias = tree.find("identifier")
        return made if alias is None else exp.Alias(this=made, alias=identifier(alias))
    star = make_star(trees, tree)
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
        listed = left_out.node("identifiers")
        assert listed is not None
        names = [exp.Column(this=identifier(each)) for each in listed.list("identifier")]
        made.set("except_", names)
    renamed = modifiers.node("star_rename")
    if renamed is not None:
        items = [each for each in renamed.list("pipe_rename_item") if isinstance(each, Node)]
        made.set("rename", [rename_item(each) for each in items])
    replaced = modifiers.node("star_replace")
    if replaced is not None:
        items = [each for each in replaced.list("replace_item") if isinstance(each, Node)]
        made.set("replace", [replace_item(trees, each) for each in items])
    return made


def rename_item(node: Node) -> exp.Alias:
    """a AS b"""
    old, new = node.list("identifier")
    return exp.Alias(this=exp.Column(this=identifier(old)), alias=identifier(new))


def replace_item(trees: Trees, node: Node) -> exp.Alias:
    """x AS name"""
    return exp.Alias(this=make(trees, node), alias=identifier(node.get("identifier")))


def make_group(trees: Trees, node: Node) -> exp.Group:
    """GROUP BY"""
    if node.has("group_by_all"):
        return exp.Group(all=True)
    return exp.Group(
        expressions=[make_grouping(trees, each) for each in node.list("grouping_item")]
    )


def make_grouping(trees: Trees, tree: Tree) -> exp.Expr:
    """A key of GROUP BY, or several sets of keys."""
    assert isinstance(tree, Node)
    name, first = tree.parts[0]
    if name == "LPAR":
        return exp.Tuple()
    if name == "expression":
        return trees.expression(first)
    assert isinstance(first, Node)
    if name == "grouping_sets":
        sets = [make_grouping(trees, each) for each in first.list("grouping_set")]
        return exp.GroupingSets(expressions=sets)
    return (exp.Rollup if name == "rollup" else exp.Cube)(expressions=make_all(trees, first))
