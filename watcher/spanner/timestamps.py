"""Timestamps: microseconds since 1970 as times, and as Spanner's texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """A time as microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def to_datetime(micros: int) -> datetime:
    """Microseconds since 1970 as a time in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def format_timestamp(micros: int) -> str:
    """Microseconds since 1970 as RFC 3339."""
    return to_datetime(micros).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
