"""Functions of times, as the PostgreSQL dialect has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.numbers import Float, read_float
from emulator.sql.functions.postgres_numbers import to_form
from emulator.sql.functions.served import ServedFunctions
from emulator.values.timestamp_texts import DEFAULT_ZONE
from emulator.values.types import DATE, FLOAT64, INT64, PG_NUMERIC, STRING, TIMESTAMP

YEARS = {"year": (1, 0), "decade": (10, 0), "century": (100, 1), "millennium": (1000, 1)}
"""How many years a field of date_trunc has, and the first year of one."""
FRACTIONS = {"milliseconds": 1_000, "microseconds": 1}
TRUNCATED = (*YEARS, "quarter", "month", "week", "day", "hour", "minute", "second")


def moment_of(form: str, zone: tzinfo = DEFAULT_ZONE) -> datetime:
    """A time in a zone, else the default one."""
    return datetime.fromisoformat(form[:26] + "+00:00").astimezone(zone)


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise invalid_argument(f'time zone "{name}" not recognized') from error


def extract_timestamptz(field: str, form: str) -> str:
    """A field of a time in the default zone, as a numeric."""
    name = field.lower()
    if name == "epoch":  # in no zone: there the first hours of the year 1 are before it
        since = moment_of(form, UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return to_form(Decimal(since // timedelta(microseconds=1)).scaleb(-6))
    moment = moment_of(form)
    seconds = Decimal(moment.second * 1_000_000 + moment.microsecond)
    scaled = {"second": -6, "milliseconds": -3, "microseconds": 0}
    if name in scaled:
        return to_form(seconds.scaleb(scaled[name]))
    if name in {"hour", "minute"}:
        return to_form(Decimal(getattr(moment, name)))
    return extract_date(field, moment.date().isoformat())


def extract_date(field: str, form: str) -> str:
    """A field of a date, as a numeric."""
    day, name = date.fromisoformat(form), field.lower()
    values = {
        "year": day.year,
        "month": day.month,
        "day": day.day,
        "quarter": (day.month + 2) // 3,
        "dow": day.isoweekday() % 7,
        "isodow": day.isoweekday(),
        "doy": day.timetuple().tm_yday,
        "week": day.isocalendar().week,
        "isoyear": day.isocalendar().year,
        "decade": day.year // 10,
        "century": (day.year + 99) // 100,
        "millennium": (day.year + 999) // 1000,
        "epoch": (day - date(1970, 1, 1)).days * 86_400,
    }
    if name not in values:
        raise invalid_argument(f'unit "{field}" is not supported for this type')
    return to_form(Decimal(values[name]))


def truncate_timestamptz(field: str, form: str, zone_name: str = "") -> str:
    """date_trunc in a zone, else the default one."""
    name = field.lower()
    zone = zone_of(zone_name) if zone_name else DEFAULT_ZONE
    moment = moment_of(form, zone)
    if name in FRACTIONS:
        size = FRACTIONS[name]
        return form_of(moment.replace(microsecond=moment.microsecond // size * size))
    if name not in TRUNCATED:
        raise invalid_argument(f'unit "{field}" is not supported for date_trunc')
    local = moment.replace(tzinfo=None, microsecond=0)
    if TRUNCATED.index(name) <= TRUNCATED.index("day"):
        local = local.replace(hour=0, minute=0, second=0)
    if name == "hour":
        local = local.replace(minute=0, second=0)
    if name == "minute":
        local = local.replace(second=0)
    if name == "week":
        local -= timedelta(days=local.weekday())
    if name == "month":
        local = local.replace(day=1)
    if name == "quarter":
        local = local.replace(month=(local.month - 1) // 3 * 3 + 1, day=1)
    if name in YEARS:
        size, first = YEARS[name]
        year = (local.year - first) // size * size + first
        local = local.replace(year=max(year, 1), month=1, day=1)
    return form_of(local.replace(tzinfo=zone))


def form_of(moment: datetime) -> str:
    """A time in the form of storage."""
    plain = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{plain.isoformat(timespec='microseconds')}000Z"


def to_timestamp(seconds: Float) -> str:
    """Seconds since 1970 as a time."""
    number = read_float(seconds)
    try:
        micros = round(Decimal(repr(number)) * 1_000_000)
        moment = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    except (ArithmeticError, ValueError) as error:
        raise out_of_range(f"timestamp out of range: {number}") from error
    return f"{moment.isoformat(timespec='microseconds')}000Z"


def add_days(form: str, days: int) -> str:
    """A date that many days later."""
    try:
        return (date.fromisoformat(form) + timedelta(days=days)).isoformat()
    except OverflowError as error:
        raise out_of_range("date out of range") from error


def make_date(year: int, month: int, day: int) -> str:
    """A date of its parts."""
    try:
        return date(year, month, day).isoformat()
    except (ValueError, OverflowError) as error:
        raise out_of_range(
            f"date field value out of range: {year}-{month:02d}-{day:02d}"
        ) from error


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add = served.add
    add("EXTRACT", [STRING, DATE], PG_NUMERIC, extract_date, function="pg_extract_date")
    moment = "pg_extract_timestamptz"
    add("EXTRACT", [STRING, TIMESTAMP], PG_NUMERIC, extract_timestamptz, function=moment)
    add("DATE_TRUNC", [STRING, TIMESTAMP, STRING], TIMESTAMP, truncate_timestamptz, optional=1)
    add("TO_TIMESTAMP", [FLOAT64], TIMESTAMP, to_timestamp)
    add("MAKE_DATE", [INT64, INT64, INT64], DATE, make_date)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_add_days": add_days,
    "pg_days_between": lambda a, b: (date.fromisoformat(a) - date.fromisoformat(b)).days,
    **SERVED.at_run_time,
}
