"""to_char, to_date and to_timestamp of the PostgreSQL dialect: template patterns of times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from emulator.errors import invalid_argument, out_of_range, unimplemented
from emulator.sql.functions.intervals import parse_iso
from emulator.sql.functions.postgres_moments import JULIAN_DAYS
from emulator.sql.functions.postgres_number_formats import (
    char_bigint,
    char_float,
    char_numeric,
    to_number,
)
from emulator.sql.functions.postgres_times import form_of, moment_of
from emulator.sql.functions.served import ServedFunctions
from emulator.values.timestamp_texts import DEFAULT_ZONE
from emulator.values.types import DATE, FLOAT64, INT64, INTERVAL, PG_NUMERIC, STRING, TIMESTAMP
from emulator.values.zones import place_in_zone
from spanner_schema.model.column_types import Type

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
TIME_PATTERN = re.compile(
    r'"(?P<quoted>[^"]*)"|(?P<fm>FM|TM)?(?P<name>HH24|HH12|HH|MI|SSSSS|SSSS|SS|MS|US|FF[1-6]'
    r"|A\.M\.|P\.M\.|a\.m\.|p\.m\.|AM|PM|am|pm|Y,YYY|IYYY|YYYY|IYY|YYY|IY|YY|IDDD|DDD|DD|IW|ID|I|Y"
    r"|MONTH|Month|month|MON|Mon|mon|MM|DAY|Day|day|DY|Dy|dy|D|WW|W|CC|J|Q|RM|rm|TZH|TZM|TZ|tz"
    r"|OF|BC|AD|bc|ad)(?P<th>TH|th)?|(?P<other>.)",
    re.DOTALL,
)
READ_FIELDS = {
    *("YYYY", "YYY", "YY", "Y", "MM", "DD", "DDD", "HH24", "HH12", "HH", "MI", "SS", "MS", "US"),
    *("SSSS", "SSSSS", "J", "Q"),
}
"""What is read as a number, Q without an effect; months, days and halves of the day are words."""
READ_WIDTHS = {
    "YYY": 3,
    "Y": 1,
    "J": 7,
    "YYYY": 4,
    "DDD": 3,
    "US": 6,
    "MS": 3,
    "SSSS": 5,
    "SSSSS": 5,
}


@dataclass(frozen=True, slots=True)
class Clock:
    """A time, or an interval, as the fields of a template."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    micros: int
    moment: datetime | None = None


def pieces(template: str) -> Iterator[re.Match[str]]:
    """The patterns and the other characters of a template of times."""
    return TIME_PATTERN.finditer(template)


