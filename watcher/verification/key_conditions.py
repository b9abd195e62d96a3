"""Ranges of primary keys as conditions: of any type, with NULL and NaN, descending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ddl.schema import Type
from watcher.spanner.keys import Key
from watcher.spanner.sql import RowCondition, WireValue
from watcher.verification.key_order import KeyOrder

NAN_TEXT = "NaN"


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """Keys above ``after`` and at most ``upto``, in the JSON of Spanner's API; None: no bound."""

    after: Key | None = None
    upto: Key | None = None


@dataclass(slots=True)
class Bound:
    """A bound as parameters of a statement; ``suffix`` keeps those of two bounds apart."""

    order: KeyOrder
    key: Key
    suffix: str
    params: dict[str, WireValue] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def parameter(self, place: int) -> str:
        """The parameter of a part of the key."""
        name = f"{self.suffix}{place}"
        self.params[name] = self.key[place]
        self.types[name] = self.order.columns[place].type
        return f"@{name}"

    def is_nan(self, place: int) -> bool:
        """Whether a part of the key is NaN, which compares with nothing."""
        column = self.order.columns[place]
        return column.type.code.value.startswith("FLOAT") and self.key[place] == NAN_TEXT


Compare = Callable[[Bound, int], str]


def name_of(order: KeyOrder, place: int) -> str:
    """The quoted name of a column."""
    return order.sql.quote(order.columns[place].name)


def render_equal(bound: Bound, place: int) -> str:
    """The part of a row's key is that of the bound."""
    name = name_of(bound.order, place)
    if bound.key[place] is None:
        return f"{name} IS NULL"
    return (
        bound.order.sql.is_nan(name)
        if bound.is_nan(place)
        else f"{name} = {bound.parameter(place)}"
    )


def render_greater(bound: Bound, place: int) -> str:
    """It is greater. Spanner: NULL, then NaN, then numbers."""
    name = name_of(bound.order, place)
    if bound.key[place] is None:
        return f"{name} IS NOT NULL"
    if bound.is_nan(place):
        return f"NOT {bound.order.sql.is_nan(name)}"
    return f"{name} > {bound.parameter(place)}"


def render_less(bound: Bound, place: int) -> str:
    """It is less."""
    column = bound.order.columns[place]
    name = name_of(bound.order, place)
    if bound.key[place] is None:
        return "FALSE"
    if bound.is_nan(place):
        return f"{name} IS NULL"
    nan = (
        f" OR {bound.order.sql.is_nan(name)}" if column.type.code.value.startswith("FLOAT") else ""
    )
    return f"({name} < {bound.parameter(place)} OR {name} IS NULL{nan})"


def render_after(bound: Bound, place: int) -> str:
    """It comes after that of the bound."""
    descending = bound.order.columns[place].descending
    return (render_less if descending else render_greater)(bound, place)


def render_before(bound: Bound, place: int) -> str:
    """It comes before that of the bound."""
    descending = bound.order.columns[place].descending
    return (render_greater if descending else render_less)(bound, place)


def render_lexicographic(bound: Bound, compare: Compare) -> str:
    """The first part of a key that differs decides."""
    cases = []
    for place in range(len(bound.key)):
        equal = [render_equal(bound, each) for each in range(place)]
        cases.append(f"({' AND '.join([*equal, compare(bound, place)])})")
    return f"({' OR '.join(cases)})" if cases else "FALSE"


def render_interval(order: KeyOrder, interval: KeyInterval) -> RowCondition:
    """The condition of a range; TRUE without bounds."""
    conditions: list[str] = []
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    if interval.after is not None:
        after = Bound(order, interval.after, "after")
        conditions += [*seek(after), render_lexicographic(after, render_after)]
        params, types = params | after.params, types | after.types
    if interval.upto is not None:
        upto = Bound(order, interval.upto, "upto")
        last = " AND ".join(render_equal(upto, place) for place in range(len(upto.key)))
        conditions.append(f"({render_lexicographic(upto, render_before)} OR ({last}))")
        params, types = params | upto.params, types | upto.types
    return RowCondition(" AND ".join(conditions) or "TRUE", params, types)


def seek(after: Bound) -> list[str]:
    """What follows from the range for the first column alone, so that Spanner seeks to it: an OR
    would make it scan from the beginning."""
    column = after.order.columns[0]
    if column.descending or after.key[0] is None or after.is_nan(0):
        return []
    return [f"{name_of(after.order, 0)} >= {after.parameter(0)}"]
