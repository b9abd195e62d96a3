"""Between which values an INT64 expression is, as far as its text says it.

A poll asks for the shards that a table can have, by their list: a value that is missing there is a
row that is lost. So what is not understood has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.tokens import Token, TokenKind, tokenize

Tokens = Sequence[Token]
OPENING, CLOSING = ("(", "[", "CASE"), (")", "]", "END")
CHANGES = dict.fromkeys(OPENING, 1) | dict.fromkeys(CLOSING, -1)
SIGNS = ("+", "-", "*")
INTEGERS = ("INT64", "BIGINT", "INT8")
DEPTH_MAX = 30
DIGITS_MAX = 18


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value; ``least`` above ``greatest`` is NULL alone."""

    least: int
    greatest: int

    @property
    def empty(self) -> bool:
        """No value."""
        return self.least > self.greatest


NULL = Bounds(1, 0)


def find_bounds(expression: str) -> Bounds | None:
    """The bounds of an expression of either dialect; None where they do not follow from it."""
    dialects = (Dialect.GOOGLESQL, Dialect.POSTGRESQL)
    for dialect in reversed(dialects) if "::" in expression else dialects:
        try:
            tokens = list(tokenize(expression, dialect))[:-1]
        except DdlSyntaxError:
            continue
        return read(tokens, DEPTH_MAX)
    return None


def read(tokens: Tokens, depth: int) -> Bounds | None:
    """The bounds of a part of an expression."""
    if not tokens or depth == 0:
        return None
    if len(tokens) == 1:
        return read_literal(tokens[0])
    depths = list_depths(tokens)
    if tokens[0].text == "(" and is_enclosed(depths):
        return read(tokens[1:-1], depth - 1)
    outside = [at for at in list_outside(depths) if tokens[at].text in SIGNS]
    for signs in ("+-", "*"):
        indexes = [at for at in outside if tokens[at].text in signs and is_binary(tokens, at)]
        if indexes:
            left, right = tokens[: indexes[-1]], tokens[indexes[-1] + 1 :]
            return combine(tokens[indexes[-1]].text, read(left, depth - 1), read(right, depth - 1))
    if tokens[0].text == "-":
        return combine("-", Bounds(0, 0), read(tokens[1:], depth - 1))
    if tokens[-2].text == "::":
        return read_as(tokens[-1], tokens[:-2], depth - 1)
    if is_word(tokens[0], "CASE") and is_enclosed(depths):
        return unite(read(each, depth - 1) for each in list_branches(tokens[1:-1]))
    if tokens[1].text == "(" and is_enclosed(depths[1:]):
        function = FUNCTIONS.get(tokens[0].text.upper())
        return function(list(split(tokens[2:-1], ",")), depth - 1) if function else None
    return None


def read_literal(token: Token) -> Bounds | None:
    """A whole number, which PostgreSQL also writes in quotes, or NULL."""
    if is_word(token, "NULL"):
        return NULL
    text = token.text.strip("'") if token.kind is TokenKind.STRING else token.text
    if not (text.isascii() and text.isdigit()) or len(text) > DIGITS_MAX:
        return None
    return Bounds(int(text), int(text))


def combine(sign: str, left: Bounds | None, right: Bounds | None) -> Bounds | None:
    """The bounds of a sum, a difference or a product."""
    if left is None or right is None:
        return None
    if left.empty or right.empty:
        return NULL
    calculate: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
    }
    ends = product((left.least, left.greatest), (right.least, right.greatest))
    values = [calculate[sign](a, b) for a, b in ends]
    return Bounds(min(values), max(values))


def unite(parts: Iterable[Bounds | None]) -> Bounds | None:
    """The bounds of one of several expressions."""
    united = NULL
    for each in parts:
        if each is None:
            return None
        if united.empty or each.empty:
            united = each if united.empty else united
            continue
        united = Bounds(min(united.least, each.least), max(united.greatest, each.greatest))
    return united


# Functions, of the tokens of their arguments.


def read_modulo(arguments: Sequence[Tokens], depth: int) -> Bounds | None:
    """MOD(x, n): Spanner keeps the sign of x."""
    if len(arguments) != 2 or (modulus := read(arguments[1], depth)) is None:
        return None
    if modulus.least != modulus.greatest or modulus.least <= 0:
        return None
    most, inside = modulus.least - 1, read(arguments[0], depth)
    if inside is None:
        return Bounds(-most, most)
    if inside.empty or max(-inside.least, inside.greatest) <= most:
        return inside
    return Bounds(-most if inside.least < 0 else 0, most if inside.greatest > 0 else 0)


