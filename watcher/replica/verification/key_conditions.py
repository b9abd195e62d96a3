"""Ranges of primary keys as conditions: of any type, with NULL and NaN, descending."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spanner_schema.model.column_types import Type
from watcher.model.value_types import is_float
from watcher.replica.keys.order import KeyOrder
from watcher.replica.keys.ranges import KeyInterval
from watcher.spanner.keys import Key
from watcher.spanner.sql import RowCondition, WireValue, all_of, any_of

NAN_TEXT = "NaN"
ALWAYS, NEVER = "TRUE", "FALSE"


@dataclass(slots=True)
class Bound:
    """A bound as parameters of a statement; ``suffix`` keeps those of two bounds apart."""

    order: KeyOrder
    key: Key
    suffix: str
    params: dict[str, WireValue] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def parameter(self, number: int) -> str:
        """The parameter of a part of the key."""
        name = f"{self.suffix}{number}"
        self.params[name] = self.key[number]
        self.types[name] = self.order.columns[number].type
        return f"@{name}"

    def is_nan(self, number: int) -> bool:
        """Whether a part of the key is NaN, which compares with nothing."""
        column = self.order.columns[number]
        return is_float(column.type) and self.key[number] == NAN_TEXT

    def is_plain(self, number: int) -> bool:
        """Whether a part of the key is neither NULL nor NaN."""
        return self.key[number] is not None and not self.is_nan(number)


Compare = Callable[[Bound, int], str]


def name_of(order: KeyOrder, number: int) -> str:
    """The quoted name of a column."""
    return order.sql.quote_column(order.columns[number].name)


def render_equal(bound: Bound, number: int) -> str:
    """The part of a row's key is that of the bound."""
    name = name_of(bound.order, number)
    if bound.key[number] is None:
        return f"{name} IS NULL"
    return (
        bound.order.sql.is_nan(name)
        if bound.is_nan(number)
        else f"{name} = {bound.parameter(number)}"
    )


def render_greater(bound: Bound, number: int) -> str:
    """It is greater. Spanner: NULL, then NaN, then numbers; in the PostgreSQL dialect NaN is last,
    and compares like that."""
    name = name_of(bound.order, number)
    if bound.key[number] is None:
        return f"{name} IS NOT NULL"
    if bound.is_nan(number):
        greatest = bound.order.sql.nan_is_greatest
        return NEVER if greatest else f"NOT ({bound.order.sql.is_nan(name)})"
    return f"{name} > {bound.parameter(number)}"


def list_less(bound: Bound, number: int) -> list[str]:
    """It is less: conditions of which one is true, from the greatest values to NULL."""
    name, column = name_of(bound.order, number), bound.order.columns[number]
    if bound.key[number] is None:
        return []
    sql = bound.order.sql
    null = [] if column.not_null else [f"{name} IS NULL"]
    if bound.is_nan(number):
        numbers = [f"NOT ({sql.is_nan(name)})"] if sql.nan_is_greatest else []
        return [*numbers, *null]
    nan = [sql.is_nan(name)] if is_float(column.type) and not sql.nan_is_greatest else []
    return [f"{name} < {bound.parameter(number)}", *nan, *null]


def render_less(bound: Bound, number: int) -> str:
    """It is less."""
    less = list_less(bound, number)
    return any_of(less)


def render_after(bound: Bound, number: int) -> str:
    """It comes after that of the bound."""
    descending = bound.order.columns[number].descending
    return (render_less if descending else render_greater)(bound, number)


def render_before(bound: Bound, number: int) -> str:
    """It comes before that of the bound."""
    descending = bound.order.columns[number].descending
    return (render_greater if descending else render_less)(bound, number)


def render_lexicographic(bound: Bound, compare: Compare, last: str) -> str:
    """The first part of a key that differs decides; ``last`` is for keys that are equal. Each part
    stands once or twice, not as often as there are parts before it: Spanner counts operators."""
    condition = last
    for number in reversed(range(len(bound.key))):
        rest = [all_of([render_equal(bound, number), condition])] if condition != NEVER else []
        condition = any_of([compare(bound, number), *rest])
    return condition


def render_interval(order: KeyOrder, interval: KeyInterval) -> RowCondition:
    """The condition of a range; TRUE without bounds."""
    after = Bound(order, interval.after, "after") if interval.after is not None else None
    upto = Bound(order, interval.upto, "upto") if interval.upto is not None else None
    conditions = seek(order, after, upto)
    if after is not None:
        conditions.append(render_lexicographic(after, render_after, NEVER))
    if upto is not None:
        conditions.append(render_lexicographic(upto, render_before, ALWAYS))
    params, types = join_parameters([after, upto])
    return RowCondition(all_of(conditions), params, types)


def list_branches(order: KeyOrder, interval: KeyInterval) -> list[RowCondition]:
    """Conditions of keys above the lower end of a range, without an OR, in the order of the keys:
    of each of them Spanner reads the first rows and no others. They keep to the upper end only as
    far as it can be sought."""
    if interval.after is None:
        return [render_interval(order, interval)]
    after = Bound(order, interval.after, "after")
    upto = Bound(order, interval.upto, "upto") if interval.upto is not None else None
    ends = seek(order, after, upto) if upto is not None else []
    branches: list[str] = []
    for number in reversed(range(len(after.key))):
        equal = [render_equal(after, each) for each in range(number)]
        descending = order.columns[number].descending
        nexts = list_less(after, number) if descending else [render_greater(after, number)]
        branches += [all_of([*ends, *equal, each]) for each in nexts]
    params, types = join_parameters([after, upto])
    return [RowCondition(each, params, types) for each in branches]


def join_parameters(
    bounds: Iterable[Bound | None],
) -> tuple[dict[str, WireValue], dict[str, Type]]:
    """The parameters of bounds, and their types."""
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for bound in bounds:
        if bound is not None:
            params, types = params | bound.params, types | bound.types
    return params, types


def seek(order: KeyOrder, after: Bound | None, upto: Bound | None) -> list[str]:
    """What follows from a range for single columns, so that Spanner seeks both of its ends: an OR
    would make it scan. Behind a column that has one value in the whole range, the next one too."""
    conditions = []
    for number, column in enumerate(order.columns):
        least, most = (upto, after) if column.descending else (after, upto)
        name = name_of(order, number)
        if least is not None and least.is_plain(number):
            if most is not None and most.key[number] == least.key[number]:
                conditions.append(f"{name} = {least.parameter(number)}")
                continue
            conditions.append(f"{name} >= {least.parameter(number)}")
        elif not column.not_null or is_float(column.type):
            break  # NULL or NaN, which are below all values, may be in the range
        if most is not None and most.is_plain(number):
            conditions.append(f"{name} <= {most.parameter(number)}")
        break
    return conditions
