"""Names and strings as SQLite text."""

from __future__ import annotations


def quote_text(text: str) -> str:
    """A string as a SQLite literal."""
    if "\0" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as a SQLite identifier."""
    return '"' + name.replace('"', '""') + '"'
