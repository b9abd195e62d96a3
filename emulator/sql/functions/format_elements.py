"""Format elements (%Y, %m, ...) of dates and timestamps: writing and parsing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from emulator.errors import out_of_range
from emulator.sql.functions.zones import offset_text
from emulator.values.local_times import LocalTime

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
ELEMENT = re.compile(r"%(E\d{1,3}S|E\*S|E4Y|Ez|[EO][A-Za-z]|[A-Za-z%])|(%)")
MODIFIABLE = {"E": set("cCxXyY"), "O": set("deHImMSuUVwWy")}
"""What may follow %E and %O, which change nothing in English."""


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


def refuse_or_keep(text: str) -> str:
    """An unknown element is text. Raises OUT_OF_RANGE for one that Spanner has not yet."""
    if text == "%J":
        raise out_of_range("Format element %J not supported yet")
    return text


def unmodified(element: str | None) -> str | None:
    """An element without the E or O before it."""
    if element and len(element) == 2 and element[1] in MODIFIABLE.get(element[0], ()):
        return element[1]
    return element


def format_moment(pattern: str, moment: LocalTime) -> str:
    """FORMAT_DATE and FORMAT_TIMESTAMP."""

    def format_element(match: re.Match[str]) -> str:
        element = unmodified(match.group(1))
        if element is None:
            return "%"
        year = year_element(element, moment)
        if year is not None:
            return year
        if element in OF_DATES:
            return OF_DATES[element](moment.local.date())
        if moment.is_date and element not in {"D", "x", "F"}:
            return refuse_or_keep(match.group())
        if element in EXPANDED:
            return format_moment(EXPANDED[element], moment)
        if element in OF_TIMES:
            return OF_TIMES[element](moment)
        digits = element[1:-1]
        if digits.isdigit():
            places = int(digits)
            fraction = f"{moment.nanos:09d}".ljust(places, "0")[:places]
            return f"{moment.local.second:02d}" + (f".{fraction}" if places else "")
        return refuse_or_keep(match.group())

    return ELEMENT.sub(format_element, pattern)
