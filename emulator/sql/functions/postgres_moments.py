"""Texts of dates and times as the PostgreSQL dialect reads them: month, day, year."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

from emulator.errors import SpannerError, invalid_argument
from emulator.values.timestamp_texts import DEFAULT_ZONE
from emulator.values.zones import place_in_zone

MICROSECOND_DIGITS = 6
JULIAN_DAYS = 1_721_425
"""Of the day before the year 1."""
WORD = r"(?P<word>[A-Za-z]{3,9})\.?"
MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}
DAYS = tuple(
    re.compile(rf"\s*+{form}(?![\d./-])", re.ASCII)
    for form in (
        r"(?P<year>\d{3,6})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})",
        rf"(?P<year>\d{{3,6}})[-/ ]{WORD}[-/ ](?P<day>\d{{1,2}})",
        rf"{WORD}[-/ ](?P<day>\d{{1,2}})[-/ ,]\s?(?P<year>\d{{2,6}})",
        rf"(?P<day>\d{{1,2}})[-/ ]{WORD}[-/ ,]\s?(?P<year>\d{{2,6}})",
        r"(?P<month>\d{1,2})(?P<sign>[-/.])(?P<day>\d{1,2})(?P=sign)(?P<year>\d{2,6})",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
        r"(?P<year>\d{2})(?P<month>\d{2})(?P<day>\d{2})",
        r"(?P<year>\d{4})\.(?P<of_year>\d{3})",
        r"[Jj](?P<julian>\d{1,7})",
    )
)
"""The formats that Spanner documents; the first is recommended."""
CLOCK = re.compile(
    r"(?:(?:[Tt]|\s++)(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
    r"|(?P<minute_2>\d{2})(?P<second_2>\d{2}))(?:\.(?P<fraction>\d*+))?(?:\s?(?P<half>[AaPp][Mm])\b)?)?"
    r"\s*+(?:(?P<zone>[A-Za-z_]+(?:/[A-Za-z_]+)*)"
    r"|(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}))?)?)?\s*+\Z",
    re.ASCII,
)
ZONES = {"z": UTC, "zulu": UTC, "utc": UTC, "gmt": UTC}
ABBREVIATIONS = {"cet", "eet", "wet"}
"""Of zones, that Spanner documents as supported; others are not."""


def bad_input(type_name: str, text: str) -> SpannerError:
    """What PostgreSQL says of a text that is no value of a type."""
    return invalid_argument(f'invalid input syntax for type {type_name}: "{text}"')


def parse_date(text: str) -> str:
    """A date in ISO 8601; a time behind it does not count. Raises INVALID_ARGUMENT."""
    found = split(text)
    if found is None:
        raise bad_input("date", text)
    try:
        return read_day(found[0]).isoformat()
    except (ValueError, OverflowError) as error:
        raise invalid_argument(f'date/time field value out of range: "{text}"') from error


def parse_timestamptz(text: str) -> str:
    """A time in ISO 8601; without a zone it is in the default one. Raises INVALID_ARGUMENT."""
    found = split(text)
    if found is None:
        raise bad_input("timestamp with time zone", text)
    written, clock = found
    micros = round(Decimal(f"0.{clock['fraction'] or 0}") * 10**MICROSECOND_DIGITS)
    try:
        day = read_day(written)
        local = datetime(day.year, day.month, day.day) + read_clock(clock)
        moment = in_zone(local, clock).astimezone(UTC) + timedelta(microseconds=micros)
    except (ValueError, OverflowError) as error:
        raise invalid_argument(f'date/time field value out of range: "{text}"') from error
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}000Z"


def split(text: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """A text as its day, and what is behind it; None where it is neither."""
    for form in DAYS:
        day = form.match(text)
        clock = CLOCK.match(text, day.end()) if day is not None else None
        if day is not None and clock is not None:
            word = day.groupdict().get("word")
            return (day, clock) if word is None or word.lower() in MONTHS else None
    return None


def read_day(found: re.Match[str]) -> date:
    """The day of a match of DAYS. Raises ValueError, OverflowError."""
    parts = found.groupdict()
    if "julian" in parts:
        return date.fromordinal(int(parts["julian"]) - JULIAN_DAYS)
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 2000 if year < 70 else 1900
    if "of_year" in parts:
        return date(year, 1, 1) + timedelta(days=int(parts["of_year"]) - 1)
    month = MONTHS[parts["word"].lower()] if "word" in parts else int(parts["month"])
    return date(year, month, int(parts["day"]))


def read_clock(clock: re.Match[str]) -> timedelta:
    """The time since midnight, 24:00 and a leap second too. Raises ValueError."""
    hour, half = int(clock["hour"] or 0), (clock["half"] or "").lower()
    minute, second = (int(clock[n] or clock[f"{n}_2"] or 0) for n in ("minute", "second"))
    if hour > (12 if half else 24) or minute > 59 or second > 60:
        raise ValueError("no time of a day")
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    since = timedelta(hours=hour, minutes=minute, seconds=second)
    if since > timedelta(days=1):
        raise ValueError("behind midnight")
    return since


def in_zone(local: datetime, clock: re.Match[str]) -> datetime:
    """A local time with its zone. Raises INVALID_ARGUMENT."""
    if clock["sign"] is not None:
        hours, minutes, seconds = (int(clock[n] or 0) for n in ("hours", "minutes", "seconds"))
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return local.replace(tzinfo=timezone(-offset if clock["sign"] == "-" else offset))
    name = clock["zone"]
    if name is None:
        return place_in_zone(local, DEFAULT_ZONE)
    if name.lower() in ZONES:
        return local.replace(tzinfo=ZONES[name.lower()])
    try:
        if "/" not in name and name.lower() not in ABBREVIATIONS:
            raise KeyError(name)
        return place_in_zone(local, ZoneInfo(name if "/" in name else name.upper()))
    except (KeyError, OSError) as error:
        raise invalid_argument(f'time zone "{name}" not recognized') from error
