"""Operators, comparisons and conditions."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from emulator.sql.googlesql.source_trees import make_unnest
from emulator.sql.googlesql.trees import Maker, Trees, make_all
from emulator.sql.grammar.nodes import Leaf, Node, Tree, list_links
from emulator.sql.parsed import PLUS_FUNCTION

BINARY: dict[str, type[exp.Binary]] = {
    "OR": exp.Or,
    "AND": exp.And,
    "|": exp.BitwiseOr,
    "^": exp.BitwiseXor,
    "&": exp.BitwiseAnd,
    "<<": exp.BitwiseLeftShift,
    ">>": exp.BitwiseRightShift,
    "+": exp.Add,
    "-": exp.Sub,
    "||": exp.DPipe,
    "*": exp.Mul,
    "/": exp.Div,
}
CHAINS = frozenset(
    {
        *("_or", "_and", "_bit_or", "_bit_xor", "_bit_and", "_shift", "_sum"),
        *("_concatenation", "_product"),
    }
)
UNARY = {"MINUS": exp.Neg, "TILDE": exp.BitwiseNot}
COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
TESTED: dict[str, Callable[[], exp.Expr]] = {
    "NULL": exp.Null,
    "UNKNOWN": exp.Null,
    "TRUE": lambda: exp.Boolean(this=True),
    "FALSE": lambda: exp.Boolean(this=False),
}
QUANTIFIERS = {"ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}


def chain(trees: Trees, node: Node) -> exp.Expr:
    """a + b - c"""
    first, links = list_links(node, *CHAINS)
    made = trees.expression(first)
    for link in links:
        _, (_, operator), (_, right) = link.parts
        made = BINARY[text_of(operator)](this=made, expression=trees.expression(right))
    return made


def text_of(tree: Tree) -> str:
    """The text of a token, in capitals."""
    assert isinstance(tree, Leaf)
    return tree.text.upper()


def negation(trees: Trees, node: Node) -> exp.Expr:
    """NOT a"""
    return exp.Not(this=trees.expression(node.parts[1][1]))


def unary(trees: Trees, node: Node) -> exp.Expr:
    """-a, +a, ~a"""
    (operator, _), (_, operand) = node.parts
    made = trees.expression(operand)
    if operator == "PLUS":
        return exp.Anonymous(this=PLUS_FUNCTION, expressions=[made])
    return UNARY[operator](this=made)


def comparison(trees: Trees, node: Node) -> exp.Expr:
    """Two operands and what is between them; IN, LIKE, BETWEEN, IS."""
    (_, first), *rest = node.parts
    left = trees.expression(first)
    negated = any(name == "NOT" for name, _ in rest)
    words = [part for part in rest if part[0] != "NOT"]
    (word, second), *others = words
    if word == "in":
        made: exp.Expr = membership(trees, left, node.inner("in"))
    elif word == "BETWEEN":
        low, high = [trees.expression(tree) for name, tree in others if name != "AND"]
        made = exp.Between(this=left, low=low, high=high)
    elif word == "IS":
        return test(trees, left, others, negated)
    elif word == "LIKE":
        return exp.Like(this=left, expression=operand(trees, others), negate=negated or None)
    else:
        return COMPARISONS[text_of(second)](this=left, expression=operand(trees, others))
    return exp.Not(this=made) if negated else made


def test(trees: Trees, left: exp.Expr, others: list[tuple[str, Tree]], negated: bool) -> exp.Expr:
    """a IS [NOT] NULL, a IS [NOT] DISTINCT FROM b"""
    word = others[0][0]
    if word == "DISTINCT":
        kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
        return kind(this=left, expression=trees.expression(others[-1][1]))
    made = exp.Is(this=left, expression=TESTED[word]())
    return exp.Not(this=made) if negated else made


def operand(trees: Trees, others: list[tuple[str, Tree]]) -> exp.Expr:
    """What stands at the right: an expression, or a list with ANY, SOME or ALL."""
    (word, tree), *listed = others
    if word not in QUANTIFIERS:
        return trees.expression(tree)
    node = Node(word, tuple(listed), tree.start)
    expressions = make_all(trees, node)
    subquery = node.node("_subquery")
    inside: exp.Expr = exp.Tuple(expressions=expressions)
    if subquery is not None:
        inside = trees.expression(subquery)
    elif node.has("unnest"):
        inside = make_unnest(trees, node.inner("unnest"))
    return QUANTIFIERS[word](this=inside)


def membership(trees: Trees, left: exp.Expr, node: Node) -> exp.In:
    """IN and what follows."""
    subquery = node.node("_subquery")
    if subquery is not None:
        return exp.In(this=left, query=trees.expression(subquery))
    if node.has("unnest"):
        return exp.In(this=left, unnest=make_unnest(trees, node.inner("unnest")))
    return exp.In(this=left, expressions=make_all(trees, node))


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(CHAINS, chain),
    "_not": negation,
    "_unary": unary,
    "_comparison": comparison,
}
