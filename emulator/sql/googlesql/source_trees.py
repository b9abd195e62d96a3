"""FROM: tables, arrays, subqueries and joins."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.call_trees import argument
from emulator.sql.googlesql.trees import (
    Trees,
    alias_of,
    column,
    identifier,
    is_plain,
    list_names,
    make,
    make_all,
    names_of,
    read_hints,
    table,
)
from emulator.sql.grammar.nodes import Node, Tree, list_links, spell_path
from emulator.sql.grammar.rules import list_conditions
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
    first, links = list_links(tree, "from_items", "join")
    joins: list[exp.Join] = []
    for link in links:
        if len(link.parts) > 1:
            add_join(trees, joins, link)
    return make_relation(trees, first), joins


def add_join(trees: Trees, joins: list[exp.Join], link: Node) -> None:
    """Adds a join with its conditions. A comma is a cross join."""
    words = {name for name, _ in link.parts}
    tree = next(part for part in reversed(link.parts) if part[0] != "join_conditions")[1]
    made = exp.Join(this=make_relation(trees, tree))
    if "JOIN" not in words or "CROSS" in words:
        made.set("kind", "CROSS")
    made.set("side", next((side for side in SIDES if side in words), None))
    joins.append(made)
    for condition in list_conditions(link):
        close_join(trees, joins, condition)


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
        nest_joins(join.this, inner)
    if condition.has("USING"):
        join.set("using", list_names(condition))
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
        raise errors.unimplemented(f"{tree.rule.replace('_', ' ').upper()} in FROM")
    name, inside = tree.parts[0]
    if name == "LPAR":
        first, joins = make_joined(trees, tree.get("join"))
        nest_joins(first, joins)
        return exp.Subquery(this=first)
    made = make_relation(trees, inside)
    name_relation(made, tree)
    return made


def nest_joins(relation: exp.Expr, joins: list[exp.Join]) -> None:
    """Joins relations to one before it is joined to others."""
    relation.set("joins", [*(relation.args.get("joins") or ()), *joins])


def name_relation(made: exp.Expr, node: Node) -> None:
    """Gives a relation the alias of its node."""
    alias = alias_of(node)
    if alias is not None:
        made.set("alias", exp.TableAlias(this=alias))


def make_path(trees: Trees, node: Node) -> exp.Expr:
    """A table, a path to an array, or UNNEST."""
    path = node.find("path")
    offset = node.node("with_offset")
    if path is not None and offset is None:
        return name_table(path, node)
    alias = alias_of(node)
    if path is None:
        array = make_unnest(trees, node.inner("unnest"))
    else:
        array = exp.Unnest(expressions=[column(path)])
        alias = alias or names_of(path)[-1]
    if alias is not None:
        array.set("alias", exp.TableAlias(columns=[alias]))
    if offset is not None:
        array.set("offset", alias_of(offset) or exp.to_identifier(OFFSET))
    return array


def make_unnest(trees: Trees, node: Node) -> exp.Unnest:
    """UNNEST(array)"""
    items = node.nodes("unnest_item")
    if node.has("named_argument") or any(each.has("AS") for each in items):
        raise errors.unimplemented("UNNEST of several arrays")
    return exp.Unnest(expressions=[make(trees, each) for each in items])


def make_table_function(trees: Trees, node: Node) -> exp.Table:
    """f(...): a change stream's function, for example."""
    arguments: list[exp.Expr] = []
    for each in node.nodes("table_argument"):
        (name, _), *_ = each.parts
        if name != "argument":
            raise errors.unimplemented(f"{name} as an argument of a table function")
        arguments.append(argument(trees, each.inner(name)))
    path = node.parts[0][1]
    return exp.Table(this=exp.Anonymous(this=spell_path(path), expressions=arguments))


def make_sampled(trees: Trees, node: Node) -> exp.Expr:
    """A relation with TABLESAMPLE"""
    made = make_relation(trees, node.parts[0][1])
    made.set("sample", make_sample(trees, node))
    return made


def make_sample(trees: Trees, node: Node) -> exp.TableSample:
    """TABLESAMPLE"""
    size = node.inner("sample_size")
    if size.has("PARTITION") or size.has("CAST"):
        raise errors.unimplemented("This size of TABLESAMPLE")
    unit = "percent" if size.has("PERCENT") else "size"
    made = exp.TableSample(
        method=exp.Var(this=identifier(node.get("identifier")).name),
        **{unit: trees.expression(size.parts[0][1])},
    )
    suffix = node.node("sample_suffix")
    if suffix is not None:
        made.set("seed", trees.expression(suffix.inner("repeatable").parts[2][1]))
    return made


def make_target(node: Node) -> exp.Table:
    """The table that a DML statement writes."""
    path = node.get("update_path")
    if not is_plain(path):
        raise errors.unimplemented("An extension or an element as the target of DML")
    return name_table(path, node)


def name_table(path: Tree, node: Node) -> exp.Table:
    """A table with the alias and the hints of its node."""
    made = table(path)
    name_relation(made, node)
    hints = read_hints(node)
    if hints:
        made.meta[HINTS] = hints
    return made
