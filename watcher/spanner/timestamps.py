"""Timestamps: microseconds since 1970 as times, and as Spanner's texts."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """A time as microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def to_datetime(micros: int) -> datetime:
    """Microseconds since 1970 as a time in UTC."""
    return EPOCH + timedelta(microseconds=micros)


@lru_cache(maxsize=4096)
def format_timestamp(micros: int) -> str:
    """Microseconds since 1970 as RFC 3339. The changes of a window and of a commit share theirs."""
    return to_datetime(micros).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def measure_age(micros: int, now: int | None) -> float:
    """How many seconds ago a timestamp was. ``now`` is Spanner's time in microseconds; if it is not
    known, the clock of the machine stands for it."""
    return max(0.0, (now / 1_000_000 if now is not None else time.time()) - micros / 1_000_000)
