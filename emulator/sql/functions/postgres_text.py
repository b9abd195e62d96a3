"""Functions of text, bytea, jsonb and times, as the PostgreSQL dialect has them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from ddl.syntax.postgres.reserved import QUOTED
from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.json_containment import contains_document
from emulator.sql.functions.like_patterns import compile_like, ends_in_backslash
from emulator.sql.functions.numbers import Float, read_float
from emulator.sql.functions.postgres_numbers import to_form
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.text_sizes import join_texts, refuse_long, size_in_bytes
from emulator.values import jsonb
from emulator.values.timestamp_texts import DEFAULT_ZONE
from emulator.values.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT64,
    INT64,
    PG_JSONB,
    PG_NUMERIC,
    STRING,
    TIMESTAMP,
)

Text = str | bytes
BLANKS = " "
YEARS = {"year": (1, 0), "decade": (10, 0), "century": (100, 1), "millennium": (1000, 1)}
"""How many years a field of date_trunc has, and the first year of one."""
FRACTIONS = {"milliseconds": 1_000, "microseconds": 1}
TRUNCATED = (*YEARS, "quarter", "month", "week", "day", "hour", "minute", "second")


def substring(value: str | bytes, start: int, length: int | None = None) -> str | bytes:
    """From a place that counts from 1, and may lie before the text."""
    if length is None:
        return value[max(start - 1, 0) :]
    if length < 0:
        raise out_of_range("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def left(value: str, count: int) -> str:
    """The first characters; all but the last ones where the count is negative."""
    return value[:count]


def right(value: str, count: int) -> str:
    """The last characters; all but the first ones where the count is negative."""
    if count == 0:
        return ""
    return value[-count:]


def pad(value: str, length: int, filling: str, *, before: bool) -> str:
    """A text of so many characters."""
    if length <= len(value):
        return value[: max(length, 0)]
    if not filling:
        return value
    missing = length - len(value)
    refuse_long("lpad and rpad", length)
    added = (filling * (missing // len(filling) + 1))[:missing]
    return added + value if before else value + added


def split_part(value: str, delimiter: str, place: int) -> str:
    """The part at a place, from the end where it is negative."""
    if place == 0:
        raise out_of_range("field position must not be zero")
    parts = value.split(delimiter) if delimiter else [value]
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def position(value: str | bytes, wanted: str | bytes) -> int:
    """Where a text begins in another, from 1; 0 where it does not."""
    return value.find(wanted) + 1  # type: ignore[arg-type]


def translate(value: str, old: str, new: str) -> str:
    """Characters for characters; what has none goes."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return value.translate(table)


def replace(value: str, old: str, new: str) -> str:
    """Nothing is replaced for an empty text."""
    if not old:
        return value
    grows = value.count(old) * (len(new) - len(old))
    refuse_long("replace", len(value) + max(grows, 0))
    return value.replace(old, new)


def repeat(value: str, count: int) -> str:
    """Nothing for a count that is not positive."""
    refuse_long("repeat", len(value) * count)
    return value * count


def chr_(code: int) -> str:
    """The character of a code point."""
    if code == 0:
        raise out_of_range("null character not permitted")
    try:
        return chr(code)
    except (ValueError, OverflowError) as error:
        raise out_of_range(f"requested character too large for encoding: {code}") from error


def encode(value: bytes, form: str) -> str:
    """bytea as text."""
    if form == "hex":
        return value.hex()
    if form == "base64":
        text = base64.b64encode(value).decode()
        return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    raise invalid_argument(f'unrecognized encoding: "{form}"')


def decode(text: str, form: str) -> bytes:
    """text as bytea."""
    try:
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise invalid_argument(f"invalid {form} data") from error
    raise invalid_argument(f'unrecognized encoding: "{form}"')


def quote_ident(name: str) -> str:
    """A name in quotes where it must be."""
    plain = re.match(r"[a-z_][a-z0-9_]*\Z", name) and name not in QUOTED
    return name if plain else '"' + name.replace('"', '""') + '"'


