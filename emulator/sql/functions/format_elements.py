"""Format elements (%Y, %m, ...) of dates and timestamps: writing and parsing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo

from emulator.errors import out_of_range, unimplemented
from emulator.sql.functions.zones import offset_text, zone_of
from emulator.values.local_times import EPOCH, LocalTime

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
EXPANDED = {
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "F": "%E4Y-%m-%d",
    "R": "%H:%M",
    "r": "%I:%M:%S %p",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "c": "%a %b %e %H:%M:%S %Y",
}
ELEMENT = re.compile(r"%(E\d+S|E\*S|E4Y|Ez|[A-Za-z%])|(%)")


def week(day: date, first: int) -> int:
    """The number of the week of the year; ``first`` is the weekday that begins it (Monday is 0)."""
    return (day.timetuple().tm_yday + 6 - (day.weekday() - first) % 7) // 7


OF_DATES: dict[str, Callable[[date], str]] = {
    "A": lambda d: DAYS[d.weekday()],
    "a": lambda d: DAYS[d.weekday()][:3],
    "B": lambda d: MONTHS[d.month - 1],
    "b": lambda d: MONTHS[d.month - 1][:3],
    "h": lambda d: MONTHS[d.month - 1][:3],
    "d": lambda d: f"{d.day:02d}",
    "e": lambda d: f"{d.day:2d}",
    "j": lambda d: f"{d.timetuple().tm_yday:03d}",
    "m": lambda d: f"{d.month:02d}",
    "Q": lambda d: str((d.month - 1) // 3 + 1),
    "U": lambda d: f"{week(d, 6):02d}",
    "u": lambda d: str(d.isoweekday()),
    "V": lambda d: f"{d.isocalendar().week:02d}",
    "W": lambda d: f"{week(d, 0):02d}",
    "w": lambda d: str(d.isoweekday() % 7),
    "n": lambda _: "\n",
    "t": lambda _: "\t",
    "%": lambda _: "%",
}
OF_YEARS: dict[str, Callable[[int], str]] = {
    "C": lambda year: f"{year // 100:02d}",
    "Y": str,
    "E4Y": lambda year: f"{year:04d}",
    "y": lambda year: f"{year % 100:02d}",
}
OF_WEEK_YEARS: dict[str, Callable[[int], str]] = {
    "G": lambda year: f"{year:04d}",
    "g": lambda year: f"{year % 100:02d}",
}
OF_TIMES: dict[str, Callable[[LocalTime], str]] = {
    "H": lambda m: f"{m.local.hour:02d}",
    "I": lambda m: f"{(m.local.hour + 11) % 12 + 1:02d}",
    "k": lambda m: f"{m.local.hour:2d}",
    "l": lambda m: f"{(m.local.hour + 11) % 12 + 1:2d}",
    "M": lambda m: f"{m.local.minute:02d}",
    "P": lambda m: "am" if m.local.hour < 12 else "pm",
    "p": lambda m: "AM" if m.local.hour < 12 else "PM",
    "S": lambda m: f"{m.local.second:02d}",
    "s": lambda m: str(m.seconds),
    "E*S": lambda m: f"{m.local.second:02d}" + f".{m.nanos:09d}".rstrip("0").rstrip("."),
    "Z": lambda m: "UTC" + (offset_text(m.offset, short=True) if m.offset else ""),
    "z": lambda m: offset_text(m.offset).replace(":", ""),
    "Ez": lambda m: offset_text(m.offset),
}


def year_element(element: str, moment: LocalTime) -> str | None:
    """The text of an element of years; None for another."""
    day = moment.local.date()
    if element == "F" and day.year + moment.years > 9999:
        return "+" + format_moment("%E4Y-%m-%d", moment)
    if element in OF_YEARS:
        return OF_YEARS[element](day.year + moment.years)
    if element in OF_WEEK_YEARS:
        return OF_WEEK_YEARS[element](day.isocalendar().year + moment.years)
    return None


def format_moment(pattern: str, moment: LocalTime) -> str:
    """FORMAT_DATE and FORMAT_TIMESTAMP."""

    def format_element(match: re.Match[str]) -> str:
        element = match.group(1)
        if element is None:
            return "%"
        year = year_element(element, moment)
        if year is not None:
            return year
        if element in OF_DATES:
            return OF_DATES[element](moment.local.date())
        if moment.is_date and element not in {"D", "x", "F"}:
            return match.group()
        if element in EXPANDED:
            return format_moment(EXPANDED[element], moment)
        if element in OF_TIMES:
            return OF_TIMES[element](moment)
        digits = element[1:-1]
        if digits.isdigit():
            places = int(digits)
            fraction = f"{moment.nanos:09d}".ljust(places, "0")[:places]
            return f"{moment.local.second:02d}" + (f".{fraction}" if places else "")
        raise unimplemented(f"The format element %{element}")

    return ELEMENT.sub(format_element, pattern)


NAMED_DAYS = "|".join(f"{day}|{day[:3]}" for day in DAYS)
NAMED_MONTHS = "|".join(f"{month}|{month[:3]}" for month in MONTHS)
PARSED = {
    "A": f"(?:{NAMED_DAYS})",
    "a": f"(?:{NAMED_DAYS})",
    "B": f"(?P<month_name_{{n}}>{NAMED_MONTHS})",
    "b": f"(?P<month_name_{{n}}>{NAMED_MONTHS})",
    "h": f"(?P<month_name_{{n}}>{NAMED_MONTHS})",
    "C": r"(?P<century_{n}>\d{{1,2}})",
    "d": r"(?P<day_{n}>\s?\d{{1,2}})",
    "e": r"(?P<day_{n}>\s?\d{{1,2}})",
    "H": r"(?P<hour_{n}>\d{{1,2}})",
    "k": r"(?P<hour_{n}>\s?\d{{1,2}})",
    "I": r"(?P<twelve_{n}>\d{{1,2}})",
    "l": r"(?P<twelve_{n}>\s?\d{{1,2}})",
    "M": r"(?P<minute_{n}>\d{{1,2}})",
    "m": r"(?P<month_{n}>\d{{1,2}})",
    "n": r"\s*",
    "t": r"\s*",
    "p": r"(?P<half_{n}>am|pm)",
    "Q": r"(?P<quarter_{n}>[1-4])",
    "S": r"(?P<second_{n}>\d{{1,2}})",
    "s": r"(?P<epoch_{n}>-?\d+)",
    "Y": r"(?P<year_{n}>\d{{1,4}})",
    "y": r"(?P<short_{n}>\d{{1,2}})",
    "Z": r"(?P<zone_{n}>[A-Za-z][\w/+-]*)",
    "z": r"(?P<zone_{n}>[+-]\d{{1,2}}:?(?:\d\d)?|Z)",
    "Ez": r"(?P<zone_{n}>[+-]\d{{1,2}}:?(?:\d\d)?|Z)",
    "E4Y": r"(?P<year_{n}>\d{{4}})",
    "E*S": r"(?P<second_{n}>\d{{1,2}})(?:\.(?P<fraction_{n}>\d+))?",
    "%": "%",
}
TIME_ONLY = {*"HkIlMpSsZz", "Ez", "E*S"}
"""What a DATE has not."""


@functools.lru_cache(maxsize=256)
def build_expression(pattern: str, dates: bool) -> re.Pattern[str]:
    """The regular expression that reads a format string's texts."""
    for element, longer in EXPANDED.items():
        pattern = re.sub(rf"((?:^|[^%])(?:%%)*)%{element}", rf"\g<1>{longer}", pattern)
    written = r"\s*"
    end = 0
    for number, match in enumerate(ELEMENT.finditer(pattern)):
        written += literal(pattern[end : match.start()])
        element = match.group(1) or ""
        if re.fullmatch(r"E\d+S", element):
            digits = int(element[1:-1])
            fraction = rf"(?:\.(?P<fraction_{number}>\d{{0,{digits}}}))?" if digits else ""
            written += rf"(?P<second_{number}>\d{{1,2}})" + fraction
        elif element in PARSED and not (dates and element in TIME_ONLY):
            written += PARSED[element].format(n=number)
        else:
            raise unimplemented(f"The format element %{element} in parsing")
        end = match.end()
    return re.compile(written + literal(pattern[end:]) + r"\s*\Z", re.IGNORECASE | re.ASCII)


