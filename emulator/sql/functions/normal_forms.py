"""Normal forms of Unicode, in time that is linear in the text."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
MARKS_MAX = 32
"""Marks in a row that Python's own function may sort: it takes the square of their number."""
PAIRS_OF_MARKS = frozenset("\u0344\u0f73\u0f75\u0f81")
"""Characters that are marks only when they are decomposed."""


def normal_form(form: Form, value: str) -> str:
    """A text in a normal form."""
    if not value.isascii():
        value = "".join(
            sort_marks(form, part) if marked else part
            for marked, part in ((m, "".join(chars)) for m, chars in groupby(value, is_mark))
        )
    return unicodedata.normalize(form, value)


def is_mark(char: str) -> bool:
    """Whether a character changes its place among others of its kind."""
    return unicodedata.combining(char) > 0 or char in PAIRS_OF_MARKS


def sort_marks(form: Form, marks: str) -> str:
    """Marks in the order of every normal form, where there are many of them."""
    if len(marks) <= MARKS_MAX:
        return marks
    apart: Form = "NFKD" if "K" in form else "NFD"
    decomposed = (part for mark in marks for part in unicodedata.normalize(apart, mark))
    return "".join(sorted(decomposed, key=unicodedata.combining))
