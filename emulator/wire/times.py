"""Timestamps and durations of protobuf in microseconds."""

from __future__ import annotations

from emulator.errors import invalid_argument
from emulator.wire.messages import Message


def to_micros(proto: Message, *, up: bool = False) -> int:
    """A Timestamp or a Duration in microseconds, rounded down or ``up``."""
    if not 0 <= proto.nanos < 1_000_000_000:
        raise invalid_argument("Invalid timestamp or duration: nanos are out of range.")
    nanos = proto.nanos + 999 if up else proto.nanos
    whole: int = proto.seconds * 1_000_000 + nanos // 1000
    return whole


def fill_timestamp(proto: Message, value: int) -> None:
    """Writes microseconds into a Timestamp."""
    proto.seconds, rest = divmod(value, 1_000_000)
    proto.nanos = rest * 1000
