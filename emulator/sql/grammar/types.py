"""Which names of types there are in Spanner."""

from __future__ import annotations

from collections.abc import Collection

from emulator import errors
from emulator.sql.grammar.nodes import spell_path
from emulator.sql.grammar.outline import Outline

TYPES = {
    *("BOOL", "BOOLEAN", "BYTES", "DATE", "DECIMAL", "FLOAT32", "FLOAT64", "INT64", "INTERVAL"),
    *("JSON", "NUMERIC", "STRING", "TIMESTAMP", "TOKENLIST", "UUID"),
}
"""https://cloud.google.com/spanner/docs/reference/standard-sql/data-types; another name is that of
a message or an enum of the proto bundle."""


def check_types(outline: Outline, names: Collection[str]) -> None:
    """Raises INVALID_ARGUMENT for a type that Spanner does not have, such as VARCHAR, and that is
    not among the ``names`` of the proto bundle."""
    for node in outline.find("type"):
        path = node.find("path")
        name = spell_path(path) if path is not None else "INTERVAL"
        if name.upper() not in TYPES and name not in names:
            raise errors.invalid_argument(f"Type not found: {name}")
