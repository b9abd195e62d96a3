"""Intervals of the PostgreSQL dialect: their texts, and arithmetic with times and numbers.

In storage an interval is as in GoogleSQL, in ISO 8601.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import UTC, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from functools import partial

from emulator.errors import SpannerError, invalid_argument, out_of_range
from emulator.sql.functions.intervals import DAY, DAYS_IN_MONTH, Interval, add_all, parse_iso
from emulator.sql.functions.numbers import Float, read_float
from emulator.sql.functions.postgres_interval_fields import IntervalFields
from emulator.sql.functions.postgres_numbers import to_form
from emulator.sql.functions.postgres_times import form_of, moment_of, zone_of
from emulator.sql.functions.served import ServedFunctions
from emulator.values.timestamp_texts import DEFAULT_ZONE
from emulator.values.types import DATE, INTERVAL, PG_NUMERIC, STRING, TIMESTAMP
from emulator.values.zones import place_in_zone

MICRO = 1_000
"""Nanoseconds of a microsecond, in which PostgreSQL counts."""
SECOND = 1_000_000 * MICRO
MONTHS = {
    **dict.fromkeys(("mon", "mons", "month", "months"), 1),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), 12),
    **dict.fromkeys(("dec", "decs", "decade", "decades"), 120),
    **dict.fromkeys(("c", "cent", "century", "centuries"), 1_200),
    **dict.fromkeys(("mil", "mils", "millennium", "millennia"), 12_000),
}
DAYS = {
    **dict.fromkeys(("d", "day", "days"), 1),
    **dict.fromkeys(("w", "week", "weeks"), 7),
}
SECONDS = {
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microseconds"), Decimal("0.000001")),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), Decimal("0.001")),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Decimal(3600)),
}
NUMBER = r"[+-]?(?:\d++\.?\d*+|\.\d++)"
PIECE = re.compile(
    rf"\s*(?:(?P<clock>[+-]?\d+:\d+(?::\d+(?:\.\d*)?)?)"
    rf"|(?P<years>[+-]?\d+)-(?P<months>\d+)|(?P<number>{NUMBER})\s*(?P<unit>[a-zA-Z]+)?)",
    re.ASCII,
)
ISO_PIECE = re.compile(rf"({NUMBER})([YMWDHS])", re.ASCII)
ISO_OTHER = re.compile(r"P(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?\Z", re.ASCII)
ISO_DATES = {"Y": "y", "M": "mon", "W": "w", "D": "d"}
ISO_TIMES = {"H": "h", "M": "m", "S": "s"}


class Sum:
    """An interval that is read piece by piece; what is left of a unit goes to smaller ones."""

    def __init__(self) -> None:
        self._months = Decimal(0)
        self._days = Decimal(0)
        self._seconds = Decimal(0)

    def add(self, amount: Decimal, unit: str) -> None:
        """Adds so many of a unit. Raises KeyError for an unknown one."""
        if unit in MONTHS:
            months = amount * MONTHS[unit]
            whole = months.to_integral_value(ROUND_DOWN)
            self._months += whole
            if MONTHS[unit] == 1:
                self._add_days((months - whole) * DAYS_IN_MONTH)
        elif unit in DAYS:
            self._add_days(amount * DAYS[unit])
        else:
            self._seconds += amount * SECONDS[unit]

    def _add_days(self, days: Decimal) -> None:
        whole = days.to_integral_value(ROUND_DOWN)
        self._days += whole
        self._seconds += (days - whole) * 86_400

    def interval(self, sign: int = 1) -> Interval:
        """What was added; with -1 all of it backwards."""
        micros = (self._seconds * 1_000_000).to_integral_value(ROUND_HALF_EVEN)
        parts = (int(self._months), int(self._days), int(micros) * MICRO)
        return Interval(*(sign * part for part in parts)).check_range()


def bad_interval(text: str) -> SpannerError:
    """A text that is no interval."""
    return invalid_argument(f'invalid input syntax for type interval: "{text}"')


def parse_interval(text: str) -> str:
    """A text in ISO 8601, in PostgreSQL's words, or as the SQL standard has it."""
    return parse_fields(text, IntervalFields())


def parse_fields(text: str, fields: IntervalFields) -> str:
    """The same of a literal with fields: a number without a unit is one of the smallest."""
    stripped = text.strip()
    try:
        if stripped.startswith("P"):
            return fields.trim(read_iso(stripped).interval()).iso()
        return fields.trim(read_words(stripped, fields)).iso()
    except (KeyError, ValueError) as error:
        raise bad_interval(text) from error


def read_iso(text: str) -> Sum:
    """P1Y2M3DT4H5M6.5S, P0001-02-03T04:05:06. Raises ValueError."""
    total = Sum()
    other = ISO_OTHER.match(text)
    if other is not None:
        for amount, unit in zip(other.groups(), ("y", "mon", "d", "h", "m", "s"), strict=True):
            total.add(Decimal(amount or 0), unit)
        return total
    date, _, clock = text[1:].partition("T")
    if not date and not clock:
        raise ValueError(text)
    for part, units in ((date, ISO_DATES), (clock, ISO_TIMES)):
        place = 0
        while place < len(part):
            match = ISO_PIECE.match(part, place)
            if match is None or match[2] not in units:
                raise ValueError(text)
            total.add(Decimal(match[1]), units[match[2]])
            place = match.end()
    return total


