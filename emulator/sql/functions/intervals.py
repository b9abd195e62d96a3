"""INTERVAL: months, days and nanoseconds; in storage the ISO 8601 form that the wire has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.time import NANOS, nanos, timestamp_from_nanos

SECOND, MINUTE, HOUR, DAY = NANOS["SECOND"], NANOS["MINUTE"], NANOS["HOUR"], NANOS["DAY"]
DAYS_IN_MONTH = 30
MONTHS_MAX, DAYS_MAX, NANOS_MAX = 120_000, 3_660_000, 87_840_000 * HOUR
UNIT_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
UNIT_DAYS = {"WEEK": 7, "DAY": 1}
PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
ORDER_OFFSET = 10**22
"""Makes every normalised interval a positive number of 23 digits, which sorts as text."""

SECONDS = re.compile(r"\s*+([+-]?)(\d*+)(?:\.(\d{1,9}))?\s*+\Z", re.A)
ISO = re.compile(
    r"P(?=.)(?P<date>(?:-?\d+[YMWD])*)(?:T(?P<time>(?:-?\d+[HM]|-?\d+(?:[.,]\d{1,9})?S)*))?\Z",
    re.A,
)
ISO_PART = re.compile(r"(-?)(?<!\d)(\d++)(?:[.,](\d++))?([YMWDHS])", re.A)


@dataclass(frozen=True, slots=True)
class Interval:
    """An amount of time; each part has a sign of its own."""

    months: int = 0
    days: int = 0
    nanos: int = 0

    def check_range(self) -> Interval:
        """Itself. Raises OUT_OF_RANGE for what INTERVAL does not hold."""
        parts = ((self.months, MONTHS_MAX), (self.days, DAYS_MAX), (self.nanos, NANOS_MAX))
        if any(abs(part) > most for part, most in parts):
            raise out_of_range(f"Interval is out of range: {self.text()}")
        return self

    def iso(self) -> str:
        """As the wire has it: P1Y2M3DT4H5M6.789S."""
        years, months = signed_divmod(self.months, 12)
        date = "".join(
            f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (self.days, "D")) if n
        )
        hours, rest = signed_divmod(self.nanos, HOUR)
        minutes, rest = signed_divmod(rest, MINUTE)
        time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
        if rest:
            seconds, fraction = divmod(abs(rest), SECOND)
            point = f".{fraction:09d}".rstrip("0") if fraction else ""
            time += f"{'-' if rest < 0 else ''}{seconds}{point}S"
        return f"P{date}{'T' if time else ''}{time}" if date or time else "P0Y"

    def text(self) -> str:
        """As CAST writes it: Y-M D H:M:S."""
        years, months = divmod(abs(self.months), 12)
        hours, rest = divmod(abs(self.nanos), HOUR)
        minutes, rest = divmod(rest, MINUTE)
        date = f"{'-' if self.months < 0 else ''}{years}-{months} {self.days}"
        return f"{date} {'-' if self.nanos < 0 else ''}{hours}:{minutes}:{seconds_text(rest)}"


def seconds_text(value: int) -> str:
    """Seconds of so many nanoseconds, with 0, 3, 6 or 9 digits after the point."""
    seconds, fraction = divmod(value, SECOND)
    if not fraction:
        return str(seconds)
    digits = f"{fraction:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{seconds}.{digits}"


def signed_divmod(value: int, size: int) -> tuple[int, int]:
    """Whole and rest towards zero: both have the sign of the value."""
    whole, rest = divmod(abs(value), size)
    return (whole, rest) if value >= 0 else (-whole, -rest)


def parse_iso(text: str) -> Interval:
    """ISO 8601 -> an interval; parts come in any order, and add up. Raises ValueError."""
    match = ISO.match(text)
    if match is None:
        raise ValueError(f"Invalid INTERVAL: {text!r}")
    months = add_parts(match["date"], {"Y": 12, "M": 1})
    days = add_parts(match["date"], {"W": 7, "D": 1})
    nanos = add_parts(match["time"] or "", {"H": HOUR, "M": MINUTE, "S": SECOND})
    return Interval(months, days, nanos).check_range()


def add_parts(text: str, sizes: Mapping[str, int]) -> int:
    """The sum of those parts of ISO 8601 that have a size."""
    total = 0
    for sign, whole, fraction, unit in ISO_PART.findall(text):
        if unit in sizes:
            size = int(whole) * sizes[unit] + int(f"{fraction:0<9}" if fraction else 0)
            total += -size if sign else size
    return total


def range_pattern(first: str, last: str) -> re.Pattern[str]:
    """The writing of the parts from one to another: Y-M D H:M:S."""
    begin, end = PARTS.index(first), PARTS.index(last)
    pieces = []
    if begin == 0 and end >= 1:
        pieces.append(r"(?P<msign>[+-]?)(?P<YEAR>\d+)-(?P<MONTH>\d+)")
    elif begin == 1:
        pieces.append(r"(?P<msign>[+-]?)(?P<MONTH>\d+)")
    if begin <= 2 <= end:
        pieces.append(r"(?P<DAY>[+-]?\d+)")
    clock = [p for p in PARTS[3:] if begin <= PARTS.index(p) <= end]
    if clock:
        numbers = {"SECOND": r"(?P<SECOND>\d+)(?:\.(?P<fraction>\d{1,9}))?"}
        listed = ":".join(numbers.get(p, rf"(?P<{p}>\d+)") for p in clock)
        pieces.append(rf"(?P<tsign>[+-]?){listed}")
    return re.compile(" ".join(pieces) + r"\Z", re.A)


RANGES = {
    (first, last): range_pattern(first, last)
    for n, first in enumerate(PARTS)
    for last in PARTS[n + 1 :]
}
UNAMBIGUOUS = [
    RANGES[pair]
    for pair in (
        *(("YEAR", last) for last in PARTS[1:]),
        ("MONTH", "SECOND"),
        ("MONTH", "MINUTE"),
        ("MONTH", "HOUR"),
        ("DAY", "SECOND"),
        ("DAY", "MINUTE"),
        ("HOUR", "SECOND"),
    )
]


def read_match(match: re.Match[str]) -> Interval:
    """The interval of a writing that fits."""
    groups = match.groupdict()
    number = {part: int(groups.get(part) or 0) for part in PARTS}
    months = number["YEAR"] * 12 + number["MONTH"]
    clock = number["HOUR"] * HOUR + number["MINUTE"] * MINUTE + number["SECOND"] * SECOND
    clock += int(f"{groups.get('fraction') or '':0<9}")
    return Interval(
        -months if groups.get("msign") == "-" else months,
        number["DAY"],
        -clock if groups.get("tsign") == "-" else clock,
    ).check_range()


def parse_range(text: str, first: str, last: str) -> str:
    """INTERVAL 'text' first TO last. Raises INVALID_ARGUMENT."""
    if (first, last) not in RANGES:
        raise invalid_argument(f"Interval literals do not support {first} TO {last}")
    match = RANGES[first, last].match(text)
    if match is None:
        raise invalid_argument(f"Invalid INTERVAL value {text!r} of {first} TO {last}")
    return read_match(match).iso()


def parse_interval(text: str) -> str:
    """CAST of a string: ISO 8601, or a writing that can be read in one way only."""
    try:
        if text.startswith("P"):
            return parse_iso(text).iso()
    except ValueError as error:
        raise out_of_range(f"Could not cast {text!r} to type INTERVAL") from error
    for each in UNAMBIGUOUS:
        match = each.match(text)
        if match is not None:
            return read_match(match).iso()
    raise out_of_range(f"Could not cast {text!r} to type INTERVAL")


def interval_of_unit(amount: int, unit: str) -> str:
    """INTERVAL n unit."""
    if unit in UNIT_MONTHS:
        return Interval(months=amount * UNIT_MONTHS[unit]).check_range().iso()
    if unit in UNIT_DAYS:
        return Interval(days=amount * UNIT_DAYS[unit]).check_range().iso()
    if unit in NANOS:
        return Interval(nanos=amount * NANOS[unit]).check_range().iso()
    raise invalid_argument(f"Unsupported date part in INTERVAL: {unit}")


def interval_of_seconds(text: str) -> str:
    """INTERVAL 'seconds' SECOND, with a fraction. Raises INVALID_ARGUMENT."""
    match = SECONDS.match(text)
    if match is None:
        raise invalid_argument(f"Invalid amount of an INTERVAL: {text!r}")
    size = int(match[2] or 0) * SECOND + int(f"{match[3] or '':0<9}")
    return Interval(nanos=-size if match[1] == "-" else size).check_range().iso()


def make_interval(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:
    """MAKE_INTERVAL."""
    clock = hour * HOUR + minute * MINUTE + second * SECOND
    return Interval(year * 12 + month, day, clock).check_range().iso()


def extract_part(part: str, form: str) -> int:
    """EXTRACT(part FROM interval)."""
    interval = parse_iso(form)
    if part in {"YEAR", "MONTH"}:
        return signed_divmod(interval.months, 12)[part == "MONTH"]
    if part == "DAY":
        return interval.days
    if part == "HOUR":
        return signed_divmod(interval.nanos, HOUR)[0]
    if part == "MINUTE":
        return signed_divmod(signed_divmod(interval.nanos, HOUR)[1], MINUTE)[0]
    below_minute = signed_divmod(interval.nanos, MINUTE)[1]
    if part == "SECOND":
        return signed_divmod(below_minute, SECOND)[0]
    if part in {"MILLISECOND", "MICROSECOND", "NANOSECOND"}:
        return signed_divmod(signed_divmod(below_minute, SECOND)[1], NANOS[part])[0]
    raise invalid_argument(f"EXTRACT from INTERVAL does not support the {part} date part")


def carry(high: int, low: int, size: int) -> tuple[int, int]:
    """What is whole goes from the low part to the high one; both end with the same sign."""
    whole, low = signed_divmod(low, size)
    high += whole
    if high > 0 > low:
        return high - 1, low + size
    if high < 0 < low:
        return high + 1, low - size
    return high, low


def justify_hours(form: str) -> str:
    """JUSTIFY_HOURS: less than a day in the time."""
    interval = parse_iso(form)
    days, clock = carry(interval.days, interval.nanos, DAY)
    return Interval(interval.months, days, clock).check_range().iso()


def justify_days(form: str) -> str:
    """JUSTIFY_DAYS: less than a month in the days."""
    interval = parse_iso(form)
    months, days = carry(interval.months, interval.days, DAYS_IN_MONTH)
    return Interval(months, days, interval.nanos).check_range().iso()


def justify_interval(form: str) -> str:
    """JUSTIFY_INTERVAL: both, and one sign for all parts."""
    interval = parse_iso(form)
    months, clock = carry(
        interval.months, interval.days * DAY + interval.nanos, DAYS_IN_MONTH * DAY
    )
    days, clock = signed_divmod(clock, DAY)
    return Interval(months, days, clock).check_range().iso()


def order_text(form: str) -> str:
    """A text that sorts and equals as intervals do: a month is 30 days, a day 24 hours."""
    interval = parse_iso(form)
    whole = (interval.months * DAYS_IN_MONTH + interval.days) * DAY + interval.nanos
    return f"{whole + ORDER_OFFSET:023d}"


def order_texts(intervals: str) -> str:
    """An array of intervals as the texts that sort and equal as they do."""
    items = [None if item is None else order_text(item) for item in json.loads(intervals)]
    return json.dumps(items)


def add_intervals(left: str, right: str, sign: int) -> str:
    """interval + interval, interval - interval."""
    first, other = parse_iso(left), parse_iso(right)
    return (
        Interval(
            first.months + sign * other.months,
            first.days + sign * other.days,
            first.nanos + sign * other.nanos,
        )
        .check_range()
        .iso()
    )


def shift_timestamp(form: str, interval: str, sign: int) -> str:
    """timestamp + interval, timestamp - interval."""
    amount = parse_iso(interval)
    if amount.months:
        raise out_of_range(
            "TIMESTAMP +/- INTERVAL is not supported for intervals with non-zero MONTH or YEAR part"
        )
    return timestamp_from_nanos(nanos(form) + sign * (amount.days * DAY + amount.nanos))


def multiply(form: str, factor: int) -> str:
    """interval * number."""
    interval = parse_iso(form)
    return (
        Interval(interval.months * factor, interval.days * factor, interval.nanos * factor)
        .check_range()
        .iso()
    )


def divide(form: str, divisor: int) -> str:
    """interval / number: what is left of a part goes to the next one."""
    if not divisor:
        raise out_of_range("division by zero: INTERVAL / 0")
    return divide_interval(parse_iso(form), divisor)


def divide_interval(interval: Interval, divisor: int) -> str:
    """The same of an interval that may be out of range."""
    sign, size = (-1 if divisor < 0 else 1), abs(divisor)
    months, rest = signed_divmod(interval.months, size)
    days, rest = signed_divmod(interval.days + rest * DAYS_IN_MONTH, size)
    clock, _ = signed_divmod(interval.nanos + rest * DAY, size)
    return Interval(sign * months, sign * days, sign * clock).check_range().iso()


def subtract_timestamps(left: str, right: str) -> str:
    """timestamp - timestamp."""
    return Interval(nanos=nanos(left) - nanos(right)).check_range().iso()


def subtract_dates(left: str, right: str) -> str:
    """date - date."""
    midnight = "T00:00:00.000000000Z"
    return (
        Interval(days=(nanos(left + midnight) - nanos(right + midnight)) // DAY).check_range().iso()
    )


def add_all(values: list[object]) -> Interval:
    """The sum, which may be out of range."""
    intervals = [parse_iso(str(value)) for value in values]
    months, days, clock = (sum(part) for part in zip(*map(parts_of, intervals), strict=True))
    return Interval(months, days, clock)


def total(values: list[object]) -> str | None:
    """SUM."""
    return add_all(values).check_range().iso() if values else None


def average(values: list[object]) -> str | None:
    """AVG."""
    return divide_interval(add_all(values), len(values)) if values else None


def parts_of(interval: Interval) -> tuple[int, int, int]:
    """The three parts."""
    return interval.months, interval.days, interval.nanos


AGGREGATES: dict[str, Callable[[list[object]], object]] = {
    "agg_sum_interval": total,
    "agg_avg_interval": average,
    "agg_min_interval": lambda values: min(values, key=lambda v: order_text(str(v)), default=None),
    "agg_max_interval": lambda values: max(values, key=lambda v: order_text(str(v)), default=None),
}

FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_interval": interval_of_unit,
    "fn_interval_range": parse_range,
    "fn_make_interval": make_interval,
    "fn_extract_interval": extract_part,
    "fn_justify_hours": justify_hours,
    "fn_justify_days": justify_days,
    "fn_justify_interval": justify_interval,
    "fn_interval_order": order_text,
    "fn_greatest_interval": lambda *forms: max(forms, key=order_text),
    "fn_least_interval": lambda *forms: min(forms, key=order_text),
    "fn_interval_orders": order_texts,
    "fn_interval_add": lambda left, right: add_intervals(left, right, 1),
    "fn_interval_sub": lambda left, right: add_intervals(left, right, -1),
    "fn_interval_mul": multiply,
    "fn_interval_div": divide,
    "fn_timestamp_plus": lambda form, interval: shift_timestamp(form, interval, 1),
    "fn_timestamp_minus": lambda form, interval: shift_timestamp(form, interval, -1),
    "fn_timestamp_between": subtract_timestamps,
    "fn_date_between": subtract_dates,
    "cast_string_interval": parse_interval,
    "cast_interval_string": lambda form: parse_iso(form).text(),
}
