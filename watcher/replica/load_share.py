"""How much of a table is loaded, estimated: where the last key that was read is between the first
and the last key of the table, as if keys were spread evenly. Spanner has no count of its rows, and
to count them would be to read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.replica.keys.order import KeyOrder
from watcher.spanner.key_values import Part, Parts
from watcher.spanner.keys import Key

DIGITS = 8
"""So many bytes of a text tell where it is, behind those that all texts have in common."""


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The first and the last key of a table at a timestamp."""

    order: KeyOrder
    first: Parts
    last: Parts

    @classmethod
    def read(cls, capture: PollCapture, at: int) -> KeyBounds | None:
        """Those of a table, by two reads of one key; None where it has no row, or no key. Raises
        VersionExpiredError."""
        order = KeyOrder.of_watched(capture.table)
        keys = KeyRangeCapture(capture).read_bounds(at) if order.columns else None
        if keys is None:
            return None
        return cls(order, *map(order.read_wire, keys))

    def measure(self, upto: Key) -> float | None:
        """The share of the keys up to one, between 0 and 1; None where their values tell nothing:
        by the first column of the key that has more than one value."""
        for first, last, part in zip(
            self.first, self.last, self.order.read_wire(upto), strict=True
        ):
            if first != last:
                return measure_between(first, last, part)
        return None


def measure_between(first: Part, last: Part, part: Part) -> float | None:
    """The share of the way between two values at which another one is, from 0 to 1; None where they
    tell nothing."""
    common = count_common(first, last)
    numbers = [to_number(each, common) for each in (first, last, part)]
    begin, end, number = numbers
    if begin is None or end is None or number is None or begin == end:
        return None
    return min(max((number - begin) / (end - begin), 0.0), 1.0)


def to_number(part: Part, common: int) -> float | None:
    """A value as a number, in the order of values of its type; None for NULL and NaN. ``common``:
    how many bytes of a text say nothing."""
    value = part[1] if len(part) > 1 else None
    match value:
        case int() | float() | Decimal():
            return float(value)
        case date():
            return float(value.toordinal())
        case str() | bytes():
            kept = to_bytes(value)[common : common + DIGITS]
            return float(int.from_bytes(kept.ljust(DIGITS, b"\0"), "big"))
        case _:
            return None


def count_common(first: Part, last: Part) -> int:
    """With how many bytes two texts begin alike."""
    values = [each[1] if len(each) > 1 else None for each in (first, last)]
    texts = [to_bytes(value) for value in values if isinstance(value, str | bytes)]
    if len(texts) != len(values):
        return 0
    pairs = zip(*texts, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(map(len, texts)))


def to_bytes(value: str | bytes) -> bytes:
    """A text in the order that Spanner has."""
    return value.encode() if isinstance(value, str) else value
