"""SQL as values: statements with their parameters, and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spanner_schema.model.column_types import Type

WireValue = str | bool | float | list[str] | None
"""A parameter as JSON carries it: INT64 and TIMESTAMP are strings, FLOAT64 a number or "NaN"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A query with the values and the types of its parameters, which its text names ``@name`` in
    each dialect. Picklable; loads no client."""

    sql: str
    params: Mapping[str, WireValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition that goes after WHERE, with the values and the types of its parameters."""

    sql: str
    params: Mapping[str, WireValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


def all_of(conditions: Iterable[str]) -> str:
    """A condition that is true where every one of these is. Each has its parentheses: parsers
    disagree on what binds closer."""
    return " AND ".join(f"({each})" for each in conditions) or "TRUE"


def any_of(conditions: Iterable[str]) -> str:
    """A condition that is true where at least one of these is."""
    return " OR ".join(f"({each})" for each in conditions) or "FALSE"


def combine_conditions(conditions: Sequence[RowCondition]) -> RowCondition | None:
    """A condition for rows that satisfy every condition; None without conditions."""
    if not conditions:
        return None
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for condition in conditions:
        params |= condition.params
        types |= condition.types
    return RowCondition(all_of(each.sql for each in conditions), params, types)


def union_statements(statements: Sequence[Statement]) -> Statement:
    """All rows of several queries. Their parameters must have different names."""
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for statement in statements:
        params |= statement.params
        types |= statement.types
    return Statement(" UNION ALL ".join(s.sql for s in statements), params, types)
