"""Functions of TIMESTAMP and DATE."""

from __future__ import annotations

import calendar
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from operator import index

import grpc

from emulator.errors import SpannerError, invalid_argument, out_of_range
from emulator.sql.functions.arrays import GENERATED_MAX, too_many_items
from emulator.sql.functions.format_elements import (
    format_moment,
    week,
)
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.time_parsing import parse_date, parse_moment
from emulator.sql.functions.zones import DEFAULT_ZONE, zone_of
from emulator.values.local_times import LocalTime, local_time, printed_time, timestamp_in_zone
from emulator.values.timestamp_texts import timestamp_form
from emulator.values.types import DATE, INT64, STRING, TIMESTAMP

NANOS = {
    "NANOSECOND": 1,
    "MICROSECOND": 1_000,
    "MILLISECOND": 1_000_000,
    "SECOND": 1_000_000_000,
    "MINUTE": 60_000_000_000,
    "HOUR": 3_600_000_000_000,
    "DAY": 86_400_000_000_000,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_ZERO = EPOCH.date()
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def nanos(form: str) -> int:
    """The nine-digit form -> nanoseconds since 1970."""
    seconds = (datetime.fromisoformat(form[:19] + "+00:00") - EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + int(form[20:29])


def timestamp_from_nanos(value: int) -> str:
    """Nanoseconds since 1970 -> the nine-digit form."""
    seconds, fraction = divmod(value, 1_000_000_000)
    try:
        moment = EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise out_of_range(f"Timestamp out of range: {value} ns") from error
    return f"{moment.replace(tzinfo=None).isoformat()}.{fraction:09d}Z"


def unit_of(unit: str, units: dict[str, int], function: str) -> int:
    """The size of a unit."""
    if unit not in units:
        raise invalid_argument(f"{function} does not support the {unit} date part")
    return units[unit]


def timestamp_add(form: str, amount: int, unit: str) -> str:
    """TIMESTAMP_ADD."""
    return timestamp_from_nanos(nanos(form) + amount * unit_of(unit, NANOS, "TIMESTAMP_ADD"))


def timestamp_diff(left: str, right: str, unit: str) -> int:
    """TIMESTAMP_DIFF: whole units, towards zero."""
    difference = nanos(left) - nanos(right)
    whole = abs(difference) // unit_of(unit, NANOS, "TIMESTAMP_DIFF")
    if whole > INT64_MAX:
        raise out_of_range(f"TIMESTAMP_DIFF at {unit} precision overflows int64")
    return whole if difference >= 0 else -whole


def timestamp_trunc(form: str, unit: str, zone: str) -> str:
    """TIMESTAMP_TRUNC: minutes and longer in a zone."""
    if unit in NANOS and unit != "DAY":
        value = nanos(form)
        shift = 0
        if unit in {"MINUTE", "HOUR"}:
            shift = offset_nanos(form, zone)
        return timestamp_from_nanos(value - (value + shift) % NANOS[unit])
    if form >= LAST_DAY and is_past_last_day(form, zone):
        return trunc_past_last_day(form, unit, zone)
    first_day = date_trunc(date_in(form, zone), unit, "TIMESTAMP_TRUNC")
    try:
        return timestamp_form(first_day, zone_of(zone))
    except ValueError as error:
        raise out_of_range(f"Truncating to {unit} gives no TIMESTAMP: {error}") from error


LAST_DAY = "9999-12-31"
NEXT_MIDNIGHT_NANOS = 253_402_300_800 * 1_000_000_000
"""What follows the last day: east of Greenwich its last hours belong to the day after it."""


def offset_nanos(form: str, zone: str) -> int:
    """How far a zone is ahead of UTC at a time."""
    return local_time(form, zone_of(zone)).offset // timedelta(seconds=1) * 1_000_000_000


def is_past_last_day(form: str, zone: str) -> bool:
    """Whether the day in a zone is one after the last that a DATE can be."""
    return nanos(form) + offset_nanos(form, zone) >= NEXT_MIDNIGHT_NANOS


def trunc_past_last_day(form: str, unit: str, zone: str) -> str:
    """TIMESTAMP_TRUNC on the first day of the year 10000, a Saturday of the ISO year 9999."""
    if unit in {"DAY", "MONTH", "QUARTER", "YEAR"}:
        return timestamp_from_nanos(NEXT_MIDNIGHT_NANOS - offset_nanos(form, zone))
    return timestamp_form(date_trunc(LAST_DAY, unit, "TIMESTAMP_TRUNC"), zone_of(zone))


WEEK_STARTS = {"WEEK": 6, "ISOWEEK": 0}
"""The weekday that begins each kind of week; Monday is 0."""


def week_start(day: date, unit: str) -> date:
    """The first day of the week."""
    return day - timedelta(days=(day.weekday() - WEEK_STARTS[unit]) % 7)


def date_trunc(form: str, unit: str, function: str = "DATE_TRUNC") -> str:
    """DATE_TRUNC."""
    day = date.fromisoformat(form)
    starts: dict[str, Callable[[], date]] = {
        "DAY": lambda: day,
        "MONTH": lambda: day.replace(day=1),
        "QUARTER": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "YEAR": lambda: day.replace(month=1, day=1),
        "ISOYEAR": lambda: date.fromisocalendar(day.isocalendar().year, 1, 1),
        **dict.fromkeys(WEEK_STARTS, lambda: week_start(day, unit)),
    }
    if unit not in starts:
        raise invalid_argument(f"{function} does not support the {unit} date part")
    try:
        return starts[unit]().isoformat()
    except OverflowError as error:
        raise out_of_range(f"{function} resulted in a date before 0001-01-01") from error


def date_add(form: str, amount: int, unit: str) -> str:
    """DATE_ADD: months end at the last day that there is."""
    day = date.fromisoformat(form)
    try:
        if unit in {"DAY", "WEEK"}:
            return (day + timedelta(days=amount * (7 if unit == "WEEK" else 1))).isoformat()
        months = day.year * 12 + day.month - 1 + amount * unit_of(unit, MONTHS, "DATE_ADD")
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last)).isoformat()
    except (OverflowError, ValueError) as error:
        raise out_of_range(f"Date out of range: {form} and {amount} {unit}") from error


