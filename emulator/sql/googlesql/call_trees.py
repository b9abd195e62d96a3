"""Calls of functions, the clauses inside them, and windows."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.ordering_trees import make_order
from emulator.sql.googlesql.trees import (
    Maker,
    Trees,
    column,
    identifier,
    make,
    make_all,
    names_of,
)
from emulator.sql.grammar.literals import read_name
from emulator.sql.grammar.nodes import Leaf, Node, Tree


def call(trees: Trees, node: Node) -> exp.Expr:
    """f(...), a.f(...), NET.f(...), SAFE.f(...)"""
    callee = node.parts[0][1]
    arguments = make_arguments(trees, node)
    made = name_call(trees, callee, arguments)
    over = node.node("over")
    if over is None:
        return made
    return make_window(trees, over.inner("window"), this=made, over="OVER")


def name_call(trees: Trees, callee: Tree, arguments: list[exp.Expr]) -> exp.Expr:
    """A call of the function that a path, or a word such as IF, names."""
    if isinstance(callee, Leaf):
        return call_named(read_name(callee.text), arguments)
    if callee.rule == "extended":
        raise errors.unimplemented("An extension as the name of a function")
    if callee.rule == "field":
        called = call_named(identifier(callee.get("identifier")).name, arguments)
        return exp.Dot(this=trees.expression(callee.parts[0][1]), expression=called)
    first, *names = names_of(callee)
    path = ".".join(each.name for each in names)
    if first.name.upper() == "NET":
        return exp.NetFunc(this=exp.Anonymous(this=path, expressions=arguments))
    if first.name.upper() != "SAFE":
        last = exp.Anonymous(this=names.pop().name, expressions=arguments)
        return exp.Dot.build([first, *names, last])
    if names[0].name.upper() == "NET" and names[1:]:
        path = path.partition(".")[2]
        return exp.SafeFunc(this=exp.NetFunc(this=exp.Anonymous(this=path, expressions=arguments)))
    return exp.SafeFunc(this=call_named(path, arguments))


def call_named(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A call by one name."""
    if name.upper() == "IF" and len(arguments) == 3:
        return exp.If(**dict(zip(("this", "true", "false"), arguments, strict=True)))
    return exp.Anonymous(this=name, expressions=arguments)


def make_arguments(trees: Trees, node: Node) -> list[exp.Expr]:
    """The arguments; the clauses behind them are wrapped around the last one."""
    if node.has("where"):
        raise errors.unimplemented("WHERE in an aggregate function")
    made: list[exp.Expr] = [exp.Star()] if node.has("STAR") else []
    made += [argument(trees, each) for each in node.nodes("argument")]
    if node.has("DISTINCT"):
        made = [exp.Distinct(expressions=made[:1]), *made[1:]] if made else [exp.Distinct()]
    if not made:
        return made
    made[-1] = wrap(trees, node, made[-1])
    return made


def wrap(trees: Trees, node: Node, made: exp.Expr) -> exp.Expr:
    """An argument with its IGNORE NULLS, HAVING MAX, ORDER BY and LIMIT."""
    nulls = node.node("null_handling")
    if nulls is not None:
        made = (exp.IgnoreNulls if nulls.has("IGNORE") else exp.RespectNulls)(this=made)
    extreme = node.node("having_extreme")
    if extreme is not None:
        key = make(trees, extreme)
        made = exp.HavingMax(this=made, expression=key, max=extreme.has("MAX") or None)
    order = node.node("order_by")
    if order is not None:
        ordered = make_order(trees, order)
        ordered.set("this", made)
        made = ordered
    limit = node.node("limit")
    if limit is not None:
        made = exp.Limit(this=made, expression=make(trees, limit))
        if limit.has("OFFSET"):
            raise errors.unimplemented("OFFSET in an aggregate function")
    return made


def argument(trees: Trees, node: Node) -> exp.Expr:
    """An argument: an expression, a lambda, a sequence, or one with a name."""
    name, first = node.parts[0]
    if name == "named_argument":
        given = argument(trees, Node(name, node.inner(name).parts[2:], first.start))
        word = identifier(node.inner(name).get("identifier")).name
        return exp.Kwarg(this=exp.Var(this=word), expression=given)
    if name == "lambda":
        return make_lambda(trees, node.inner(name))
    if name == "SEQUENCE":
        return column(node.get("path"))
    if name != "expression":
        raise errors.unimplemented(f"{name.replace('_', ' ').upper()} as an argument")
    return trees.expression(first)


def make_lambda(trees: Trees, node: Node) -> exp.Lambda:
    """e -> e + 1: in its body the arguments are names, not columns."""
    names = names_of(*(tree for _, tree in node.parts[:-2]))
    body = trees.expression(node.parts[-1][1])
    known = {each.name.casefold() for each in names}
    made = exp.Lambda(this=body, expressions=names)
    for each in list(body.find_all(exp.Column)):
        if each.parts[0].name.casefold() in known:
            each.replace(each.to_dot() if each.table else each.this)
    return made


def make_window(trees: Trees, tree: Node, **named: object) -> exp.Window:
    """A window, by its name or as it is written."""
    made = exp.Window(**named)
    base = tree.find("identifier")
    if base is not None:
        made.set("alias", identifier(base))
    partition = tree.node("partition_by")
    if partition is not None:
        made.set("partition_by", make_all(trees, partition))
    order = tree.node("order_by")
    if order is not None:
        made.set("order", make_order(trees, order))
    frame = tree.node("frame")
    if frame is not None:
        made.set("spec", make_frame(trees, frame))
    return made


def make_frame(trees: Trees, node: Node) -> exp.WindowSpec:
    """ROWS or RANGE"""
    made = exp.WindowSpec(kind=node.parts[0][0])
    for name, bound in zip(("start", "end"), node.nodes("frame_bound"), strict=False):
        (word, first), (side, _) = bound.parts
        made.set(name, "CURRENT ROW" if word == "CURRENT" else word)
        if word == "expression":
            made.set(name, trees.expression(first))
        if word != "CURRENT":
            made.set(f"{name}_side", side)
    return made


MAKERS: dict[str, Maker] = {"call": call}
