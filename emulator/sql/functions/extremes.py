"""Aggregates with HAVING MAX | MIN: over the rows whose key is the largest or the smallest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulator.errors import out_of_range
from emulator.sql.functions import aggregates, intervals
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN

Finish = Callable[[list[Any]], object]


@dataclass(slots=True)
class ExtremeRows:
    """The values of the rows whose key is the furthest so far; a NULL key does not count.

    NaN is further than every number, and equals no key: then there is no such row.
    """

    finish: Finish
    nulls: bool
    largest: bool
    key: Any = None
    without_repeats: bool = False
    values: list[object] = field(default_factory=list)

    def step(self, value: object, key: Any, distinct: int) -> None:
        """A row."""
        self.without_repeats = bool(distinct)
        if key is None or self.key == "NaN" != key:
            return
        if key == "NaN" != self.key or self.key is None or self._is_further(key):
            self.key, self.values = key, []
        if key == self.key:
            self.values.append(value)

    def _is_further(self, key: Any) -> bool:
        return bool(self.key < key if self.largest else key < self.key)

    def final(self) -> object:
        """The result."""
        values = [] if self.key == "NaN" else self.values
        if self.without_repeats:
            values = list(dict.fromkeys(values))
        return self.finish([v for v in values if self.nulls or v is not None])


def sum_int64(values: list[Any]) -> int | None:
    """SUM of INT64."""
    if not values:
        return None
    total = sum(values)
    if not INT64_MIN <= total <= INT64_MAX:
        raise out_of_range("int64 overflow in SUM")
    return int(total)


FINISHED: dict[str, tuple[Finish, bool]] = {
    "count": (len, False),
    "sum": (sum_int64, False),
    "avg": (lambda values: sum(values) / len(values) if values else None, False),
    "min": (lambda values: min(values, default=None), False),
    "max": (lambda values: max(values, default=None), False),
    "any_value": (lambda values: values[0] if values else None, True),
    "agg_sum_float64": (aggregates.sum_float, False),
    "agg_avg_float64": (aggregates.average_float, False),
    "agg_sum_numeric": (aggregates.sum_numeric, False),
    "agg_avg_numeric": (aggregates.average_numeric, False),
    **aggregates.WINDOWED,
    **{name: (finish, False) for name, finish in intervals.AGGREGATES.items()},
}
"""Every aggregate as a function of its values, and whether NULL is one of them."""


def extreme_factory(finish: Finish, nulls: bool, largest: bool) -> Callable[[], ExtremeRows]:
    """Makes the state of one group."""
    return lambda: ExtremeRows(finish, nulls, largest)


AGGREGATES: dict[str, Callable[[], Any]] = {
    f"{word}_rows_{name}": extreme_factory(finish, nulls, word == "max")
    for name, (finish, nulls) in FINISHED.items()
    for word in ("max", "min")
}
