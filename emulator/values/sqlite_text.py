"""Names and strings as SQLite text."""

from __future__ import annotations

TRUTH_VALUES = frozenset({"true", "false"})
ESCAPE = "\x7f"
"""What SQLite's name of a column has at its end where Spanner's is a truth value: SQLite gives such
a column of a subquery another name, whatever quotes it stands in."""


def quote_text(text: str) -> str:
    """A string as a SQLite literal."""
    if "\0" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as a SQLite identifier."""
    escape = ESCAPE if name.casefold() in TRUTH_VALUES else ""
    return '"' + name.replace('"', '""') + escape + '"'
