"""FROM: tables, arrays, subqueries and joins."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.googlesql.call_trees import argument
from emulator.sql.googlesql.hint_trees import read_hints
from emulator.sql.googlesql.trees import (
    Trees,
    alias_of,
    column,
    identifier,
    is_plain,
    make_all,
    names_of,
    table,
    unread,
)
from emulator.sql.grammar.nodes import Node, Tree
from emulator.sql.parsed import HINTS

OFFSET = "offset"
"""What WITH OFFSET calls its column by itself."""
SIDES = ("LEFT", "RIGHT", "FULL")


def make_from(trees: Trees, query: exp.Expr, clause: Node) -> None:
    """Gives a query its FROM clause."""
    first, joins = make_joined(trees, clause.get("from_items"))
    query.set("from_", exp.From(this=first))
    query.set("joins", joins or None)


def make_joined(trees: Trees, tree: Tree) -> tuple[exp.Expr, list[exp.Join]]:
    """The first of some relations, and the joins of the others, from left to right."""
    links: list[Node] = []
    while isinstance(tree, Node) and tree.rule in {"from_items", "join"} and len(tree.parts) > 1:
        links.append(tree)
        tree = tree.parts[0][1]
    if isinstance(tree, Node) and tree.rule in {"from_items", "join"}:
        tree = tree.parts[0][1]
    joins: list[exp.Join] = []
    for link in reversed(links):
        joins.append(make_join(trees, link))
        for condition in list_conditions(link):
            close_join(trees, joins, condition)
    return make_relation(trees, tree), joins


def make_join(trees: Trees, link: Node) -> exp.Join:
    """A join without its conditions. A comma is a cross join."""
    words = {name for name, _ in link.parts[1:]}
    is_join = "JOIN" in words
    tree = next(part for part in reversed(link.parts) if part[0] != "join_conditions")[1]
    made = exp.Join(this=make_relation(trees, tree))
    if not is_join or "CROSS" in words:
        made.set("kind", "CROSS")
    made.set("side", next((side for side in SIDES if side in words), None))
    return made


def list_conditions(link: Node) -> list[Node]:
    """The conditions behind a join, from left to right."""
    conditions: list[Node] = []
    node = link.node("join_conditions")
    while node is not None:
        condition = node.node("join_condition")
        assert condition is not None
        conditions.insert(0, condition)
        node = node.node("join_conditions")
    return conditions


def close_join(trees: Trees, joins: list[exp.Join], condition: Node) -> None:
    """A condition is that of the last join that has none: what was joined after it is inside."""
    open_joins = [
        number
        for number, each in enumerate(joins)
        if not (each.kind or each.args.get("on") or each.args.get("using"))
    ]
    place = open_joins[-1]
    join, inner = joins[place], joins[place + 1 :]
    del joins[place + 1 :]
    if inner:
        join.this.set("joins", [*(join.this.args.get("joins") or ()), *inner])
    if condition.has("USING"):
        listed = condition.node("identifiers")
        assert listed is not None
        join.set("using", [identifier(each) for each in listed.list("identifier")])
    else:
        (test,) = make_all(trees, condition)
        join.set("on", test)


def make_relation(trees: Trees, tree: Tree) -> exp.Expr:
    """One relation of a FROM clause."""
    assert isinstance(tree, Node)
    if tree.rule == "table_path":
        return make_path(trees, tree)
    if tree.rule == "sampled":
        return make_sampled(trees, tree)
    if tree.rule == "_subquery":
        return trees.expression(tree)
    if tree.rule == "table_function":
        return make_table_function(trees, tree)
    if tree.rule != "_table":
        raise unread(f"{tree.rule.replace('_', ' ').upper()} in FROM")
    name, inside = tree.parts[0]
    if name == "LPAR":
        first, joins = make_joined(trees, tree.get("join"))
        first.set("joins", [*(first.args.get("joins") or ()), *joins])
        return exp.Subquery(this=first)
    made = make_relation(trees, inside)
    alias = alias_of(tree)
    if alias is not None:
        made.set("alias", exp.TableAlias(this=alias))
    return made


def make_path(trees: Trees, node: Node) -> exp.Expr:
    """A table, a path to an array, or UNNEST."""
    name, path = node.parts[0]
    alias = alias_of(node)
    offset = node.node("with_offset")
    if name == "unnest" or offset is not None:
        array = (
            make_unnest(trees, path) if name == "unnest" else exp.Unnest(expressions=[column(path)])
        )
        if alias is None and name != "unnest":
            alias = names_of(path)[-1]
        if alias is not None:
            array.set("alias", exp.TableAlias(columns=[alias]))
        if offset is not None:
            array.set("offset", alias_of(offset) or exp.to_identifier(OFFSET))
        return array
    made = table(path)
    if alias is not None:
        made.set("alias", exp.TableAlias(this=alias))
    hints = read_hints(node)
    if hints:
        made.meta[HINTS] = hints
    return made


def make_unnest(trees: Trees, tree: Tree) -> exp.Unnest:
    """UNNEST(array)"""
    assert isinstance(tree, Node)
    items = tree.list("unnest_item")
    if tree.has("named_argument") or any(
        isinstance(each, Node) and each.has("AS") for each in items
    ):
        raise unread("UNNEST of several arrays")
    arrays = [each for item in items if isinstance(item, Node) for each in make_all(trees, item)]
    return exp.Unnest(expressions=arrays)


def make_table_function(trees: Trees, node: Node) -> exp.Table:
    """f(...): a change stream's function, for example."""
    arguments: list[exp.Expr] = []
    for each in node.list("table_argument"):
        assert isinstance(each, Node)
        (name, _), *_ = each.parts
        if name != "argument":
            raise unread(f"{name} as an argument of a table function")
        arguments.append(argument(trees, each.get(name)))
    path = node.parts[0][1]
    called = exp.Anonymous(
        this=".".join(each.name for each in names_of(path)), expressions=arguments
    )
    return exp.Table(this=called)


def make_sampled(trees: Trees, node: Node) -> exp.Expr:
    """TABLESAMPLE"""
    made = make_relation(trees, node.parts[0][1])
    size = node.node("sample_size")
    assert size is not None
    count = size.parts[0][1]
    if size.has("PARTITION") or size.has("CAST"):
        raise unread("This size of TABLESAMPLE")
    unit = "percent" if size.has("PERCENT") else "size"
    method = exp.Var(this=identifier(node.get("identifier")).name)
    sample = exp.TableSample(method=method, **{unit: trees.expression(count)})
    suffix = node.node("sample_suffix")
    if suffix is not None:
        repeated = suffix.node("repeatable")
        assert repeated is not None
        sample.set("seed", trees.expression(repeated.parts[2][1]))
    made.set("sample", sample)
    return made


def make_target(node: Node) -> exp.Table:
    """The table that a DML statement writes."""
    path = node.get("update_path")
    if not is_plain(path):
        raise unread("An extension or an element as the target of DML")
    return name_table(path, node)


def name_table(path: Tree, node: Node) -> exp.Table:
    """A table with the alias and the hints of its node."""
    made = table(path)
    alias = alias_of(node)
    if alias is not None:
        made.set("alias", exp.TableAlias(this=alias))
    hints = read_hints(node)
    if hints:
        made.meta[HINTS] = hints
    return made
