"""Names in Spanner's SQL: quoted, and forced as an index."""

from __future__ import annotations

import re

from watcher.errors import ConfigurationError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


def quoted(name: str) -> str:
    """An identifier for GoogleSQL, with its named schema. Raises ConfigurationError."""
    parts = name.split(".")
    if not all(NAME.match(part) for part in parts):
        raise ConfigurationError(f"'{name}' is not a name that Spanner allows")
    return ".".join(f"`{part}`" for part in parts)


def forced(index: str | None) -> str:
    """The hint that forces an index."""
    return f"@{{FORCE_INDEX={quoted(index)}}}" if index is not None else ""
