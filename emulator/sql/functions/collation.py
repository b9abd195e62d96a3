"""COLLATE: the order of texts in a language, where it is known here.

Known are ASCII and Latin letters with accents; a text with anything else is refused rather than put
in a wrong place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from emulator.errors import out_of_range, unimplemented
from emulator.sql.functions.normal_forms import normal_form

NAME = re.compile(r"(?:und|[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?::(ci|cs))?\Z")
PUNCTUATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""ASCII in the order of the Unicode collation, before the digits."""


def check_collation(name: str) -> None:
    """Raises OUT_OF_RANGE for a name that is none."""
    if name not in {"unicode", "binary", ""} and NAME.match(name) is None:
        raise out_of_range(f"COLLATE has invalid collation name '{name}'")


def collation_key(value: str, name: str) -> str:
    """A text that sorts by code points as the value sorts in the collation."""
    check_collation(name)
    if name in {"unicode", "binary", ""}:
        return value
    letters, accents, cases = [], [], []
    for char in normal_form("NFD", value):
        if unicodedata.combining(char):
            accents.append(char)
            continue
        letters.append(primary_weight(char))
        accents.append("\x01")
        cases.append("2" if char.isupper() else "1")
    levels = ["".join(letters), "".join(accents)]
    if not name.endswith(":ci"):
        levels.append("".join(cases))
    return "\x00".join(levels)


def primary_weight(char: str) -> str:
    """The place of a character without accent and case."""
    if char in PUNCTUATION:
        return chr(0x10 + PUNCTUATION.index(char))
    if char.isascii() and char.isalnum():
        return chr(0x100 + ord(char.lower()))
    if char.isascii():
        return chr(0x08)
    raise unimplemented(f"ORDER BY ... COLLATE of a text with the character {char!r}")


FUNCTIONS: dict[str, Callable[..., object]] = {"fn_collation_key": collation_key}
