"""Timestamps as people write them -> the storage form."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from emulator.values.local_times import CYCLE_SECONDS, CYCLE_YEARS
from emulator.values.zones import read_zone

UTC_ZONE: tzinfo = UTC
DEFAULT_ZONE: tzinfo = ZoneInfo("America/Los_Angeles")
"""Spanner's zone for timestamps that name none."""

TIMESTAMP = re.compile(
    r"(\d{4,5})-(\d{1,2})-(\d{1,2})"
    r"(?:[ Tt](?:(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?|(?=[+-]))"
    r"(?:(Z|z| UTC)|((?: UTC)?[+-].*)| ([^+-].*))?)?\Z",
    re.ASCII,
)
"""GoogleSQL's text form: a zone's name stands behind one space, an offset or Z behind none."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_MIN, SECONDS_MAX = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999 in seconds since 1970."""
YEAR_MAX = 10_000
"""A year that can be local to a timestamp of the year 9999; as the year 0 can to one of 1."""


def timestamp_form(text: str, zone: tzinfo = DEFAULT_ZONE, *, zone_allowed: bool = True) -> str:
    """A timestamp as people write it -> the nine-digit form.

    Raises ValueError for another text, a time that does not exist and, unless ``zone_allowed``,
    for a text that names a zone itself.
    """
    match = TIMESTAMP.match(text)
    if match is None:
        raise ValueError(f"Invalid timestamp: '{text}'")
    *numbers, fraction, utc, offset, named = match.groups()
    if not zone_allowed and (utc or offset or named):
        raise ValueError(f'Timezone is not allowed in "{text}"')
    place = zone
    if utc or offset or named:
        place = UTC_ZONE if utc else read_zone(named or offset.strip())
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    try:
        seconds = seconds_of(year, (month, day, hour, minute, second), place)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"Invalid timestamp: '{text}'") from error
    moment = EPOCH + timedelta(seconds=seconds)
    return f"{moment.isoformat()[:19]}.{(fraction or ''):0<9}Z"


def seconds_of(year: int, rest: tuple[int, int, int, int, int], zone: tzinfo) -> int:
    """Seconds since 1970 of a local time: month, day, hour, minute, second, which may be 60.

    Raises ValueError outside of the years 1 to 9999 of UTC. ``datetime`` has not the years 0 and
    10000, so the time is moved by a cycle of the calendar.
    """
    if year > YEAR_MAX:
        raise ValueError(f"year {year} is out of range")
    cycles = -1 if year <= 1 else 1 if year >= YEAR_MAX - 1 else 0
    month, day, hour, minute, second = rest
    leap = 1 if second == 60 else 0
    local = datetime(
        year - cycles * CYCLE_YEARS, month, day, hour, minute, second - leap, tzinfo=zone
    )
    seconds = (local - EPOCH) // timedelta(seconds=1) + leap + cycles * CYCLE_SECONDS
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise ValueError(f"{seconds} seconds since 1970 are out of range")
    return seconds
