"""SQL as values: statements with their parameters, conditions, quoted names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ddl.render import row_alias
from ddl.schema import Type
from watcher.errors import ConfigurationError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

WireValue = str | bool | float | list[str] | None
"""A parameter as JSON carries it: INT64 and TIMESTAMP are strings, FLOAT64 a number or "NaN"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A query with the values and the types of its parameters. Picklable; loads no client."""

    sql: str
    params: Mapping[str, WireValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition that goes after WHERE, with the values and the types of its parameters."""

    sql: str
    params: Mapping[str, WireValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


def combine_conditions(conditions: Sequence[RowCondition]) -> RowCondition | None:
    """A condition for rows that satisfy every condition; None without conditions."""
    if not conditions:
        return None
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for condition in conditions:
        params |= condition.params
        types |= condition.types
    return RowCondition(" AND ".join(f"({c.sql})" for c in conditions), params, types)


def filter_statement(statement: Statement, condition: RowCondition | None) -> Statement:
    """The same query, limited to the rows that satisfy a condition."""
    if condition is None:
        return statement
    return Statement(
        f"SELECT * FROM ({statement.sql}) WHERE {condition.sql}",  # noqa: S608 (our own text)
        {**statement.params, **condition.params},
        {**statement.types, **condition.types},
    )


def union_statements(statements: Sequence[Statement]) -> Statement:
    """All rows of several queries. Their parameters must have different names."""
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for statement in statements:
        params |= statement.params
        types |= statement.types
    return Statement(" UNION ALL ".join(s.sql for s in statements), params, types)


def quote_name(name: str) -> str:
    """An identifier for GoogleSQL, with its named schema. Raises ConfigurationError."""
    parts = name.split(".")
    if not all(NAME.match(part) for part in parts):
        raise ConfigurationError(
            f"invalid name '{name}': Spanner allows a letter or underscore, followed by letters,"
            " digits and underscores, at most 128 in all"
        )
    return ".".join(f"`{part}`" for part in parts)


def render_table(name: str, columns: Iterable[str], index: str | None = None) -> str:
    """A table in FROM, UPDATE or DELETE, through an index if one is named.

    ``columns`` are those of the query: the table's name would hide one of them that has it.
    """
    return f"{quote_name(name)}{index_hint(index)}{row_alias(name, columns)}"


def index_hint(index: str | None) -> str:
    """The hint that forces an index; empty without one."""
    return f"@{{FORCE_INDEX={quote_name(index)}}}" if index is not None else ""
