"""Where in a statement something is, as GoogleSQL's messages tell it."""

from __future__ import annotations


def mark_place(sql: str, offset: int) -> str:
    """The line and column of an offset, counted from 1, its line, and a mark under the place."""
    before = sql[:offset].split("\n")
    line = sql.split("\n")[len(before) - 1]
    column = len(before[-1]) + 1
    return f"[at {len(before)}:{column}]\n{line}\n{'^':>{column}}"
