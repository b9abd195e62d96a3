"""Which tables are meant: names and globs, without those that are excluded."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ddl.errors import PlanError
from ddl.schema import Schema

GLOB = frozenset("*?[")
OURS = ("SpannerWatcher",)
"""Tables whose names begin so keep the product's own state: a glob never means them."""


def select_tables(
    schema: Schema, include: Sequence[str], exclude: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names of the tables, in the order of the schema, parents before children.

    Raises PlanError for a name that is not there, and when nothing is left.
    """
    for pattern in include:
        if GLOB.isdisjoint(pattern) and schema.table(pattern) is None:
            known = ", ".join(table.name for table in schema.tables) or "none"
            raise PlanError(f"there is no table {pattern}; tables of this schema: {known}")
    found = tuple(
        table.name
        for table in schema.tables
        if is_selected(table.name, include) and not matches_any(table.name, exclude)
    )
    if not found:
        raise PlanError(f"no table matches {', '.join(include)}")
    return found


def is_selected(name: str, include: Sequence[str]) -> bool:
    """True when a pattern means a table: our own ones must be named."""
    if any(pattern.casefold() == name.casefold() for pattern in include):
        return True
    return matches_any(name, include) and not name.rsplit(".", maxsplit=1)[-1].startswith(OURS)


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """True when one of the patterns fits, without regard to case."""
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)