def concat_ws(separator: str | None, *values: str | None) -> str | None:
    """All that are not NULL, with a separator between."""
    if separator is None:
        return None
    return join_texts(separator, [value for value in values if value is not None])


def like(value: str, pattern: str) -> int:
    """LIKE: % is any characters, _ one, a backslash quotes the next."""
    if ends_in_backslash(pattern):
        raise invalid_argument("LIKE pattern must not end with escape character")
    return int(compile_like(pattern).matches(value))


MISSING = object()


def json_get(document: str, key: str | int) -> str | None:
    """->: a member or an element as jsonb; NULL where there is none."""
    found = find_member(document, key)
    return None if found is MISSING else jsonb.write_document(found)  # type: ignore[arg-type]


def json_get_text(document: str, key: str | int) -> str | None:
    """->>: the same as text; NULL of null."""
    found = find_member(document, key)
    if found is MISSING or found is None:
        return None
    return found if isinstance(found, str) else jsonb.write_document(found)  # type: ignore[arg-type]


def find_member(document: str, key: str | int) -> object:
    """A member of an object by its name, an element of an array by its place."""
    parsed = jsonb.parse_document(document)
    if isinstance(key, str):
        return parsed.get(key, MISSING) if isinstance(parsed, dict) else MISSING
    if isinstance(parsed, dict):
        return MISSING
    if not isinstance(parsed, list):
        # PostgreSQL takes a scalar for an array of one.
        return parsed if key in (0, -1) else MISSING
    index = key if key >= 0 else len(parsed) + key
    return parsed[index] if 0 <= index < len(parsed) else MISSING


def json_exists(document: str, key: str) -> int:
    """?: whether a text is a member's name, an element, or the whole."""
    parsed = jsonb.parse_document(document)
    if isinstance(parsed, dict | list):
        return int(key in parsed)
    return int(parsed == key)


def json_contains(document: str, other: str) -> int:
    """@>: whether a document has all that another has."""
    return int(contains_document(jsonb.parse_document(document), jsonb.parse_document(other)))


def json_typeof(document: str) -> str:
    """The kind of a document."""
    parsed = jsonb.parse_document(document)
    if parsed is None:
        return "null"
    kinds = {bool: "boolean", Decimal: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(parsed)]


def json_array_length(document: str) -> int:
    """The number of elements."""
    parsed = jsonb.parse_document(document)
    if not isinstance(parsed, list):
        kind = "an object" if isinstance(parsed, dict) else "a scalar"
        raise invalid_argument(f"cannot get array length of {kind}")
    return len(parsed)


def array_length(array: str, dimension: int) -> int | None:
    """The number of elements; NULL of an empty array, and of a dimension that is not 1."""
    items = json.loads(array)
    return len(items) if items and dimension == 1 else None


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


def pad_left(value: str, length: int, filling: str = " ") -> str:
    """lpad."""
    return pad(value, length, filling, before=True)


def pad_right(value: str, length: int, filling: str = " ") -> str:
    """rpad."""
    return pad(value, length, filling, before=False)


def strip(value: Text, characters: Text = BLANKS) -> Text:
    """btrim, also of bytea."""
    return value.strip(characters) if characters else value  # type: ignore[arg-type]


def strip_left(value: str, characters: str = BLANKS) -> str:
    """ltrim."""
    return value.lstrip(characters) if characters else value


def strip_right(value: str, characters: str = BLANKS) -> str:
    """rtrim."""
    return value.rstrip(characters) if characters else value


def md5(value: Text) -> str:
    """md5, in hexadecimal digits."""
    return hashlib.md5(value.encode() if isinstance(value, str) else value).hexdigest()


def join(first: Text, second: Text) -> Text:
    """|| of two of one type, and textcat."""
    return first + second  # type: ignore[operator]


