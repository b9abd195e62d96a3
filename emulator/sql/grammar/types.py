"""Which names of types there are in Spanner."""

from __future__ import annotations

from emulator import errors
from emulator.sql.grammar.outline import Outline

TYPES = {
    *("BOOL", "BOOLEAN", "BYTES", "DATE", "DECIMAL", "FLOAT32", "FLOAT64", "INT64", "INTERVAL"),
    *("JSON", "NUMERIC", "STRING", "TIMESTAMP", "TOKENLIST", "UUID"),
}
"""https://cloud.google.com/spanner/docs/reference/standard-sql/data-types; a name with dots is that
of a protocol buffer."""


def check_types(outline: Outline) -> None:
    """Raises INVALID_ARGUMENT for a type that Spanner does not have, such as VARCHAR."""
    for part in outline.find("type"):
        if part.rule.symbols[0] != "path":
            continue
        end = part.starts[1] if len(part.starts) > 1 else part.end
        first = outline.tokens[part.starts[0]]
        name = first.text.strip("`")
        if end - part.starts[0] == 1 and name.upper() not in TYPES:
            raise errors.invalid_argument(f"Type not found: {name}")
