"""Time zones by their names, and by their distance from UTC."""

from __future__ import annotations

import functools
import re
from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from emulator.errors import out_of_range

DEFAULT_ZONE = "America/Los_Angeles"
OFFSET = re.compile(r"(?:UTC)?([+-])(\d{1,2})(?::?(\d\d))?\Z")
HOURS_MAX = 14


@functools.lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """A zone such as America/Los_Angeles, UTC, +05:30."""
    match = OFFSET.match(name)
    if match is not None:
        sign, hours, minutes = match.groups()
        if int(hours) > HOURS_MAX or int(minutes or 0) > 59:
            raise out_of_range(f"Invalid time zone: {name}")
        distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-distance if sign == "-" else distance)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise out_of_range(f"Invalid time zone: {name}") from error


def offset_text(offset: timedelta, *, short: bool = False) -> str:
    """+05:30; the short form is -8, or +0530 where there are minutes."""
    minutes = offset // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    if short:
        return f"{sign}{hours:02d}{rest:02d}" if rest else f"{sign}{hours}"
    return f"{sign}{hours:02d}:{rest:02d}"
