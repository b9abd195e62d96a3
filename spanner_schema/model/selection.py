"""Which tables a user selects: by names and globs, without those that are excluded."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import (
    drop_default_schema,
    is_own_table,
    make_unknown_table_error,
    same_name,
    split_name,
)
from spanner_schema.model.schema import Schema

GLOB = frozenset("*?[")


def select_tables(
    schema: Schema, include: Sequence[str], exclude: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names of the tables, in the order of the schema, parents before children.

    Raises PlanError for a name that does not exist, and if no table is selected.
    """
    for pattern in include:
        if not is_glob(pattern) and schema.table(drop_default_schema(pattern)) is None:
            raise make_unknown_table_error(schema, pattern)
    names = tuple(
        table.name
        for table in schema.tables
        if is_selected(table.name, include) and not matches_any(table.name, exclude)
    )
    if not names:
        patterns = ", ".join(include)
        raise PlanError(f"no table matches {patterns}: use names or globs such as 'Sing*'")
    return names


def is_selected(name: str, include: Sequence[str]) -> bool:
    """True when a pattern selects a table; the product's own tables must be named."""
    if any(same_name(drop_default_schema(pattern), name) for pattern in include):
        return True
    return matches_any(name, include) and not is_own_table(name)


def is_glob(pattern: str) -> bool:
    """True for a pattern that can match several tables."""
    return not GLOB.isdisjoint(pattern)


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """True when one of the patterns fits the name of a table with its named schema, without regard
    to case. ``public.*`` fits the tables that are in none."""
    return any(matches(name, pattern) for pattern in patterns)


def matches(name: str, pattern: str) -> bool:
    """True when a pattern fits a table, as in ``matches_any``."""
    plain = drop_default_schema(pattern)
    if plain != pattern and split_name(name)[0]:
        return False
    return fnmatchcase(name.casefold(), plain.casefold())
