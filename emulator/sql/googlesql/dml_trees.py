"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.query_trees import make_items
from emulator.sql.googlesql.source_trees import make_from, make_target
from emulator.sql.googlesql.trees import (
    Trees,
    add_where,
    column,
    identifier,
    is_plain,
    list_names,
)
from emulator.sql.grammar.nodes import Leaf, Node, Tree
from emulator.sql.parsed import ConflictClause, Parsed

ACTION = "ACTION"
"""What WITH ACTION calls its column by itself."""
DEFAULT = "DEFAULT"
NEW_ROW = "$target"
"""The table that ON CONFLICT DO UPDATE writes: that of the INSERT."""


def make_insert(trees: Trees, node: Node) -> Parsed:
    """INSERT"""
    target: exp.Expr = make_target(node)
    listed = node.node("column_list")
    if listed is not None:
        target = exp.Schema(this=target, expressions=list_names(listed))
    made = exp.Insert(this=target, expression=make_source(trees, node))
    mode = node.node("insert_mode")
    conflict = mode.parts[-1][0].lower() if mode is not None else ""
    if conflict == "replace":
        raise errors.unimplemented("INSERT OR REPLACE")
    clause = node.node("on_conflict")
    return finish(
        trees, node, made, conflict, make_conflict(trees, clause) if clause is not None else None
    )


def make_source(trees: Trees, node: Node) -> exp.Expr:
    """The rows of an INSERT."""
    rows = node.node("insert_rows")
    if rows is not None:
        return exp.Values(expressions=[make_row(trees, each) for each in rows.nodes("insert_row")])
    query = node.node("query")
    return trees.query(node) if query is not None else trees.expression(node.get("_subquery"))


def make_row(trees: Trees, node: Node) -> exp.Tuple:
    """(a, DEFAULT)"""
    return exp.Tuple(
        expressions=[make_value(trees, each) for each in node.trees("expression", DEFAULT)]
    )


def make_value(trees: Trees, tree: Tree) -> exp.Expr:
    """A value, or DEFAULT."""
    if isinstance(tree, Leaf) and tree.rule == DEFAULT:
        return exp.Var(this=DEFAULT)
    return trees.expression(tree)


def make_update(trees: Trees, node: Node) -> Parsed:
    """UPDATE"""
    made = exp.Update(this=make_target(node), expressions=make_assignments(trees, node))
    source = node.node("from_clause")
    if source is not None:
        make_from(trees, made, source)
    return finish(trees, node, made)


def make_delete(trees: Trees, node: Node) -> Parsed:
    """DELETE"""
    return finish(trees, node, exp.Delete(this=make_target(node)))


def make_assignments(trees: Trees, node: Node) -> list[exp.EQ]:
    """SET a = 1, b.c = DEFAULT"""
    made: list[exp.EQ] = []
    for each in node.inner("update_items").nodes("update_item"):
        (_, path), _, (_, value) = each.parts
        made.append(exp.EQ(this=assigned(path), expression=make_value(trees, value)))
    return made


def assigned(path: Tree) -> exp.Expr:
    """What SET names."""
    if not is_plain(path):
        raise errors.unimplemented("An extension or an element in SET")
    return column(path)


def finish(
    trees: Trees,
    node: Node,
    made: exp.Expr,
    conflict: str = "",
    on_conflict: ConflictClause | None = None,
) -> Parsed:
    """A statement with its WHERE, ASSERT_ROWS_MODIFIED and THEN RETURN."""
    add_where(trees, made, node)
    returned, action = None, None
    clause = node.node("returning")
    if clause is not None:
        returned = tuple(make_items(trees, clause))
        action = name_action(clause.node("returning_action"))
    return Parsed(
        made,
        conflict,
        returned,
        action=action,
        on_conflict=on_conflict,
        asserted_rows=count_asserted(node.node("assert_rows")),
    )


def name_action(node: Node | None) -> str | None:
    """The name of the column WITH ACTION."""
    if node is None:
        return None
    name = node.find("identifier")
    return ACTION if name is None else identifier(name).name


def count_asserted(node: Node | None) -> int | None:
    """The number of ASSERT_ROWS_MODIFIED."""
    if node is None:
        return None
    count = node.parts[-1][1]
    if not isinstance(count, Leaf) or not count.text.isdigit():
        raise errors.unimplemented("ASSERT_ROWS_MODIFIED with what is no number")
    return int(count.text)


def make_conflict(trees: Trees, node: Node) -> ConflictClause:
    """ON CONFLICT"""
    columns: tuple[str, ...] = ()
    constraint = ""
    target = node.node("conflict_target")
    if target is not None and target.has("CONSTRAINT"):
        constraint = identifier(target.get("identifier")).name
    elif target is not None:
        columns = tuple(each.name for each in list_names(target.inner("column_list")))
    if node.has("NOTHING"):
        return ConflictClause(columns, constraint)
    made = exp.Update(
        this=exp.Table(this=exp.to_identifier(NEW_ROW)), expressions=make_assignments(trees, node)
    )
    add_where(trees, made, node)
    return ConflictClause(columns, constraint, made)