def read_absolute(arguments: Sequence[Tokens], depth: int) -> Bounds | None:
    """ABS(x)."""
    inside = read(arguments[0], depth) if len(arguments) == 1 else None
    if inside is None or inside.empty:
        return inside
    ends = (abs(inside.least), abs(inside.greatest))
    return Bounds(0 if inside.least <= 0 <= inside.greatest else min(ends), max(ends))


def read_choice(arguments: Sequence[Tokens], depth: int) -> Bounds | None:
    """COALESCE and IFNULL: one of the arguments."""
    return unite(read(each, depth) for each in arguments)


def read_condition(arguments: Sequence[Tokens], depth: int) -> Bounds | None:
    """IF(condition, one, other)."""
    return read_choice(arguments[1:], depth) if len(arguments) == 3 else None


def read_cast(arguments: Sequence[Tokens], depth: int) -> Bounds | None:
    """CAST(x AS INT64)."""
    if len(arguments) != 1 or len(arguments[0]) < 3:
        return None
    *value, word, name = arguments[0]
    return read_as(name, value, depth) if is_word(word, "AS") else None


def read_as(type_: Token, value: Tokens, depth: int) -> Bounds | None:
    """A value as a whole number: one that is none, as MOD of a NUMERIC may be, is rounded."""
    inside = read(value, depth) if is_word(type_, *INTEGERS) else None
    written = all(token.text in ("(", ")") or read_literal(token) for token in value)
    if inside is None or inside.empty or written or is_remainder_of_hash(value):
        return inside
    return Bounds(inside.least - 1, inside.greatest + 1)


def is_remainder_of_hash(value: Tokens) -> bool:
    """Whether a value is MOD(FARM_FINGERPRINT(...), n), a whole number."""
    depths = list_depths(value)
    if value and value[0].text == "(" and is_enclosed(depths):
        return is_remainder_of_hash(value[1:-1])
    if len(value) < 4 or not is_word(value[0], "MOD") or not is_enclosed(depths[1:]):
        return False
    hashed = next(split(value[2:-1], ","), ())
    start = next((n for n, token in enumerate(hashed) if token.text == "("), 0)
    schema = all(token.text.lower() in {"spanner", "."} for token in hashed[: start - 1])
    called = start > 0 and is_word(hashed[start - 1], "FARM_FINGERPRINT")
    return called and schema and is_enclosed(list_depths(hashed[start:]))


FUNCTIONS: dict[str, Callable[[Sequence[Tokens], int], Bounds | None]] = {
    "MOD": read_modulo,
    "ABS": read_absolute,
    "COALESCE": read_choice,
    "IFNULL": read_choice,
    "IF": read_condition,
    "CAST": read_cast,
}


# Tokens.


def is_word(token: Token, *words: str) -> bool:
    """Whether a token is one of some words."""
    return token.kind is TokenKind.WORD and token.text.upper() in words


def is_binary(tokens: Tokens, at: int) -> bool:
    """Whether a sign stands between two values, and is not that of a number."""
    if at == 0:
        return False
    before = tokens[at - 1]
    return before.kind is not TokenKind.SYMBOL or before.text in CLOSING


def list_depths(tokens: Tokens) -> list[int]:
    """How many parentheses, brackets and CASEs are open before each token, and at the end."""
    changes = (CHANGES.get(token.text.upper(), 0) for token in tokens)
    return list(accumulate(changes, initial=0))


def is_enclosed(depths: Sequence[int]) -> bool:
    """Whether what opens with the first token closes with the last one."""
    return len(depths) > 2 and depths[-1] == 0 and all(depth > 0 for depth in depths[1:-1])


def list_outside(depths: Sequence[int]) -> Iterator[int]:
    """The indexes of the tokens that are in no parentheses."""
    return (at for at, (before, after) in enumerate(pairwise(depths)) if before == after == 0)


def split(tokens: Tokens, text: str) -> Iterator[Tokens]:
    """The tokens between those of a text."""
    begin = 0
    for at in list_outside(list_depths(tokens)):
        if tokens[at].text == text:
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]


def list_branches(tokens: Tokens) -> Iterator[Tokens]:
    """The values of a CASE: what is behind each THEN and ELSE."""
    begin = None
    for at in list_outside(list_depths(tokens)):
        if is_word(tokens[at], "WHEN", "THEN", "ELSE"):
            if begin is not None:
                yield tokens[begin:at]
            begin = None if is_word(tokens[at], "WHEN") else at + 1
    if begin is not None:
        yield tokens[begin:]