def read_words(text: str, fields: IntervalFields) -> Interval:
    """[@] 1 year 2 mons 3 04:05:06 [ago]. Raises ValueError, and KeyError for a unit."""
    words = text.removeprefix("@").strip()
    backwards = words.lower().endswith("ago")
    words = words[:-3] if backwards else words
    if not words.strip():
        raise ValueError(text)
    total, place, bare = Sum(), 0, None
    end = len(words.rstrip())
    while place < end:
        match = PIECE.match(words, place)
        if match is None:
            raise ValueError(text)
        place = match.end()
        if match["clock"]:
            if bare is not None:
                total.add(bare, "d")
                bare = None
            add_clock(total, match["clock"], fields)
        elif match["years"]:
            sign = -1 if match["years"].startswith("-") else 1
            total.add(Decimal(match["years"]), "y")
            total.add(sign * Decimal(match["months"]), "mon")
        elif match["unit"]:
            total.add(Decimal(match["number"]), match["unit"].lower())
        else:
            bare = Decimal(match["number"])
    if bare is not None:
        total.add(bare, fields.least)
    return total.interval(-1 if backwards else 1)


def add_clock(total: Sum, text: str, fields: IntervalFields) -> None:
    """04:05 or 04:05:06.7, with one sign for all of it."""
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("+-").split(":")
    units = fields.clock_units if len(parts) == 2 else ("h", "m", "s")
    for part, unit in zip(parts, units, strict=False):
        total.add(sign * Decimal(part), unit)


def make_interval(*parts: object) -> str:
    """make_interval(years, months, weeks, days, hours, mins, secs)."""
    total = Sum()
    for part, unit in zip(parts, ("y", "mon", "w", "d", "h", "m", "s"), strict=False):
        number = read_float(part) if isinstance(part, float | str) else part
        total.add(Decimal(str(number)), unit)
    return total.interval().iso()


def negate(form: str) -> str:
    """-interval."""
    value = parse_iso(form)
    return Interval(-value.months, -value.days, -value.nanos).check_range().iso()


def scale(form: str, by: Callable[[float], float]) -> str:
    """An interval of which each part is scaled; what is left of a part goes to the next."""
    value = parse_iso(form)
    months = by(float(value.months))
    days = by(float(value.days))
    from_months = rounded((months - int(months)) * DAYS_IN_MONTH)
    seconds = rounded((days - int(days) + from_months - int(from_months)) * 86_400)
    more = int(seconds / 86_400)
    micros = by(value.nanos / MICRO) + (seconds - more * 86_400) * 1_000_000
    whole = int(days) + more + int(from_months)
    return Interval(int(months), whole, round(micros) * MICRO).check_range().iso()


def rounded(number: float) -> float:
    """A number with six digits behind the point."""
    return round(number * 1_000_000) / 1_000_000


def multiply(form: str, factor: Float) -> str:
    """interval * double precision."""
    number = read_float(factor)
    return scale(form, lambda part: part * number)


def divide(form: str, divisor: Float) -> str:
    """interval / double precision."""
    number = read_float(divisor)
    if number == 0:
        raise out_of_range("division by zero")
    return scale(form, lambda part: part / number)


def average(values: list[object]) -> str | None:
    """avg of intervals."""
    if not values:
        return None
    return divide(add_all(values).check_range().iso(), float(len(values)))