def add_texts(served: ServedFunctions) -> None:
    """Functions of text."""
    add = served.add
    add("LOWER", [STRING], STRING, str.lower)
    add("UPPER", [STRING], STRING, str.upper)
    add("LENGTH CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, len)
    add("LEFT", [STRING, INT64], STRING, left)
    add("RIGHT", [STRING, INT64], STRING, right)
    add("REPEAT", [STRING, INT64], STRING, repeat)
    add("LPAD", [STRING, INT64, STRING], STRING, pad_left, optional=1)
    add("RPAD", [STRING, INT64, STRING], STRING, pad_right, optional=1)
    add("BTRIM", [STRING, STRING], STRING, strip, optional=1)
    add("LTRIM", [STRING, STRING], STRING, strip_left, optional=1)
    add("RTRIM", [STRING, STRING], STRING, strip_right, optional=1)
    add("REPLACE", [STRING, STRING, STRING], STRING, replace)
    add("TRANSLATE", [STRING, STRING, STRING], STRING, translate)
    add("REVERSE", [STRING], STRING, lambda value: value[::-1])
    add("SPLIT_PART", [STRING, STRING, INT64], STRING, split_part)
    add("STARTS_WITH", [STRING, STRING], BOOL, lambda value, start: int(value.startswith(start)))
    add("LIKE", [STRING, STRING], BOOL, like)
    add("ASCII", [STRING], INT64, lambda value: ord(value[0]) if value else 0)
    add("CHR", [INT64], STRING, chr_)
    add("TO_HEX", [INT64], STRING, lambda value: f"{value & ((1 << 64) - 1):x}")
    add("QUOTE_IDENT", [STRING], STRING, quote_ident)


def add_bytes(served: ServedFunctions) -> None:
    """Functions of bytea, and of text and bytea alike."""
    add = served.add
    add("LENGTH", [BYTES], INT64, len)
    part = "pg_substring"
    for type_ in (STRING, BYTES):
        add("OCTET_LENGTH", [type_], INT64, size_in_bytes)
        add("SUBSTR SUBSTRING", [type_, INT64, INT64], type_, substring, function=part, optional=1)
        add("STRPOS POSITION", [type_, type_], INT64, position)
        add("MD5", [type_], STRING, md5)
    add("SHA256", [BYTES], BYTES, lambda value: hashlib.sha256(value).digest())
    add("SHA512", [BYTES], BYTES, lambda value: hashlib.sha512(value).digest())
    add("ENCODE", [BYTES, STRING], STRING, encode)
    add("DECODE", [STRING, STRING], BYTES, decode)
    add("BTRIM", [BYTES, BYTES], BYTES, strip)
    add("TEXTCAT", [STRING, STRING], STRING, join, function="pg_concat_bytea")


def add_times(served: ServedFunctions) -> None:
    """Functions of times and of documents."""
    add = served.add
    add("JSONB_TYPEOF", [PG_JSONB], STRING, json_typeof)
    add("JSONB_ARRAY_LENGTH", [PG_JSONB], INT64, json_array_length)
    add("EXTRACT", [STRING, DATE], PG_NUMERIC, extract_date, function="pg_extract_date")
    moment = "pg_extract_timestamptz"
    add("EXTRACT", [STRING, TIMESTAMP], PG_NUMERIC, extract_timestamptz, function=moment)
    add("DATE_TRUNC", [STRING, TIMESTAMP, STRING], TIMESTAMP, truncate_timestamptz, optional=1)
    add("TO_TIMESTAMP", [FLOAT64], TIMESTAMP, to_timestamp)
    add("MAKE_DATE", [INT64, INT64, INT64], DATE, make_date)


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add_texts(served)
    add_bytes(served)
    add_times(served)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_concat": lambda *values: "".join(values),
    "pg_ilike": lambda value, pattern: like(value.lower(), pattern.lower()),
    "pg_json_get": json_get,
    "pg_json_get_text": json_get_text,
    "pg_json_exists": json_exists,
    "pg_json_contains": json_contains,
    "pg_array_length": array_length,
    "pg_add_days": add_days,
    "pg_days_between": lambda a, b: (date.fromisoformat(a) - date.fromisoformat(b)).days,
    **SERVED.at_run_time,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "pg_concat_ws": concat_ws,
}
