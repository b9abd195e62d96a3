"""Timestamps: microseconds since 1970 as times, and as Spanner's texts."""

from __future__ import annotations

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