def shift(form: str, interval: str, sign: int) -> str:
    """timestamptz + interval: months and days in the default zone, then the clock."""
    value = parse_iso(interval)
    moment = moment_of(form)
    try:
        if value.months or value.days:
            months = moment.year * 12 + moment.month - 1 + sign * value.months
            year, month = months // 12, months % 12 + 1
            day = min(moment.day, calendar.monthrange(year, month)[1])
            local = moment.replace(year=year, month=month, day=day, tzinfo=None, fold=0)
            local += sign * timedelta(days=value.days)
            moment = place_in_zone(local, DEFAULT_ZONE)
        micros = moment.astimezone(UTC) + sign * timedelta(microseconds=value.nanos // MICRO)
    except (ValueError, OverflowError, calendar.IllegalMonthError) as error:
        raise out_of_range("timestamp out of range") from error
    return form_of(micros)


def between(left: str, right: str) -> str:
    """timestamptz - timestamptz: hours, never days."""
    gap = moment_of(left, UTC) - moment_of(right, UTC)
    return Interval(nanos=gap // timedelta(microseconds=1) * MICRO).check_range().iso()


def extract_interval(field: str, form: str) -> str:
    """A field of an interval, as a numeric."""
    value, name = parse_iso(form), field.lower()
    sign = -1 if value.months < 0 else 1
    years, months = sign * (abs(value.months) // 12), sign * (abs(value.months) % 12)
    clock = abs(value.nanos)
    way = -1 if value.nanos < 0 else 1
    micros = way * (clock % (60 * SECOND) // MICRO)
    fields = {
        "year": Decimal(years),
        "month": Decimal(months),
        "quarter": Decimal(months // 3 + 1),
        "decade": Decimal(int(years / 10)),
        "century": Decimal(int(years / 100)),
        "millennium": Decimal(int(years / 1000)),
        "day": Decimal(value.days),
        "hour": Decimal(way * (clock // (3600 * SECOND))),
        "minute": Decimal(way * (clock // (60 * SECOND) % 60)),
        "second": Decimal(micros).scaleb(-6),
        "milliseconds": Decimal(micros).scaleb(-3),
        "microseconds": Decimal(micros),
    }
    if name == "epoch":
        # A year has 365.25 days, a month 30.
        seconds = Decimal(years) * 31_557_600 + (months * DAYS_IN_MONTH + value.days) * 86_400
        return to_form(seconds + Decimal(value.nanos // MICRO).scaleb(-6))
    if name not in fields:
        raise invalid_argument(f'unit "{field}" not recognized for type interval')
    return to_form(fields[name])


def carry(whole: int, rest: int, size: int) -> tuple[int, int]:
    """Whole units out of the rest, ``size`` of which are one; both have one sign then."""
    more = abs(rest) // size * (-1 if rest < 0 else 1)
    whole, rest = whole + more, rest - more * size
    if whole > 0 and rest < 0:
        return whole - 1, rest + size
    if whole < 0 and rest > 0:
        return whole + 1, rest - size
    return whole, rest


def justify_hours(value: Interval) -> Interval:
    """Whole days out of the clock; both have one sign then."""
    days, nanos = carry(value.days, value.nanos, DAY)
    return Interval(value.months, days, nanos)


def justify_days(value: Interval) -> Interval:
    """Whole months out of the days; both have one sign then."""
    months, days = carry(value.months, value.days, DAYS_IN_MONTH)
    return Interval(months, days, value.nanos)


def justify_interval(value: Interval) -> Interval:
    """Both; all three parts have one sign then."""
    step = justify_days(justify_hours(value))
    months, days, nanos = step.months, step.days, step.nanos
    if months > 0 and (days < 0 or (days == 0 and nanos < 0)):
        months, days = months - 1, days + DAYS_IN_MONTH
    elif months < 0 and (days > 0 or (days == 0 and nanos > 0)):
        months, days = months + 1, days - DAYS_IN_MONTH
    if days > 0 and nanos < 0:
        days, nanos = days - 1, nanos + DAY
    elif days < 0 and nanos > 0:
        days, nanos = days + 1, nanos - DAY
    return Interval(months, days, nanos)


def justified(change: Callable[[Interval], Interval]) -> Callable[[str], str]:
    """One of the three over stored forms."""
    return lambda form: change(parse_iso(form)).check_range().iso()


def date_in_zone(form: str, zone: str) -> str:
    """spanner.date: the day of a time in a zone."""
    return moment_of(form, zone_of(zone)).date().isoformat()


def date_bin(stride: str, form: str, origin: str) -> str:
    """spanner.date_bin: the begin of the stride in which a time lies."""
    value = parse_iso(parse_interval(stride))
    if value.months:
        raise out_of_range("timestamps cannot be binned into intervals containing months or years")
    micros = (value.days * DAY + value.nanos) // MICRO
    if micros <= 0:
        raise out_of_range("stride must be greater than zero")
    start = moment_of(origin, UTC)
    gap = (moment_of(form, UTC) - start) // timedelta(microseconds=1)
    return form_of(start + timedelta(microseconds=gap // micros * micros))


def shift_by_text(form: str, text: str, sign: int) -> str:
    """A time before or after by an interval that is a text."""
    return shift(form, parse_interval(text), sign)


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add = served.add

    for run in (justify_hours, justify_days, justify_interval):
        add(run.__name__.upper(), [INTERVAL], INTERVAL, justified(run))
    part = "pg_extract_interval"
    add("EXTRACT", [STRING, INTERVAL], PG_NUMERIC, extract_interval, function=part)
    day = "pg_spanner_date"
    add("SPANNER.DATE", [TIMESTAMP, STRING], DATE, date_in_zone, function=day)
    bin_ = "pg_spanner_date_bin"
    add("SPANNER.DATE_BIN", [STRING, TIMESTAMP, TIMESTAMP], TIMESTAMP, date_bin, function=bin_)
    for name, sign in (("TIMESTAMPTZ_ADD", 1), ("TIMESTAMPTZ_SUBTRACT", -1)):
        function = f"pg_spanner_{name.lower()}"
        run_shift = partial(shift_by_text, sign=sign)
        add(f"SPANNER.{name}", [TIMESTAMP, STRING], TIMESTAMP, run_shift, function=function)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_parse_interval": parse_interval,
    "pg_make_interval": make_interval,
    "pg_interval_neg": negate,
    "pg_interval_mul": multiply,
    "pg_interval_div": divide,
    "pg_timestamptz_add": lambda form, interval: shift(form, interval, 1),
    "pg_timestamptz_sub": lambda form, interval: shift(form, interval, -1),
    "pg_timestamptz_between": between,
    **SERVED.at_run_time,
}
