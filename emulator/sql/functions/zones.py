"""Time zones by their names, and by their distance from UTC."""

from __future__ import annotations

from datetime import timedelta, tzinfo

from emulator.errors import out_of_range
from emulator.values.zones import read_zone

DEFAULT_ZONE = "America/Los_Angeles"


def zone_of(name: str) -> tzinfo:
    """A zone such as America/Los_Angeles, UTC, +05:30. Raises OUT_OF_RANGE."""
    try:
        return read_zone(name)
    except ValueError as error:
        raise out_of_range(str(error)) from error


def offset_text(offset: timedelta, *, short: bool = False) -> str:
    """+05:30; the short form is -8, or +0530 where there are minutes."""
    minutes = offset // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    if short:
        return f"{sign}{hours:02d}{rest:02d}" if rest else f"{sign}{hours}"
    return f"{sign}{hours:02d}:{rest:02d}"
