"""Where in a statement something is, as GoogleSQL's messages tell it."""

from __future__ import annotations

from emulator.sql.grammar.literals import read_name
from emulator.sql.grammar.tokens import scan

WIDTH_MAX = 80
"""Characters of a line that a message repeats."""
NAMES_NO_COLUMN = {"AS", "@", "@@"}
"""What a name stands behind that is an alias or a parameter."""


def find_name(sql: str, path: str) -> int | None:
    """Where a well-formed statement first has a path: not in a literal or a comment, and not as an
    alias."""
    tokens, names = scan(sql), path.split(".")
    width = 2 * len(names) - 1
    for number in range(len(tokens) - width):
        words = tokens[number : number + width]
        behind = tokens[number - 1].text.upper() if number else ""
        named = [read_name(each.text) for each in words[::2]] == names
        if named and behind not in NAMES_NO_COLUMN and {w.text for w in words[1::2]} <= {"."}:
            return words[0].start
    return None


def mark_place(sql: str, offset: int) -> str:
    """The line and column of an offset, counted from 1, its line, and a mark under the place.

    Of a long line the part around the place is told.
    """
    before = sql[:offset].split("\n")
    number, column = len(before), len(before[-1]) + 1
    line, mark = cut_line(sql.split("\n")[number - 1], column)
    return f"[at {number}:{column}]\n{line}\n{'^':>{mark}}"


def cut_line(line: str, column: int) -> tuple[str, int]:
    """At most WIDTH_MAX characters of a line, and the column in them."""
    if len(line) <= WIDTH_MAX:
        return line, column
    start = max(0, column - 1 - WIDTH_MAX // 2) if column > WIDTH_MAX * 2 // 3 else 0
    head = "..." if start else ""
    part = head + line[start : start + WIDTH_MAX - len(head)]
    if start + WIDTH_MAX - len(head) < len(line):
        part = part[: WIDTH_MAX - 3] + "..."
    return part, column - start + len(head)
