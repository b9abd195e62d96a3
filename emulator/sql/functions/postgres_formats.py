"""to_char, to_date, to_timestamp and to_number of the PostgreSQL dialect: template patterns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from emulator.errors import invalid_argument, out_of_range, unimplemented
from emulator.sql.functions.intervals import parse_iso
from emulator.sql.functions.numbers import Float, read_float
from emulator.sql.functions.postgres_moments import JULIAN_DAYS
from emulator.sql.functions.postgres_numbers import rounded_to, to_form
from emulator.sql.functions.postgres_times import form_of, moment_of
from emulator.sql.functions.served import ServedFunctions
from emulator.values import pg_numeric
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
NUMBER_WORDS = ("FM", "D", "G", "SG", "S", "MI", "PL", "PR", "L", "V", "EEEE", "RN", "TH")
NUMBER_PATTERN = re.compile(
    "|".join(('"[^"]*"', *NUMBER_WORDS, *(word.lower() for word in NUMBER_WORDS), ".")), re.DOTALL
)
"""Words of templates of numbers are in capitals or in small letters, not in both."""
SCIENTIFIC = re.compile(r"9\.(9+)(?:EEEE|eeee)")
"""The one template with an exponent that is supported: as C prints %e."""
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


def read_number_piece(piece: str) -> str:
    """A piece of a template of numbers; words in capitals."""
    return piece.upper() if piece.upper() in NUMBER_WORDS else piece


class Template:
    """A template of numbers: its digits and signs."""

    def __init__(self, text: str) -> None:
        self.pieces = [read_number_piece(each) for each in NUMBER_PATTERN.findall(text)]
        for each in self.pieces:
            if each in {"V", "EEEE", "RN", "TH", "PL", "SG", "L"}:
                raise unimplemented(f"the pattern {each} of numbers")
        self.filled = "FM" not in self.pieces
        self.pieces = [each for each in self.pieces if each != "FM"]
        self.point = next((n for n, p in enumerate(self.pieces) if p in {".", "D"}), None)
        whole = self.pieces if self.point is None else self.pieces[: self.point]
        rest = [] if self.point is None else self.pieces[self.point + 1 :]
        self.whole = [p for p in whole if p in {"9", "0"}]
        self.scale = sum(p in {"9", "0"} for p in rest)
        last = max((n for n, p in enumerate(self.pieces) if p in {"9", "0"}), default=-1)
        if "PR" in self.pieces and self.pieces.index("PR") < last:
            raise invalid_argument('"9" must be ahead of "PR"')
        self.leading_sign = "S" in self.pieces and self.pieces.index("S") < last

    def has(self, *names: str) -> bool:
        """Whether the template has one of some patterns."""
        return any(name in self.pieces for name in names)


def char_number(number: Decimal, text: str) -> str:
    """to_char of a number that is finite."""
    template = Template(text)
    scaled = abs(rounded_to(number, template.scale))
    negative = number < 0 and scaled != 0
    digits = f"{scaled:.{template.scale}f}"
    whole, _, fraction = digits.partition(".")
    if len(whole) > len(template.whole):
        return overflow(template, number < 0)
    hidden = (
        whole == "0"
        and template.scale
        and (template.filled or scaled != 0 or "0" in after_point(template))
    )
    if hidden and "0" not in template.whole:
        whole = ""
    first_zero = next((n for n, p in enumerate(template.whole) if p == "0"), len(template.whole))
    shown_from = min(len(template.whole) - len(whole), first_zero)
    padded = whole.rjust(len(template.whole), "0")
    return lay_out(template, padded, fraction, shown_from, negative=negative)


def overflow(template: Template, negative: bool) -> str:
    """A number with more digits than the template has room for."""
    fraction = "#" * template.scale
    return lay_out(template, "#" * len(template.whole), fraction, 0, negative=negative)


def lay_out(
    template: Template, whole: str, fraction: str, shown_from: int, *, negative: bool
) -> str:
    """The digits in their places, with the sign where the template has it."""
    if not template.filled:
        zeros = [n for n, p in enumerate(after_point(template)) if p == "0"]
        kept = max(len(fraction.rstrip("0")), zeros[-1] + 1 if zeros else 0)
        fraction = fraction[:kept]
    layout = Layout(template, whole, fraction, shown_from, negative=negative)
    for place, piece in enumerate(template.pieces):
        layout.add(piece, behind=template.point is not None and place > template.point)
    return "".join(layout.out)


class Layout:
    """A number that is laid out, piece by piece."""

    def __init__(
        self, template: Template, whole: str, fraction: str, shown_from: int, *, negative: bool
    ) -> None:
        self.out: list[str] = []
        self._template = template
        self._blank = " " if template.filled else ""
        self._whole = iter(whole)
        self._fraction = iter(fraction)
        self._left = shown_from
        self._negative = negative
        self._placed = False

    def add(self, piece: str, *, behind: bool) -> None:
        """Adds what a piece of the template shows."""
        if piece in {"9", "0"}:
            self._add_digit(behind=behind)
        elif piece in {".", "D"}:
            if self._template.scale:
                self._place_sign()
                self.out.append(".")
        elif piece in {",", "G"}:
            self.out.append("," if self._placed else self._blank)
        elif piece != "S" or not self._template.leading_sign:
            self.out.append(sign_piece(piece, self._negative, self._template.filled))

    def _add_digit(self, *, behind: bool) -> None:
        if behind:
            self._place_sign()
            self.out.append(next(self._fraction, ""))
            return
        digit = next(self._whole)
        if self._left > 0:
            self._left -= 1
            self.out.append(self._blank)
            return
        self._place_sign()
        self.out.append(digit)

    def _place_sign(self) -> None:
        """The sign stands before the first digit, unless the template says where."""
        if self._placed:
            return
        self._placed = True
        if self._template.has("PR"):
            self.out.append("<" if self._negative else self._blank)
        elif self._template.leading_sign:
            self.out.append("-" if self._negative else "+")
        elif not self._template.has("S", "MI"):
            self.out.append("-" if self._negative else self._blank)


def after_point(template: Template) -> list[str]:
    """The digits behind the point."""
    rest = [] if template.point is None else template.pieces[template.point + 1 :]
    return [p for p in rest if p in {"9", "0"}]


def sign_piece(piece: str, negative: bool, filled: bool) -> str:
    """S, MI, PR, or a text."""
    if piece == "S":
        return "-" if negative else "+"
    if piece == "MI":
        return "-" if negative else (" " if filled else "")
    if piece == "PR":
        return ">" if negative else (" " if filled else "")
    return piece.strip('"') if piece.startswith('"') else piece


def char_bigint(value: int, template: str) -> str:
    """to_char of a bigint."""
    return char_number(Decimal(value), template)


def char_numeric(form: str, template: str) -> str:
    """to_char of a numeric."""
    number = pg_numeric.number_of_form(form)
    if number.is_nan():
        raise unimplemented("to_char of NaN")
    return char_number(number, template)


def char_float(value: Float, template: str) -> str:
    """to_char of a floating number."""
    number = read_float(value)
    scientific = SCIENTIFIC.fullmatch(template)
    if scientific is not None and math.isfinite(number):
        text = f"{number:.{len(scientific[1])}e}"
        return text if text.startswith("-") else f" {text}"
    if not math.isfinite(number):
        raise unimplemented("to_char of NaN and infinities")
    return char_number(Decimal(repr(number)), template)


def to_number(text: str, template: str) -> str:
    """to_number: the digits of a text that the template has room for."""
    parsed = Template(template)
    negative = "-" in text or (parsed.has("PR") and "<" in text)
    whole, point, fraction = re.sub(r"[^0-9.]", "", text).partition(".")
    whole = whole[: len(parsed.whole)]
    fraction = fraction[: parsed.scale] if point else ""
    if not whole and not fraction:
        raise invalid_argument(f'invalid input syntax for type numeric: "{text}"')
    number = Decimal(f"{whole or 0}.{fraction}" if fraction else whole or "0")
    return to_form(-number if negative else number)


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
