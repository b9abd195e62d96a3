"""The pattern of FORMAT: text and specifiers, and which types each specifier takes."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emulator.errors import out_of_range

SPECIFIER = re.compile(r"%([-+ #'0]*)(\*|[0-9]*)(\.(?:\*|[0-9]*))?(.)", re.DOTALL | re.ASCII)
OUTPUT_MAX = 1024 * 1024
"""Characters that FORMAT gives at most."""

DOUBLE_PRECISION_MAX = 1074
WHOLE = set("diuoxX")
FRACTIONAL = set("fFeEgG")
EXPECTED = {
    **dict.fromkeys("dioxX", ("integer", {"INT64"})),
    "u": ("UINT", set[str]()),
    **dict.fromkeys("fFeEgG", ("FLOAT64", {"FLOAT64", "FLOAT32", "NUMERIC"})),
    "s": ("STRING", {"STRING"}),
    **dict.fromkeys("pP", ("PROTO or JSON", {"JSON"})),
}
"""What the message calls the types of a specifier, and which they are; %t and %T take every one."""


@dataclass(frozen=True, slots=True)
class Specifier:
    """%[flags][width][.precision]letter; ``starred`` are those parts that arguments give."""

    flags: str
    width: int
    precision: int | None
    letter: str
    starred: tuple[str, ...] = ()


Piece = str | Specifier


@functools.lru_cache(maxsize=256)
def parse_pattern(pattern: str) -> tuple[Piece, ...]:
    """Text and specifiers in order; %% is text. Raises OUT_OF_RANGE."""
    if len(pattern) > OUTPUT_MAX:
        raise too_long()
    pieces: list[Piece] = []
    end = 0
    while (start := pattern.find("%", end)) >= 0:
        match = SPECIFIER.match(pattern, start)
        if match is None or (match[4] == "%" and match.group() != "%%"):
            raise out_of_range(f'Invalid FORMAT string: "{pattern}"')
        pieces.append(pattern[end:start])
        pieces.append("%" if match[4] == "%" else read_specifier(match, pattern))
        end = match.end()
    return (*pieces, pattern[end:])


def too_long() -> Exception:
    """The error of a result, or a part of it, that is too long."""
    return out_of_range(f"Output string too long while evaluating FORMAT; limit {OUTPUT_MAX}")


def read_specifier(match: re.Match[str], pattern: str) -> Specifier:
    """A specifier as it is written."""
    flags, width, point, letter = match.groups()
    if letter not in EXPECTED and letter not in "tT":
        raise out_of_range(
            f'Invalid format specifier character "{letter}" in FORMAT string: "{pattern}"'
        )
    starred = [
        name for name, text in (("width", width), ("precision", point)) if "*" in (text or "")
    ]
    precision = None if point is None or "*" in point else int(point[1:] or 0)
    if width.isdigit() and int(width) > OUTPUT_MAX:
        raise too_long()
    return Specifier(
        flags,
        int(width) if width.isdigit() else 0,
        check_precision(precision, letter),
        letter,
        tuple(starred),
    )


def check_precision(precision: int | None, letter: str) -> int | None:
    """The precision, if it is not too large for the specifier."""
    if precision is None or precision < 0:
        return None
    if letter in "gG":
        return min(precision, DOUBLE_PRECISION_MAX)
    most = DOUBLE_PRECISION_MAX if letter in FRACTIONAL else OUTPUT_MAX
    if precision > most:
        raise out_of_range(f"Precision value {precision} of FORMAT is too big: at most {most}")
    return precision


def check_types(pattern: str, types: Sequence[Any]) -> None:
    """Raises OUT_OF_RANGE unless the arguments' types are those that the pattern takes."""
    taken: list[str] = []
    for piece in parse_pattern(pattern):
        if isinstance(piece, Specifier):
            taken += ["i"] * len(piece.starred) + [piece.letter]
    for number, (letter, type_) in enumerate(zip(taken, types, strict=False), start=2):
        name, accepted = EXPECTED.get(letter, ("", None))
        if accepted is not None and (isinstance(type_, list) or type_ not in accepted):
            shown = type_[0] if isinstance(type_, list) else type_
            raise out_of_range(
                f"Invalid type for argument {number} to FORMAT; Expected {name}; Got {shown}"
            )
    if len(taken) != len(types):
        word = "few" if len(taken) > len(types) else "many"
        raise out_of_range(
            f'Too {word} arguments to FORMAT for pattern "{pattern}";'
            f" Expected {len(taken) + 1}; Got {len(types) + 1}"
        )