def ordinal(number: int, suffix: str) -> str:
    """st, nd, rd or th, in the case of the template."""
    last = number % 10 if number % 100 not in {11, 12, 13} else 0
    word = {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return word.upper() if suffix.isupper() else word


def show(clock: Clock, template: str) -> str:
    """A time by a template."""
    out = []
    for piece in pieces(template):
        if piece["quoted"] is not None or piece["other"] is not None:
            out.append(piece["quoted"] if piece["quoted"] is not None else piece["other"])
            continue
        text = field(clock, piece["name"], trimmed=piece["fm"] == "FM")
        out.append(text)
        if piece["th"] and text.strip().lstrip("-").isdigit():
            out.append(ordinal(abs(int(text)), piece["th"]))
    return "".join(out)


def field(clock: Clock, name: str, *, trimmed: bool) -> str:
    """One field of a template."""
    number = number_field(clock, name)
    if number is not None:
        value, width = number
        if name == "DD" and not trimmed:
            return f"{value:02d}"
        sign = "-" if value < 0 else ""
        return f"{sign}{abs(value)}" if trimmed else f"{sign}{abs(value):0{width}d}"
    words = word_field(clock, name)
    if words is None:
        raise unimplemented(f"the pattern {name} of to_char")
    text, width = words
    return text if trimmed else text.ljust(width)


def number_field(clock: Clock, name: str) -> tuple[int, int] | None:
    """A field that is a number, and how many digits it has."""
    sign = -1 if clock.hour < 0 else 1
    hour12 = sign * (abs(clock.hour) % 12) or 12
    seconds, fraction = divmod(abs(clock.micros), 1_000_000)
    way = -1 if clock.micros < 0 else 1
    day_seconds = clock.hour * 3600 + clock.minute * 60 + seconds
    plain = {
        "HH24": (clock.hour, 2),
        "HH12": (hour12, 2),
        "HH": (hour12, 2),
        "MI": (clock.minute, 2),
        "SS": (way * seconds, 2),
        "SSSS": (day_seconds, 1),
        "SSSSS": (day_seconds, 1),
        "MS": (way * (fraction // 1_000), 3),
        "US": (way * fraction, 6),
        "YYYY": (clock.year, 4),
        "YYY": (clock.year % 1000, 3),
        "YY": (clock.year % 100, 2),
        "Y": (clock.year % 10, 1),
        "MM": (clock.month, 2),
        "DD": (clock.day, 2),
        "Q": ((clock.month + 2) // 3, 1),
        "CC": ((clock.year + 99) // 100, 2),
        "W": ((clock.day - 1) // 7 + 1, 1),
    }
    if name in plain:
        return plain[name]
    if name.startswith("FF"):
        digits = int(name[2:])
        return fraction // 10 ** (6 - digits), digits
    return calendar_field(clock.moment, name) if clock.moment is not None else None


def calendar_field(moment: datetime, name: str) -> tuple[int, int] | None:
    """A field that only a day of the calendar has."""
    iso, day_of_year = moment.isocalendar(), moment.timetuple().tm_yday
    return {
        "DDD": (day_of_year, 3),
        "IDDD": ((iso.week - 1) * 7 + iso.weekday, 3),
        "D": (moment.isoweekday() % 7 + 1, 1),
        "ID": (iso.weekday, 1),
        "WW": ((day_of_year - 1) // 7 + 1, 2),
        "IW": (iso.week, 2),
        "IYYY": (iso.year, 4),
        "IYY": (iso.year % 1000, 3),
        "IY": (iso.year % 100, 2),
        "I": (iso.year % 10, 1),
        "J": (moment.date().toordinal() + 1_721_425, 1),
    }.get(name)


def word_field(clock: Clock, name: str) -> tuple[str, int] | None:
    """A field that is a word, and to how many characters it is filled."""
    if name == "Y,YYY":
        return f"{clock.year // 1000},{clock.year % 1000:03d}", 1
    if name in {"RM", "rm"} and clock.month:
        roman = ROMAN[clock.month - 1]
        return (roman if name == "RM" else roman.lower()), 4
    if name.upper() in {"AM", "PM", "A.M.", "P.M."}:
        word = "PM" if clock.hour % 24 >= 12 else "AM"
        word = word if "." not in name else f"{word[0]}.{word[1]}."
        return (word if name.isupper() else word.lower()), 0
    if clock.moment is None:
        return None
    if name.upper() in {"AD", "BC"}:
        return ("AD" if name.isupper() else "ad"), 0
    if name.upper() in {"MONTH", "MON"}:
        return cased(MONTHS[clock.month - 1], name, 9 if len(name) > 3 else 0)
    if name.upper() in {"DAY", "DY"}:
        return cased(DAYS[clock.moment.isoweekday() % 7], name, 9 if len(name) > 2 else 0)
    return zone_field(clock.moment, name)


def cased(word: str, name: str, width: int) -> tuple[str, int]:
    """A name of a month or a day: whole or its first letters, in the case of the template."""
    shown = word if width else word[:3]
    if name.isupper():
        shown = shown.upper()
    return (shown.lower() if name.islower() else shown), width


def zone_field(moment: datetime, name: str) -> tuple[str, int] | None:
    """The zone."""
    offset = moment.utcoffset()
    minutes = 0 if offset is None else int(offset.total_seconds()) // 60
    sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
    if name.upper() == "TZ":
        zone = moment.tzname() or ""
        return (zone if name == "TZ" else zone.lower()), 0
    if name == "TZH":
        return f"{sign}{size // 60:02d}", 0
    if name == "TZM":
        return f"{size % 60:02d}", 0
    if name == "OF":
        return f"{sign}{size // 60:02d}" + (f":{size % 60:02d}" if size % 60 else ""), 0
    return None


def char_timestamptz(form: str, template: str) -> str:
    """to_char of a time, in the default zone."""
    moment = moment_of(form)
    micros = moment.second * 1_000_000 + moment.microsecond
    parts = (moment.year, moment.month, moment.day, moment.hour, moment.minute, micros)
    return show(Clock(*parts, moment), template)


def char_interval(form: str, template: str) -> str:
    """to_char of an interval."""
    value = parse_iso(form)
    sign = -1 if value.months < 0 else 1
    years, months = divmod(abs(value.months), 12)
    way = -1 if value.nanos < 0 else 1
    micros = abs(value.nanos) // 1_000
    hours, rest = divmod(micros, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    parts = (sign * years, sign * months, value.days, way * hours, way * minutes, way * rest)
    return show(Clock(*parts), template)


def read_fields(text: str, template: str) -> dict[str, int]:
    """The fields of a text by a template. Raises INVALID_ARGUMENT."""
    found: dict[str, int] = {}
    place = 0
    parts = list(pieces(template))
    for piece, next_one in zip(parts, [*parts[1:], None], strict=True):
        if place >= len(text):
            break
        name = piece["name"]
        if name is None:
            literal = piece["quoted"] if piece["quoted"] is not None else piece["other"]
            for character in literal:
                if place < len(text) and (text[place] == character or not text[place].isalnum()):
                    place += 1
            continue
        while place < len(text) and text[place].isspace():
            place += 1
        # A number ends where its width ends only if digits of another field follow at once.
        apart = next_one is None or next_one["name"] is None
        place = read_field(text, place, name, found, apart)
    return found


def read_field(text: str, place: int, name: str, found: dict[str, int], apart: bool) -> int:
    """One field; where it ends. ``apart``: what follows is no field."""
    upper = name.upper()
    if upper in {"MONTH", "MON", "DAY", "DY"}:
        words = MONTHS if upper.startswith("MON") else DAYS
        for number, word in enumerate(words, 1):
            for shown in (word, word[:3]):
                if text[place:].lower().startswith(shown.lower()):
                    found["MM" if words is MONTHS else "day name"] = number
                    return place + len(shown)
        raise invalid_argument(f'invalid value "{text[place : place + 3]}" for "{name}"')
    if upper in {"AM", "PM", "A.M.", "P.M."}:
        found["PM"] = int(text[place : place + 1].lower() == "p")
        return place + len(name)
    if upper not in READ_FIELDS:
        raise unimplemented(f"{name} in a template that a text is read by")
    width = READ_WIDTHS.get(upper, 2)
    limit = "" if apart and upper not in {"MS", "US"} else width
    match = re.compile(rf"[+-]?\d{{1,{limit}}}").match(text, place)
    if match is None:
        raise invalid_argument(f'invalid value "{text[place : place + width]}" for "{name}"')
    key = {"HH12": "HH", "SSSSS": "SSSS"}.get(upper, upper)
    digits = match[0]
    if key in {"MS", "US"}:
        digits = digits.ljust(READ_WIDTHS[key], "0")
    found[key] = int(digits)
    return match.end()


def full_year(year: int) -> int:
    """The year next to 2020 that ends with one, two or three digits."""
    centuries = ((70, 2000), (100, 1900), (520, 2000), (1000, 1000))
    return year + next((added for limit, added in centuries if year < limit), 0)


def moment_of_fields(found: dict[str, int], text: str) -> datetime:
    """The time that fields say, without a zone. Raises OUT_OF_RANGE."""
    year = found.get("YYYY", 1)
    for name in ("Y", "YY", "YYY"):
        year = full_year(found[name]) if name in found else year
    hour = found.get("HH24", found.get("HH", 0))
    if "PM" in found and "HH" in found:
        hour = hour % 12 + 12 * found["PM"]
    micros = found.get("US", 0) + found.get("MS", 0) * 1_000
    since_midnight = timedelta(seconds=found.get("SSSS", 0))
    try:
        day = date(year, found.get("MM", 1), found.get("DD", 1))
        if "J" in found:
            day = date.fromordinal(found["J"] - JULIAN_DAYS)
        if "DDD" in found:
            day = date.fromordinal(date(year, 1, 1).toordinal() + found["DDD"] - 1)
        clock = (hour, found.get("MI", 0), found.get("SS", 0), micros)
        return datetime(day.year, day.month, day.day, *clock) + since_midnight
    except ValueError as error:
        raise out_of_range(f'date/time field value out of range: "{text}"') from error


def to_date(text: str, template: str) -> str:
    """to_date."""
    return moment_of_fields(read_fields(text, template), text).date().isoformat()


def to_timestamp(text: str, template: str) -> str:
    """to_timestamp, in the default zone."""
    moment = moment_of_fields(read_fields(text, template), text)
    return form_of(place_in_zone(moment, DEFAULT_ZONE))


CHARACTERS: tuple[tuple[Type, str, Callable[..., str]], ...] = (
    (INT64, "int8", char_bigint),
    (PG_NUMERIC, "numeric", char_numeric),
    (FLOAT64, "float8", char_float),
    (TIMESTAMP, "timestamptz", char_timestamptz),
    (INTERVAL, "interval", char_interval),
)
"""to_char of each type."""


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add = served.add

    for type_, kind, run in CHARACTERS:
        add("TO_CHAR", [type_, STRING], STRING, run, function=f"pg_to_char_{kind}")
    add("TO_NUMBER", [STRING, STRING], PG_NUMERIC, to_number)
    add("TO_DATE", [STRING, STRING], DATE, to_date)
    text = "pg_to_timestamp_text"
    add("TO_TIMESTAMP", [STRING, STRING], TIMESTAMP, to_timestamp, function=text)
    return served


SERVED = build_served()
FUNCTIONS = SERVED.at_run_time