def subtract(add: Callable[[str, int, str], str]) -> Callable[[str, int, str], str]:
    """DATE_SUB and TIMESTAMP_SUB: the least INT64 has a negative here, which SQLite's - has not."""
    return lambda form, amount, unit: add(form, -amount, unit)


def generate_dates(first: str, last: str, amount: int, unit: str) -> str:
    """GENERATE_DATE_ARRAY: both ends are in; each date is counted from the one before."""
    if amount == 0:
        raise out_of_range("Sequence step cannot be 0.")
    dates: list[str] = []
    current: str | None = first
    while current is not None and ((current <= last) if amount > 0 else (current >= last)):
        if len(dates) >= GENERATED_MAX:
            raise too_many_items()
        dates.append(current)
        current = following_date(current, amount, unit)
    return json.dumps(dates, separators=(",", ":"))


def following_date(form: str, amount: int, unit: str) -> str | None:
    """The date so much later; None where there is none."""
    try:
        return date_add(form, amount, unit)
    except SpannerError as error:
        if error.code is not grpc.StatusCode.OUT_OF_RANGE:
            raise
        return None


def date_diff(left: str, right: str, unit: str) -> int:
    """DATE_DIFF: how many borders of the unit lie between."""
    first, second = date.fromisoformat(left), date.fromisoformat(right)
    if unit in WEEK_STARTS:
        # Numbers of weeks since the year 1, which began on a Monday.
        start = WEEK_STARTS[unit]
        return (first.toordinal() - 1 - start) // 7 - (second.toordinal() - 1 - start) // 7
    months = (first.year - second.year) * 12 + first.month - second.month
    quarters = (first.year * 4 + (first.month - 1) // 3) - (
        second.year * 4 + (second.month - 1) // 3
    )
    differences = {
        "DAY": (first - second).days,
        "MONTH": months,
        "QUARTER": quarters,
        "YEAR": first.year - second.year,
        "ISOYEAR": first.isocalendar().year - second.isocalendar().year,
    }
    return unit_of(unit, differences, "DATE_DIFF")


def extract_date(unit: str, form: str) -> int:
    """EXTRACT(part FROM date)."""
    day = date.fromisoformat(form)
    if unit.startswith("WEEK"):
        return week(day, unit_of(unit, WEEK_STARTS, "EXTRACT"))
    parts = {
        "YEAR": day.year,
        "MONTH": day.month,
        "DAY": day.day,
        "QUARTER": (day.month - 1) // 3 + 1,
        "DAYOFWEEK": day.isoweekday() % 7 + 1,
        "DAYOFYEAR": day.timetuple().tm_yday,
        "ISOWEEK": day.isocalendar().week,
        "ISOYEAR": day.isocalendar().year,
    }
    return unit_of(unit, parts, "EXTRACT")


def extract_timestamp(unit: str, form: str, zone: str) -> int | str:
    """EXTRACT(part FROM timestamp AT TIME ZONE zone)."""
    if unit == "DATE":
        return date_in(form, zone)
    moment = local_time(form, zone_of(zone))
    parts = {
        "HOUR": moment.local.hour,
        "MINUTE": moment.local.minute,
        "SECOND": moment.local.second,
        "MILLISECOND": int(form[20:23]),
        "MICROSECOND": int(form[20:26]),
        "NANOSECOND": int(form[20:29]),
    }
    if unit in parts:
        return parts[unit]
    part = extract_date(unit, moment.local.date().isoformat())
    return part + moment.years if unit in {"YEAR", "ISOYEAR"} else part


def timestamp_of_units(size: int) -> Callable[[int], str]:
    """TIMESTAMP_SECONDS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS."""
    return lambda value: timestamp_from_nanos(index(value) * size)