def literal(text: str) -> str:
    """Text between elements: any blanks match any blanks."""
    return r"\s*".join(map(re.escape, re.split(r"\s+", text)))


def parse_fields(pattern: str, text: str, dates: bool) -> dict[str, str]:
    """What the elements read, the last of a kind; OUT_OF_RANGE where the text does not fit."""
    match = build_expression(pattern, dates).match(text)
    if match is None:
        raise out_of_range(f"Failed to parse input string {text!r} with the format {pattern!r}")
    groups = {k: v for k, v in match.groupdict().items() if v is not None}
    ordered = sorted(groups.items(), key=lambda pair: int(pair[0].rsplit("_", 1)[1]))
    return {key.rsplit("_", 1)[0]: value.strip() for key, value in ordered}


def day_of(fields: dict[str, str]) -> tuple[int, int, int]:
    """Year, month, day; what is not given is of 1970-01-01."""
    year = int(fields.get("year", 1970))
    if "short" in fields:
        short = int(fields["short"])
        year = short + (1900 if short >= 69 else 2000)
        if "century" in fields:
            year = int(fields["century"]) * 100 + short
    elif "century" in fields:
        year = int(fields["century"]) * 100 + (year % 100 if "year" in fields else 0)
    month = int(fields.get("month", 1))
    if "quarter" in fields and "month" not in fields:
        month = int(fields["quarter"]) * 3 - 2
    if "month_name" in fields:
        shorts = [name[:3].lower() for name in MONTHS]
        month = shorts.index(fields["month_name"][:3].lower()) + 1
    return year, month, int(fields.get("day", 1))


def parse_date(pattern: str, text: str) -> str:
    """PARSE_DATE."""
    try:
        return date(*day_of(parse_fields(pattern, text, dates=True))).isoformat()
    except ValueError as error:
        raise out_of_range(f"Invalid date {text!r}: {error}") from error


def parse_moment(pattern: str, text: str, zone: tzinfo) -> tuple[datetime, int]:
    """PARSE_TIMESTAMP: the moment in UTC and its nanoseconds."""
    fields = parse_fields(pattern, text, dates=False)
    if "epoch" in fields:
        return EPOCH + timedelta(seconds=int(fields["epoch"])), 0
    hour = int(fields.get("hour", 0))
    if "twelve" in fields:
        if not 1 <= int(fields["twelve"]) <= 12:
            raise out_of_range(f"Invalid hour in {text!r}")
        hour = int(fields["twelve"]) % 12 + (12 if fields.get("half", "").lower() == "pm" else 0)
    second = int(fields.get("second", 0))
    leap = 1 if second == 60 else 0
    named = fields.get("zone")
    place = zone if named is None else UTC if named.upper() == "Z" else zone_of(named)
    minute = int(fields.get("minute", 0))
    local = datetime(*day_of(fields), hour, minute, second - leap, tzinfo=place)
    nanos = int(fields.get("fraction", "")[:9].ljust(9, "0"))
    return local.astimezone(UTC) + timedelta(seconds=leap), nanos
