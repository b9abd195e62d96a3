"""The fields and the precision of an interval: ``INTERVAL '1' DAY``, ``INTERVAL(3) '1.2345'``."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.sql.functions.intervals import HOUR, MINUTE, Interval

ALL_FIELDS = 0x7FFF
UNITS = {1 << 2: "y", 1 << 1: "mon", 1 << 3: "d", 1 << 10: "h", 1 << 11: "m", 1 << 12: "s"}
"""The bit of each field in what PostgreSQL's parser gives, the largest field first."""
MINUTE_TO_SECOND = 1 << 11 | 1 << 12
NANOS = {"h": HOUR, "m": MINUTE}
DIGITS_MAX = 6


@dataclass(frozen=True, slots=True)
class IntervalFields:
    """``mask`` has the bits of the fields, ``digits`` is how many follow the point of seconds."""

    mask: int = ALL_FIELDS
    digits: int = DIGITS_MAX

    @property
    def least(self) -> str:
        """The smallest field: the unit of a number without one, and of what is kept."""
        return [unit for bit, unit in UNITS.items() if bit & self.mask][-1]

    @property
    def clock_units(self) -> tuple[str, ...]:
        """What the parts of 04:05 are."""
        return ("m", "s") if self.mask == MINUTE_TO_SECOND else ("h", "m", "s")

    def trim(self, value: Interval) -> Interval:
        """An interval without what is smaller than its smallest field."""
        least, (months, days, nanos) = self.least, (value.months, value.days, value.nanos)
        if least == "y":
            return Interval(drop_rest(months, 12), 0, 0)
        if least == "mon":
            return Interval(months, 0, 0)
        if least == "d":
            return Interval(months, days, 0)
        if least in NANOS:
            return Interval(months, days, drop_rest(nanos, NANOS[least]))
        step = 10 ** (9 - min(self.digits, DIGITS_MAX))
        half = step // 2 if nanos >= 0 else -(step // 2)
        return Interval(months, days, drop_rest(nanos + half, step))


def drop_rest(amount: int, step: int) -> int:
    """An amount as a multiple of a step, towards zero."""
    return (abs(amount) // step) * step * (1 if amount >= 0 else -1)
