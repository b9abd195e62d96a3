"""Aggregates over a window: values come at its end and go at its beginning."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from emulator.errors import out_of_range
from emulator.sql.functions import intervals
from emulator.sql.functions.aggregates import WINDOWED
from emulator.sql.functions.numbers import INT64_MAX, Float, read_float, write_float
from emulator.values.forms import NUMERIC_CONTEXT, decimal_from_numeric, numeric_from_decimal

SMALLEST_BIT = 1074

Finish = Callable[[list[object]], object]
Factory = Callable[[], Any]


@dataclass(slots=True)
class WindowValues:
    """Any function of the values in the window."""

    finish: Finish
    nulls: bool
    values: deque[object] = field(default_factory=deque)

    def step(self, value: object) -> None:
        """A value enters the window."""
        if self.nulls or value is not None:
            self.values.append(value)

    def inverse(self, value: object) -> None:
        """The oldest value leaves the window."""
        if self.nulls or value is not None:
            self.values.popleft()

    def value(self) -> object:
        """The result now."""
        return self.finish(list(self.values))

    final = value


@dataclass(slots=True)
class NotNullValues:
    """FIRST_VALUE, LAST_VALUE and NTH_VALUE with IGNORE NULLS: ``position`` is from 0, or -1."""

    position: int
    values: deque[object] = field(default_factory=deque)

    def step(self, value: object, nth: object = None) -> None:
        """A value comes in; with NTH_VALUE its second argument says the position."""
        if self.position > 0:
            if not isinstance(nth, int) or nth < 1:
                raise out_of_range("The second argument of NTH_VALUE must be positive")
            self.position = nth
        if value is not None:
            self.values.append(value)

    def inverse(self, value: object, nth: object = None) -> None:
        """The oldest value leaves the window."""
        if value is not None:
            self.values.popleft()

    def value(self) -> object:
        """The result now; NULL where there are not so many values."""
        position = self.position - 1 if self.position > 0 else self.position
        return self.values[position] if position < len(self.values) and self.values else None

    final = value


@dataclass(slots=True)
class Int64Window:
    """SUM and AVG of INT64, exact at every size between."""

    mean: bool
    total: int = 0
    count: int = 0

    def step(self, value: object) -> None:
        """A value enters the window."""
        if isinstance(value, int):
            self.total, self.count = self.total + value, self.count + 1

    def inverse(self, value: object) -> None:
        """A value leaves the window."""
        if isinstance(value, int):
            self.total, self.count = self.total - value, self.count - 1

    def value(self) -> int | float | None:
        """The result now."""
        if not self.count:
            return None
        if self.mean:
            return self.total / self.count
        if not -INT64_MAX - 1 <= self.total <= INT64_MAX:
            raise out_of_range("int64 overflow in SUM")
        return self.total

    final = value


@dataclass(slots=True)
class Float64Window:
    """SUM and AVG of floats: a sum in the smallest bit of a double, so that it can go back."""

    mean: bool
    total: int = 0
    count: int = 0
    special: list[float] = field(default_factory=list)

    def step(self, value: Any) -> None:
        """A value enters the window."""
        if value is not None:
            self._add(read_float(value), 1)

    def inverse(self, value: Any) -> None:
        """A value leaves the window."""
        if value is not None:
            self._add(read_float(value), -1)

    def _add(self, number: float, sign: int) -> None:
        self.count += sign
        if math.isfinite(number):
            over, under = number.as_integer_ratio()
            self.total += sign * (over << (SMALLEST_BIT + 1 - under.bit_length()))
        elif sign > 0:
            self.special.append(number)
        else:
            self.special.pop(0)

    def value(self) -> Float | None:
        """The result now."""
        if not self.count:
            return None
        if self.special:
            return write_float(sum(self.special))
        try:
            total = self.total / (1 << SMALLEST_BIT)
        except OverflowError as error:
            raise out_of_range("double overflow in SUM") from error
        return total / self.count if self.mean else total

    final = value


@dataclass(slots=True)
class NumericWindow:
    """SUM and AVG of NUMERIC."""

    mean: bool
    total: Decimal = Decimal(0)
    count: int = 0

    def step(self, value: object) -> None:
        """A value enters the window."""
        if value is not None:
            self.total = NUMERIC_CONTEXT.add(self.total, decimal_from_numeric(str(value)))
            self.count += 1

    def inverse(self, value: object) -> None:
        """A value leaves the window."""
        if value is not None:
            self.total = NUMERIC_CONTEXT.subtract(self.total, decimal_from_numeric(str(value)))
            self.count -= 1

    def value(self) -> str | None:
        """The result now."""
        if not self.count:
            return None
        total = NUMERIC_CONTEXT.divide(self.total, self.count) if self.mean else self.total
        try:
            return numeric_from_decimal(total)
        except ValueError as error:
            raise out_of_range("numeric overflow in SUM") from error

    final = value


def window_factory(finish: Finish, nulls: bool) -> Factory:
    """A factory of one window's values."""
    return lambda: WindowValues(finish, nulls)


WINDOW_AGGREGATES: dict[str, Factory] = {
    "win_first_value_not_null": lambda: NotNullValues(0),
    "win_last_value_not_null": lambda: NotNullValues(-1),
    "win_nth_value_not_null": lambda: NotNullValues(1),
    "win_sum_int64": lambda: Int64Window(mean=False),
    "win_avg_int64": lambda: Int64Window(mean=True),
    "win_sum_float64": lambda: Float64Window(mean=False),
    "win_avg_float64": lambda: Float64Window(mean=True),
    "win_sum_numeric": lambda: NumericWindow(mean=False),
    "win_avg_numeric": lambda: NumericWindow(mean=True),
    **{name: window_factory(*how) for name, how in WINDOWED.items()},
    **{name: window_factory(how, nulls=False) for name, how in intervals.AGGREGATES.items()},
}
