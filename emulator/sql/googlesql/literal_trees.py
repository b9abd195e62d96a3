"""Literals, parameters and names."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from emulator.sql.googlesql.trees import Maker, Trees, column, identifier, make_all
from emulator.sql.googlesql.type_trees import named_type
from emulator.sql.grammar.literals import read_bytes, read_text
from emulator.sql.grammar.nodes import Leaf, Node, Tree, leaves
from emulator.sql.parsed import TYPED_LITERAL


def number(leaf: Leaf) -> exp.Expr:
    """An integer or a float."""
    text = leaf.text
    if text[:2] in {"0x", "0X"}:
        return exp.HexString(this=text[2:])
    return exp.Literal.number(f"0{text}" if text.startswith(".") else text)


def text_of(node: Tree) -> str:
    """The value of a string, in one literal or several."""
    return "".join(read_text(each.text) for each in leaves(node))


def string(trees: Trees, node: Node) -> exp.Expr:
    """'a' 'b'"""
    return exp.Literal.string(text_of(node))


def octets(trees: Trees, node: Node) -> exp.Expr:
    """b'a' b'b': each character of the tree is a byte."""
    value = b"".join(read_bytes(each.text) for each in leaves(node))
    return exp.ByteString(this=value.decode("latin-1"))


def typed_literal(trees: Trees, node: Node) -> exp.Expr:
    """DATE '...'"""
    (word, _), (_, text) = node.parts
    literal = exp.Literal.string(text_of(text))
    if word == "JSON":
        return exp.ParseJSON(this=literal)
    cast = exp.Cast(this=literal, to=named_type(word))
    cast.meta[TYPED_LITERAL] = True
    return cast


def parameter(trees: Trees, node: Node) -> exp.Expr:
    """@name"""
    return exp.Parameter(this=exp.Var(this=identifier(node.get("identifier")).name))


def parenthesized(trees: Trees, node: Node) -> exp.Expr:
    """(x)"""
    return exp.Paren(this=make_all(trees, node)[0])


def path(trees: Trees, node: Node) -> exp.Expr:
    """a.b.c"""
    return column(node)


LEAVES: dict[str, Callable[[Leaf], exp.Expr]] = {
    "INTEGER": number,
    "FLOAT": number,
    "NULL": lambda _: exp.Null(),
    "TRUE": lambda _: exp.Boolean(this=True),
    "FALSE": lambda _: exp.Boolean(this=False),
    "IDENTIFIER": column,
}
MAKERS: dict[str, Maker] = {
    "string": string,
    "bytes": octets,
    "typed_literal": typed_literal,
    "parameter": parameter,
    "parenthesized": parenthesized,
    "path": path,
}
