"""Conditions on columns as Spanner's SQL: every name quoted, every value a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from google.cloud.spanner_v1 import Type

from watcher.spanner.stream import WireValue


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that goes after WHERE, and its parameters."""

    sql: str
    params: Mapping[str, WireValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


def all_of(conditions: Sequence[Condition]) -> Condition | None:
    """Rows that fulfil every condition; None for no condition."""
    if not conditions:
        return None
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for condition in conditions:
        params |= condition.params
        types |= condition.types
    return Condition(" AND ".join(f"({c.sql})" for c in conditions), params, types)
