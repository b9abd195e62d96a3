"""Which names of types there are in Spanner."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from emulator import errors
from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.tokens import Token

TYPES = {
    *("BOOL", "BOOLEAN", "BYTES", "DATE", "DECIMAL", "FLOAT32", "FLOAT64", "INT64", "INTERVAL"),
    *("JSON", "NUMERIC", "STRING", "TIMESTAMP", "TOKENLIST", "UUID"),
}
"""https://cloud.google.com/spanner/docs/reference/standard-sql/data-types; another name is that of
a message or an enum of the proto bundle."""


def check_types(outline: Outline, names: Collection[str]) -> None:
    """Raises INVALID_ARGUMENT for a type that Spanner does not have, such as VARCHAR, and that is
    not among the ``names`` of the proto bundle."""
    for tokens in named_types(outline):
        name = spell_name(tokens)
        if name not in names:
            raise errors.invalid_argument(f"Type not found: {name}")


def named_types(outline: Outline) -> Iterator[tuple[Token, ...]]:
    """The names of types that are not Spanner's own."""
    for part in outline.find("type"):
        if part.rule.symbols[0] != "path":
            continue
        end = part.starts[1] if len(part.starts) > 1 else part.end
        tokens = outline.tokens[part.starts[0] : end]
        if len(tokens) > 1 or spell_name(tokens).upper() not in TYPES:
            yield tokens


def spell_name(tokens: Sequence[Token]) -> str:
    """A path without its backquotes."""
    return "".join(token.text.strip("`") for token in tokens)
