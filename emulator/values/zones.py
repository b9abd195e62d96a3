"""Time zones by their names, and by their distance from UTC."""

from __future__ import annotations

import functools
import re
from datetime import datetime, timedelta, timezone, tzinfo
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


def place_in_zone(local: datetime, zone: tzinfo) -> datetime:
    """A local time in a zone; of one that there is twice, or never, by the smaller of the two
    distances from UTC, which is standard time, as PostgreSQL takes it."""
    placed = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    return min(placed, key=lambda each: each.utcoffset() or timedelta())
