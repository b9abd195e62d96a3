"""Operators of libpg_query's trees -> trees that the compiler knows.

What both dialects have is the same node; every other operator is a call by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from emulator import errors
from emulator.sql.postgres.nodes import Node

OPERATOR = "OPERATOR "
"""What the names of operators begin with that are calls."""

COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
LIKES = {"~~": "OPERATOR LIKE", "~~*": "OPERATOR ILIKE"}


class Operands(Protocol):
    """Makes the trees of operands."""

    def expression(self, node: Node) -> exp.Expr:
        """One of them."""

    def expressions(self, nodes: list[Node]) -> list[exp.Expr]:
        """Several."""


def read_sides(trees: Operands, node: Node) -> tuple[exp.Expr, exp.Expr]:
    """Both operands."""
    return trees.expression(node.node("lexpr")), trees.expression(node.node("rexpr"))


def kind_op(trees: Operands, node: Node, name: str) -> exp.Expr:
    """An operator by its sign, with one operand or two."""
    if node.get("lexpr") is None:
        operand = trees.expression(node.node("rexpr"))
        if name == "-" and isinstance(operand, exp.Literal) and not operand.is_string:
            return exp.Neg(this=operand)
        return call(OPERATOR + "unary " + name, operand)
    left, right = read_sides(trees, node)
    if name in COMPARISONS:
        return COMPARISONS[name](this=left, expression=right)
    if name.removeprefix("!") in LIKES:
        test = call(LIKES[name.removeprefix("!")], left, right)
        return exp.Not(this=test) if name.startswith("!") else test
    return call(OPERATOR + name, left, right)


def kind_op_any(trees: Operands, node: Node, name: str) -> exp.Expr:
    """x = ANY (array), and the other comparisons."""
    left, right = read_sides(trees, node)
    if name != "=":
        return quantified("ANY", name, left, right)
    if isinstance(right, exp.Array) and not has_query(right):
        return exp.In(this=left, expressions=right.expressions)
    return exp.In(this=left, unnest=exp.Unnest(expressions=[right]))


def kind_op_all(trees: Operands, node: Node, name: str) -> exp.Expr:
    """x <> ALL (array), and the other comparisons."""
    left, right = read_sides(trees, node)
    if name != "<>":
        return quantified("ALL", name, left, right)
    if isinstance(right, exp.Array) and not has_query(right):
        return exp.Not(this=exp.In(this=left, expressions=right.expressions))
    return exp.Not(this=exp.In(this=left, unnest=exp.Unnest(expressions=[right])))


def quantified(word: str, sign: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A comparison with ANY or ALL that both dialects do not share."""
    if sign not in COMPARISONS:
        raise errors.unimplemented(f"{sign} {word} (array)")
    return call(f"{word} {sign}", left, right)


def kind_distinct(trees: Operands, node: Node, name: str) -> exp.Expr:
    """IS DISTINCT FROM."""
    return call("IS DISTINCT FROM", *read_sides(trees, node))


def kind_not_distinct(trees: Operands, node: Node, name: str) -> exp.Expr:
    """IS NOT DISTINCT FROM."""
    return call("IS NOT DISTINCT FROM", *read_sides(trees, node))


def kind_nullif(trees: Operands, node: Node, name: str) -> exp.Expr:
    """NULLIF."""
    return call("NULLIF", *read_sides(trees, node))


def kind_in(trees: Operands, node: Node, name: str) -> exp.Expr:
    """IN and NOT IN of a list."""
    items = node.node("rexpr")
    test = exp.In(
        this=trees.expression(node.node("lexpr")),
        expressions=trees.expressions(items.nodes("items")),
    )
    return test if name == "=" else exp.Not(this=test)


def kind_like(trees: Operands, node: Node, name: str) -> exp.Expr:
    """LIKE and ILIKE, or NOT."""
    test = call(LIKES[name.removeprefix("!")], *read_sides(trees, node))
    return exp.Not(this=test) if name.startswith("!") else test


def kind_between(trees: Operands, node: Node, name: str) -> exp.Expr:
    """BETWEEN."""
    low, high = node.node("rexpr").nodes("items")
    return exp.Between(
        this=trees.expression(node.node("lexpr")),
        low=trees.expression(low),
        high=trees.expression(high),
    )


def kind_not_between(trees: Operands, node: Node, name: str) -> exp.Expr:
    """NOT BETWEEN."""
    return exp.Not(this=kind_between(trees, node, name))


KINDS: dict[str, Callable[[Operands, Node, str], exp.Expr]] = {
    "AEXPR_OP": kind_op,
    "AEXPR_OP_ANY": kind_op_any,
    "AEXPR_OP_ALL": kind_op_all,
    "AEXPR_DISTINCT": kind_distinct,
    "AEXPR_NOT_DISTINCT": kind_not_distinct,
    "AEXPR_NULLIF": kind_nullif,
    "AEXPR_IN": kind_in,
    "AEXPR_LIKE": kind_like,
    "AEXPR_ILIKE": kind_like,
    "AEXPR_BETWEEN": kind_between,
    "AEXPR_NOT_BETWEEN": kind_not_between,
}
"""By the kind of an A_Expr."""


def has_query(node: exp.Array) -> bool:
    """Whether an array is that of a query."""
    return len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query)


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A function, or an operator, by its name."""
    return exp.Anonymous(this=name, expressions=list(arguments))
