"""PARSE_DATE and PARSE_TIMESTAMP: a text is read by a format, element by element.

The elements and their bounds are those of GoogleSQL's "format elements" page; what it leaves to
strptime (names of days and months, %e, %F, %T, ...) is as the C library has it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta, timezone, tzinfo

from emulator.errors import out_of_range
from emulator.sql.functions.parsed_days import ParsedDay
from emulator.sql.functions.zones import zone_of
from emulator.values.timestamp_texts import UTC_ZONE, seconds_of

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TOKEN = re.compile(r"(\s+)|%(E(?:\d{1,2}S|\*S|4Y|.)|O.|.)|(.)", re.DOTALL | re.ASCII)
BLANKS = re.compile(r"\s*", re.ASCII)
SECONDS = re.compile(r"E\d+S")
FORBIDDEN_IN_DATES = re.compile(r"[EO]?[cHIklMPpRrSsTXZz]|E(?:\d+|\*)S")
OFFSET_MAX = 14 * 60
COMPOSITE = {
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "r": "%I:%M:%S %p",
    "c": "%a %b %e %H:%M:%S %Y",
}
MAX_EPOCH = 253_402_300_799
MIN_EPOCH = -62_135_596_800


class MismatchError(Exception):
    """The text is not as the format says."""


@dataclass(slots=True)
class Reading:
    """A text that is read, as far as ``at``, and what was read of it."""

    text: str
    at: int = 0
    day: ParsedDay = field(default_factory=ParsedDay)
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanos: int = 0
    epoch: int | None = None
    zone: tzinfo | None = None
    is_twelve_hours: bool = False
    is_afternoon: bool = False

    def skip_blanks(self) -> None:
        """Any number of blanks, also none."""
        self.at = BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]

    def expect(self, pattern: str) -> str:
        """What a regular expression matches here, in small letters."""
        match = re.compile(pattern, re.IGNORECASE | re.ASCII).match(self.text, self.at)
        if match is None:
            raise MismatchError
        self.at = match.end()
        return match.group().lower()

    def skip(self, text: str) -> None:
        """A text that must stand here."""
        self.expect(re.escape(text))

    def number(self, width: int, least: int, most: int) -> int:
        """A number of at most so many characters, its sign included, within bounds."""
        text = self.expect(rf"-\d{{1,{max(width - 1, 1)}}}|\d{{1,{width}}}")
        value = int(text)
        if not least <= value <= most or (text[0] == "-" and value == 0):
            raise MismatchError
        return value


@functools.lru_cache(maxsize=256)
def split_format(pattern: str) -> tuple[tuple[str, str, str], ...]:
    """Blanks, elements and single characters; of each triple two are empty.

    Raises OUT_OF_RANGE where an element is not finished.
    """
    tokens = [match.groups(default="") for match in TOKEN.finditer(pattern)]
    if any(character == "%" for _, _, character in tokens):
        raise out_of_range("Format string cannot end with a single '%'")
    return tuple((blanks, element, character) for blanks, element, character in tokens)


def read_text(pattern: str, text: str) -> Reading:
    """What the elements of a format read. Raises OUT_OF_RANGE where the text does not fit."""
    reading = Reading(text)
    reading.skip_blanks()
    tokens = split_format(pattern)
    try:
        used = read_tokens(reading, tokens)
    except MismatchError as error:
        raise out_of_range(f"Failed to parse input string {text!r}") from error
    reading.skip_blanks()
    left = [token for token in tokens[used:] if not token[0] and token[1] not in {"n", "t"}]
    if left or reading.at < len(text):
        raise out_of_range(f"Failed to parse input string {text!r}")
    return reading


def read_tokens(reading: Reading, tokens: tuple[tuple[str, str, str], ...]) -> int:
    """Reads until the text or the format ends; returns how many tokens were read."""
    for number, (blanks, element, character) in enumerate(tokens):
        if reading.at >= len(reading.text):
            return number
        if blanks:
            reading.skip_blanks()
        elif element:
            before_element = number + 1 < len(tokens) and bool(tokens[number + 1][1])
            read_element(reading, element, before_element)
        elif reading.text[reading.at] == character:
            reading.at += 1
        else:
            raise MismatchError
    return len(tokens)


def read_element(reading: Reading, element: str, before_element: bool) -> None:
    """One element; a year or century before another element takes one digit less."""
    reading.day.position += 1
    plain = element[1:] if element[0] in "EO" and len(element) == 2 else element
    if element == "Ez":
        read_offset(reading, r"[+-]\d\d(?::?\d\d)?|(?-i:Z)")
    elif element == "E*S" or SECONDS.fullmatch(element):
        read_seconds(reading, element)
    elif plain in COMPOSITE:
        read_composite(reading, plain)
    elif plain in "YC":
        read_long_year(reading, plain, before_element)
    elif plain in READERS:
        READERS[plain](reading)
    else:
        raise MismatchError


def read_composite(reading: Reading, element: str) -> None:
    """An element that stands for several, numbers of which may have blanks before them."""
    for blanks, part, character in split_format(COMPOSITE[element]):
        if blanks:
            reading.skip_blanks()
        elif character:
            reading.skip(character)
        else:
            reading.expect(" *")
            read_element(reading, part, before_element=True)


def read_long_year(reading: Reading, element: str, before_element: bool) -> None:
    """%Y and %C: 10000 can be a local year of a timestamp of 9999."""
    more = 0 if before_element else 1
    if element == "Y":
        reading.day.set_year(reading.number(4 + more, 0, 9999 + more))
    else:
        reading.day.set_century(reading.number(2 + more, 0, 99 + more))


def read_seconds(reading: Reading, element: str) -> None:
    """%E*S, %E3S: seconds with a fraction; digits beyond nanoseconds are cut off."""
    digits = element[1:-1]
    if digits != "*" and int(digits) > 9:
        raise MismatchError
    reading.second = reading.number(2, 0, 60)
    most = "" if digits == "*" else digits
    if digits == "0" or not reading.text.startswith(".", reading.at):
        return
    fraction = reading.expect(rf"\.\d{{1,{most}}}")[1:]
    reading.nanos = int(fraction[:9].ljust(9, "0"))


def read_offset(reading: Reading, pattern: str) -> None:
    """%z, %Ez: how far the zone is from UTC."""
    text = reading.expect(pattern).replace(":", "")
    if text == "z":
        reading.zone = UTC_ZONE
        return
    minutes = int(text[1:3]) * 60 + int(text[3:] or 0)
    if minutes > OFFSET_MAX or int(text[3:] or 0) > 59:
        raise out_of_range(f"Timezone offset out of valid range -14:00 to +14:00: {text}")
    reading.zone = timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def read_zone_name(reading: Reading) -> None:
    """%Z."""
    start = reading.at
    reading.expect(r"\S+")
    reading.zone = zone_of(reading.text[start : reading.at])


def read_hour(reading: Reading) -> None:
    """%H, %k."""
    reading.expect(" *")
    reading.hour = reading.number(2, 0, 23)
    reading.is_twelve_hours = False


def read_twelve_hours(reading: Reading) -> None:
    """%I, %l."""
    reading.skip_blanks()
    reading.hour = reading.number(2, 1, 12) % 12
    reading.is_twelve_hours = True


def read_half(reading: Reading) -> None:
    """%p, %P."""
    reading.is_afternoon = reading.expect("am|pm") == "pm"


def read_minute(reading: Reading) -> None:
    """%M."""
    reading.minute = reading.number(2, 0, 59)


def read_second(reading: Reading) -> None:
    """%S."""
    reading.second = reading.number(2, 0, 60)


def read_epoch(reading: Reading) -> None:
    """%s: beside it nothing else counts."""
    reading.epoch = reading.number(12, MIN_EPOCH, MAX_EPOCH)


def read_name(reading: Reading, names: tuple[str, ...]) -> int:
    """The place of a name, whole or its first three letters."""
    text = reading.expect("|".join(f"{name}|{name[:3]}" for name in names))
    return next(place for place, name in enumerate(names) if name[:3] == text[:3])


def read_day_of_month(reading: Reading) -> None:
    """%d, %e."""
    reading.expect(" *")
    reading.day.set_day(reading.number(2, 1, 31))


def read_year_of_four(reading: Reading) -> None:
    """%E4Y."""
    reading.day.set_year(int(reading.expect(r"\d{4}")))


def counted(letter: str, width: int, least: int, most: int) -> Callable[[Reading], None]:
    """An element of weeks and days of the year, which counts once all is read."""
    return lambda reading: reading.day.add(letter, reading.number(width, least, most))


READERS: dict[str, Callable[[Reading], None]] = {
    "A": lambda reading: reading.day.add("u", read_name(reading, DAYS) + 1),
    "a": lambda reading: reading.day.add("u", read_name(reading, DAYS) + 1),
    "B": lambda reading: reading.day.set_month(read_name(reading, MONTHS) + 1),
    "b": lambda reading: reading.day.set_month(read_name(reading, MONTHS) + 1),
    "h": lambda reading: reading.day.set_month(read_name(reading, MONTHS) + 1),
    "m": lambda reading: reading.day.set_month(reading.number(2, 1, 12)),
    "d": read_day_of_month,
    "e": read_day_of_month,
    "Q": lambda reading: reading.day.set_quarter(reading.number(1, 1, 4)),
    "y": lambda reading: reading.day.set_short_year(reading.number(2, 0, 99)),
    "E4Y": read_year_of_four,
    "G": counted("G", 20, 0, 99_999),
    "g": counted("g", 2, 0, 99),
    "J": counted("J", 3, 1, 371),
    "j": counted("j", 3, 1, 366),
    "U": counted("U", 2, 0, 53),
    "W": counted("W", 2, 0, 53),
    "V": counted("V", 2, 1, 53),
    "u": counted("u", 1, 1, 7),
    "w": counted("u", 1, 0, 6),
    "H": read_hour,
    "k": read_hour,
    "I": read_twelve_hours,
    "l": read_twelve_hours,
    "P": read_half,
    "p": read_half,
    "M": read_minute,
    "S": read_second,
    "s": read_epoch,
    "Z": read_zone_name,
    "z": lambda reading: read_offset(reading, r"[+-]\d\d(?:\d\d)?"),
    "n": Reading.skip_blanks,
    "t": Reading.skip_blanks,
    "%": lambda reading: reading.skip("%"),
}


def parse_date(pattern: str, text: str) -> str:
    """PARSE_DATE. Raises OUT_OF_RANGE."""
    for _, element, _ in split_format(pattern):
        if FORBIDDEN_IN_DATES.fullmatch(element):
            raise out_of_range(f"Invalid format: %{element} is not allowed for the DATE type.")
    try:
        return read_text(pattern, text).day.resolve().isoformat()
    except (ValueError, OverflowError) as error:
        raise out_of_range(f"Invalid result from parsing function: {error}") from error


def parse_moment(pattern: str, text: str, zone: tzinfo) -> tuple[int, int]:
    """PARSE_TIMESTAMP: seconds since 1970, and nanoseconds. Raises OUT_OF_RANGE."""
    reading = read_text(pattern, text)
    if reading.epoch is not None:
        return reading.epoch, 0
    hour = reading.hour + (12 if reading.is_twelve_hours and reading.is_afternoon else 0)
    try:
        year, month, day = reading.day.numbers()
        rest = (month, day, hour, reading.minute, reading.second)
        seconds = seconds_of(year, rest, reading.zone or zone)
    except (ValueError, OverflowError) as error:
        raise out_of_range(f"Invalid result from parsing function: {error}") from error
    return seconds, 0 if reading.second == 60 else reading.nanos
