"""A timestamp in a zone: also where the local year is 0 or 10000, which ``datetime`` has not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

CYCLE_YEARS = 400
"""After so many years the calendar repeats, weekdays too."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CYCLE_SECONDS = 146_097 * 86_400


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A local time with its nanoseconds; a DATE has no zone.

    ``local`` may be moved by whole cycles of years: ``cycles`` says by how many the real time is
    later.
    """

    local: datetime
    nanos: int = 0
    is_date: bool = False
    cycles: int = 0

    @property
    def years(self) -> int:
        """What to add to the years of ``local``."""
        return self.cycles * CYCLE_YEARS

    @property
    def seconds(self) -> int:
        """Seconds since 1970."""
        return (self.local - EPOCH) // timedelta(seconds=1) + self.cycles * CYCLE_SECONDS

    @property
    def offset(self) -> timedelta:
        """How far the zone is from UTC."""
        return self.local.utcoffset() or timedelta()

    def date(self) -> date:
        """The local date. Raises ValueError outside of the years 1 to 9999."""
        day = self.local.date()
        return day.replace(year=day.year + self.years)


def local_time(form: str, zone: tzinfo) -> LocalTime:
    """The nine-digit form as a local time of a zone."""
    moment = datetime.fromisoformat(form[:19] + "+00:00")
    cycles = 0
    if moment.year == 1:
        cycles = -1
    elif moment.year == 9999:
        cycles = 1
    moved = moment.replace(year=moment.year - cycles * CYCLE_YEARS)
    return LocalTime(moved.astimezone(zone), int(form[20:29]), cycles=cycles)


def printed_time(form: str, zone: tzinfo) -> LocalTime:
    """The same as it is printed: with an offset of whole minutes."""
    exact = local_time(form, zone)
    minutes = int(exact.offset / timedelta(minutes=1))
    if exact.offset == timedelta(minutes=minutes):
        return exact
    from_utc = exact.local.astimezone(UTC) + timedelta(minutes=minutes)
    rounded = from_utc.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    return LocalTime(rounded, exact.nanos, cycles=exact.cycles)


def timestamp_in_zone(form: str, zone: tzinfo) -> str:
    """The nine-digit form -> 'YYYY-MM-DD HH:MM:SS[.fraction]+ZZ[:ZZ]' in a zone."""
    moment = printed_time(form, zone)
    fraction = form[20:29].rstrip("0")
    fraction = f".{fraction:0<{-(-len(fraction) // 3) * 3}}" if fraction else ""
    offset = moment.local.strftime("%z")
    shown = offset[:3] if offset[3:5] == "00" else f"{offset[:3]}:{offset[3:5]}"
    year = moment.local.year + moment.years
    return f"{year:04d}{moment.local.strftime('-%m-%d %H:%M:%S')}{fraction}{shown}"
