"""The SQLSTATE of an error: what programs that speak PostgreSQL look at, not at its sentence.

Source: PostgreSQL's list of error codes.
"""

from __future__ import annotations

import re

SQLSTATES = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"column .* does not exist", "42703"),
        (r"column reference .* is ambiguous", "42702"),
        (r"(relation .* does not exist|missing FROM-clause entry)", "42P01"),
        (r"(function|operator).* does not exist", "42883"),
        (r"type .* does not exist", "42704"),
        (r"column .* must appear in the GROUP BY", "42803"),
        (r"cannot cast type", "42846"),
        (r"invalid input syntax", "22P02"),
        (r"(\[ERROR\] )?syntax error", "42601"),
    )
)
"""How sentences of PostgreSQL begin, and the code that it gives them."""


def find_sqlstate(message: str) -> str | None:
    """The code of an error of analysis, where PostgreSQL has one for it."""
    return next((code for begin, code in SQLSTATES if begin.match(message)), None)
