"""The operands of an expression, as texts: what a call or an operator is applied to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pgparse

TOKEN = re.compile(
    r"""'(?:''|[^'])*' | "[^"]*" | [(\[)\],] | :: | [\d.]+ | [A-Za-z_][\w.]* | [-+*/<>=~!@\#%^&|?]+
      | \S""",
    re.VERBOSE,
)
OPENING, CLOSING = "([", ")]"
WORDS = {"AND", "OR", "LIKE", "ILIKE", "NOT", "IS", "IN", "FROM", "AT", "BETWEEN"}


def list_operands(text: str) -> list[str]:
    """The operands of the outermost call or operator; none where an expression has no parts."""
    text = text.strip()
    if is_enclosed(text):
        return list_operands(text[1:-1])
    pieces = list(split_outside(text, is_operator))
    name, bracket, inside = text.partition("(")
    if len(pieces) == 1 and (casted := list(split_outside(text, "::".__eq__)))[1:]:
        pieces = ["::".join(casted[:-1])]
    elif len(pieces) == 1:
        is_call = bool(bracket) and text.endswith(")") and bool(re.fullmatch(r"\w*", name))
        pieces = list(split_outside(inside[:-1], ",".__eq__)) if is_call else []
    return [piece for piece in pieces if is_expression(piece)]


def is_enclosed(text: str) -> bool:
    """Whether one pair of parentheses is around all of it."""
    depth = 0
    for match in TOKEN.finditer(text):
        depth += (match[0] in OPENING) - (match[0] in CLOSING)
        if depth == 0:
            return text.startswith("(") and match.end() == len(text)
    return False


def split_outside(text: str, is_separator: Callable[[str], bool]) -> Iterator[str]:
    """The parts between separators that are in no parentheses."""
    depth, begin = 0, 0
    for match in TOKEN.finditer(text):
        if depth == 0 and is_separator(match[0]):
            yield text[begin : match.start()].strip()
            begin = match.end()
        depth += (match[0] in OPENING) - (match[0] in CLOSING)
    yield text[begin:].strip()


def is_operator(token: str) -> bool:
    """Whether a token stands between operands."""
    return token.upper() in WORDS or re.match(r"[-+*/<>=~!@#%^&|?]", token) is not None


def is_expression(text: str) -> bool:
    """Whether it can be asked alone: a type's name, or a part of a clause, cannot."""
    if not text or (re.fullmatch(r"[A-Za-z_][\w. ]*(\[\])?", text) and text.upper() != "NULL"):
        return False
    try:
        pgparse.parse(f"SELECT ({text})")
    except pgparse.PGQueryError:
        return False
    return True