def units_of_timestamp(size: int) -> Callable[[str], int]:
    """UNIX_SECONDS, UNIX_MILLIS, UNIX_MICROS: rounded towards minus infinity."""
    return lambda form: nanos(form) // size


def refuse_bad_values(function: Callable[..., str]) -> Callable[..., str]:
    """ValueError -> OUT_OF_RANGE."""

    def call(*arguments: object) -> str:
        try:
            return function(*arguments)
        except (ValueError, OverflowError) as error:
            raise out_of_range(str(error)) from error

    return call


def cut_to_int32(number: int) -> int:
    """The lower 32 bits of an integer, with their sign."""
    return (number + 2**31) % 2**32 - 2**31


def date_of_parts(year: int, month: int, day: int) -> str:
    """DATE(year, month, day), each cut to 32 bits as GoogleSQL does."""
    year, month, day = (cut_to_int32(each) for each in (year, month, day))
    try:
        return date(year, month, day).isoformat()
    except (ValueError, OverflowError) as error:
        parts = f"{year:04d}-{month:02d}-{day:02d}"
        raise out_of_range(f"Input calculates to invalid date: {parts}") from error


def date_from_unix_date(days: int) -> str:
    """DATE_FROM_UNIX_DATE."""
    try:
        return (DAY_ZERO + timedelta(days=days)).isoformat()
    except OverflowError as error:
        first, last = ((day - DAY_ZERO).days for day in (date.min, date.max))
        raise out_of_range(
            f"DATE_FROM_UNIX_DATE range is {first} to {last} but saw {days}"
        ) from error


def timestamp_in(text: str, zone: str | None = None) -> str:
    """TIMESTAMP(text or date [, zone]): the text names no zone where an argument does."""
    return timestamp_form(text, zone_of(zone or DEFAULT_ZONE), zone_allowed=zone is None)


def date_in(form: str, zone: str = DEFAULT_ZONE) -> str:
    """DATE(timestamp [, zone])."""
    try:
        return local_time(form, zone_of(zone)).date().isoformat()
    except ValueError as error:
        raise out_of_range(f"No DATE is as early or as late as {form} in {zone}") from error


def string_in(form: str, zone: str = DEFAULT_ZONE) -> str:
    """STRING(timestamp [, zone])."""
    return timestamp_in_zone(form, zone_of(zone))


def format_timestamp(pattern: str, form: str, zone: str = DEFAULT_ZONE) -> str:
    """FORMAT_TIMESTAMP."""
    return format_moment(pattern, printed_time(form, zone_of(zone)))


def format_date(pattern: str, form: str) -> str:
    """FORMAT_DATE."""
    return format_moment(pattern, LocalTime(datetime.fromisoformat(form), is_date=True))


def parse_timestamp(pattern: str, text: str, zone: str = DEFAULT_ZONE) -> str:
    """PARSE_TIMESTAMP."""
    seconds, fraction = parse_moment(pattern, text, zone_of(zone))
    return timestamp_from_nanos(seconds * 1_000_000_000 + fraction)


def unix_date(form: str) -> int:
    """UNIX_DATE: days since 1970."""
    return (date.fromisoformat(form) - DAY_ZERO).days


UNITS = {"SECONDS": 1_000_000_000, "MILLIS": 1_000_000, "MICROS": 1_000}
"""Nanoseconds."""


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    for name, nanoseconds in UNITS.items():
        add(f"UNIX_{name}", [TIMESTAMP], INT64, units_of_timestamp(nanoseconds))
        add(f"TIMESTAMP_{name}", [INT64], TIMESTAMP, timestamp_of_units(nanoseconds))
    add("UNIX_DATE", [DATE], INT64, unix_date)
    add("DATE_FROM_UNIX_DATE", [INT64], DATE, date_from_unix_date)
    add("PARSE_DATE", [STRING, STRING], DATE, parse_date)
    three = [STRING, STRING, STRING]
    add("PARSE_TIMESTAMP", three, TIMESTAMP, refuse_bad_values(parse_timestamp), optional=1)
    add("FORMAT_DATE", [STRING, DATE], STRING, format_date)
    add("FORMAT_TIMESTAMP", [STRING, TIMESTAMP, STRING], STRING, format_timestamp, optional=1)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_timestamp_add": timestamp_add,
    "fn_timestamp_sub": subtract(timestamp_add),
    "fn_timestamp_diff": timestamp_diff,
    "fn_timestamp_trunc": timestamp_trunc,
    "fn_date_add": date_add,
    "fn_date_sub": subtract(date_add),
    "fn_date_diff": date_diff,
    "fn_date_trunc": date_trunc,
    "fn_extract_date": extract_date,
    "fn_extract_timestamp": extract_timestamp,
    "fn_generate_dates": generate_dates,
    "fn_date": date_of_parts,
    "fn_date_timestamp": date_in,
    "fn_timestamp_string": refuse_bad_values(timestamp_in),
    "fn_timestamp_date": refuse_bad_values(timestamp_in),
    "fn_string_timestamp": string_in,
    **SERVED.at_run_time,
}
