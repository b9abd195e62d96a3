"""The names of the product's own tables, which follow from the name of the table of positions."""

from __future__ import annotations

import re

from spanner_schema.model.names import (
    DEFAULT_SCHEMA,
    NAME_LENGTH_MAX,
    join_name,
    same_name,
    split_name,
)
from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError

POSITIONS = "Positions"
CONSUMERS, ERRORS, BACKFILLS = "Consumers", "ConsumerErrors", "Backfills"
CLEARED, MEMBERS, DIVISIONS, AUDIT = "Cleared", "Members", "Divisions", "Audit"
LONGEST = max(map(len, (CONSUMERS, ERRORS, BACKFILLS, CLEARED, MEMBERS, DIVISIONS, AUDIT)))
OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_positions_table(name: str, dialect: Dialect = Dialect.GOOGLESQL) -> None:
    """Raises ConfigurationError for a name that a table of positions, or a table that goes with it,
    cannot have in the dialect. Asks nothing of Spanner."""
    parts = name.split(".")
    if len(parts) > 2 or not all(map(OBJECT.fullmatch, parts)):
        raise ConfigurationError(
            f"invalid positions table '{name}': use TABLE or SCHEMA.TABLE without quotes; Spanner"
            " allows a letter, followed by letters, digits and underscores"
        )
    schema, last = split_name(name)
    if same_name(schema, DEFAULT_SCHEMA):
        raise ConfigurationError(
            f"invalid positions table '{name}': '{schema}' is the default schema, leave it out"
        )
    longest = max(len(last), len(remove_suffix(last)) + LONGEST)
    too_long = max(longest, len(schema)) - NAME_LENGTH_MAX[dialect]
    if too_long > 0:
        raise ConfigurationError(
            f"invalid positions table '{name}': it is {too_long} characters too long. It gives"
            f" its name to other tables ('...{ERRORS}' is the longest), and a name has at most"
            f" {NAME_LENGTH_MAX[dialect]} characters"
        )


def check_spelling(positions_table: str, actual: str) -> None:
    """Raises ConfigurationError where the table of positions is there in another spelling. Spanner
    ignores case; the names of the other tables follow from the spelling."""
    schema, last = split_name(positions_table)
    if last != actual:
        raise ConfigurationError(
            f"the positions table '{positions_table}' exists as '{join_name(schema, actual)}': use"
            " that spelling, which the other tables follow"
        )


def remove_suffix(name: str) -> str:
    """What the own tables have in common."""
    return name.removesuffix(POSITIONS)


def derive_name(positions_table: str, suffix: str) -> str:
    """An own table beside the table of positions, in the same named schema. Raises
    ConfigurationError."""
    check_positions_table(positions_table)
    schema, last = split_name(positions_table)
    return join_name(schema, remove_suffix(last) + suffix)


def consumers_table(positions_table: str) -> str:
    """The table of leases and states that belongs to a table of positions."""
    return derive_name(positions_table, CONSUMERS)


def errors_table(positions_table: str) -> str:
    """The table of the errors that consumers met."""
    return derive_name(positions_table, ERRORS)


def backfills_table(positions_table: str) -> str:
    """The table of backfills that are in progress."""
    return derive_name(positions_table, BACKFILLS)


def cleared_table(positions_table: str) -> str:
    """The table that says how far each watched table may have been cleared."""
    return derive_name(positions_table, CLEARED)


def members_table(positions_table: str) -> str:
    """The table of the instances that share consumers."""
    return derive_name(positions_table, MEMBERS)


def divisions_table(positions_table: str) -> str:
    """The table that says how the tables of shared consumers are divided."""
    return derive_name(positions_table, DIVISIONS)


def audit_table(positions_table: str) -> str:
    """The table of what operators did."""
    return derive_name(positions_table, AUDIT)
