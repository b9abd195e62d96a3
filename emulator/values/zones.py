"""Time zones by their names, and by their distance from UTC."""

from __future__ import annotations

import functools
import re
from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

OFFSET = re.compile(r"(?:UTC)?([+-])(\d{1,2})(?::?(\d{1,2}))?\Z", re.ASCII)
DISTANCE_MAX = timedelta(hours=14)


@functools.lru_cache(maxsize=1024)
def read_zone(name: str) -> tzinfo:
    """A zone such as America/Los_Angeles, UTC, +05:30, UTC-8. Raises ValueError."""
    match = OFFSET.match(name)
    if match is not None:
        sign, hours, minutes = match.groups()
        distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if distance > DISTANCE_MAX or int(minutes or 0) > 59:
            raise ValueError(f"Invalid time zone: {name}")
        return timezone(-distance if sign == "-" else distance)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"Invalid time zone: {name}") from error
