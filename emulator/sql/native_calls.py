"""Calls that SQLite's own operators and functions answer, instead of a function in Python.

A call of Python costs a microsecond, and waits for the interpreter's lock when other queries run:
shards, and the hashes by which copies are compared, are computed for every row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

INT64_MOD = "int64_mod"
COLUMN = re.compile(r'"(?:[^"]|"")*+"(?:\."(?:[^"]|"")*+")?+')
"""A column, which costs nothing to name twice."""
CONCATENATED_MAX = 100
"""SQLite: an operator nests its operands, up to a depth of a thousand."""
SHIFTS = range(1, 64)


def render_call(function: str, arguments: Sequence[str]) -> str:
    """A call in SQLite's words."""
    native = NATIVE.get(function)
    written = native(*arguments) if native is not None else None
    return written or f"{function}({', '.join(arguments)})"


def divide_rest(value: str, divisor: str) -> str | None:
    """MOD by a written number, which cannot fail then."""
    return f"({value} % {divisor})" if divisor.isdecimal() and divisor != "0" else None


def concatenate(*values: str) -> str | None:
    """CONCAT of STRING: NULL where one is, as of ||."""
    return f"({' || '.join(values)})" if 1 < len(values) <= CONCATENATED_MAX else None


def shift_right(value: str, count: str) -> str | None:
    """>> by a written number; zeros come in, where SQLite repeats the sign."""
    if not count.isdecimal() or int(count) not in SHIFTS:
        return None
    return f"(({value} >> {count}) & {(1 << (64 - int(count))) - 1})"


def count_micros(value: str) -> str | None:
    """UNIX_MICROS of a column in the nine-digit form."""
    if not COLUMN.fullmatch(value):
        return None
    seconds = f"unixepoch(substr({value}, 1, 19))"
    return f"({seconds} * 1000000 + CAST(substr({value}, 21, 6) AS INTEGER))"


NATIVE: dict[str, Callable[..., str | None]] = {
    INT64_MOD: divide_rest,
    "fn_concat": concatenate,
    "fn_byte_length": lambda value: f"octet_length({value})",
    "fn_shift_right": shift_right,
    "fn_unix_micros": count_micros,
    "cast_int64_string": lambda value: f"CAST({value} AS TEXT)",
}
