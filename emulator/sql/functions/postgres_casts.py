"""Text to values and back, and casts between types, as the PostgreSQL dialect does them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal

from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN, Float, read_float, write_float
from emulator.sql.functions.postgres_moments import bad_input, parse_date, parse_timestamptz
from emulator.sql.functions.postgres_numbers import rounded_to, to_form, to_real
from emulator.values import forms, jsonb, pg_numeric
from emulator.values.requests import Stored
from emulator.values.timestamp_texts import DEFAULT_ZONE
from spanner_schema.model.column_types import Type, TypeCode

INTEGER = re.compile(r"\s*[+-]?\d+\s*\Z", re.ASCII)
FLOAT = re.compile(
    r"\s*+[+-]?(?:\d++\.?\d*+(?:e[+-]?\d+)?|\.\d++(?:e[+-]?\d+)?|inf|infinity|nan)\s*+\Z",
    re.ASCII | re.I,
)
TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")
FLOAT32 = struct.Struct("<f")
INT64_DIGITS = 19
OID_MAX = 2**32 - 1


def parse_bigint(text: str) -> int:
    """A bigint."""
    if not INTEGER.match(text):
        raise bad_input("bigint", text)
    sign, digits = ("-" if "-" in text else ""), text.strip().lstrip("+-").lstrip("0")
    # Python's int() refuses thousands of digits with words of its own.
    number = int(f"{sign}{digits or 0}") if len(digits) <= INT64_DIGITS else INT64_MAX + 1
    if not INT64_MIN <= number <= INT64_MAX:
        raise out_of_range(f'value "{text}" is out of range for type bigint')
    return number


def to_oid(number: int) -> int:
    """A number as an oid."""
    if not 0 <= number <= OID_MAX:
        raise out_of_range("OID out of range")
    return number


def parse_bool(text: str) -> int:
    """true, yes, on, 1 and what they begin with; the same for false."""
    word = text.strip().lower()
    for words, value in ((TRUE_WORDS, 1), (FALSE_WORDS, 0)):
        # "o" could be either.
        if word and any(each.startswith(word) for each in words if (word, each) != ("o", words[2])):
            return value
    raise bad_input("boolean", text)


def parse_double(text: str) -> Float:
    """A double precision."""
    if not FLOAT.match(text):
        raise bad_input("double precision", text)
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise out_of_range(f'"{text.strip()}" is out of range for type double precision')
    if number == 0 and re.search(r"[1-9]", text.lower().partition("e")[0]):
        raise out_of_range(f'"{text.strip()}" is out of range for type double precision')
    return write_float(number)


def parse_real(text: str) -> Float:
    """A real."""
    if not FLOAT.match(text):
        raise bad_input("real", text)
    return to_real(write_float(float(text)))


def parse_numeric(text: str) -> str:
    """A numeric."""
    try:
        return pg_numeric.numeric_form(pg_numeric.parse_numeric(text))
    except ValueError as error:
        raise invalid_argument(str(error)) from error


def parse_bytea(text: str) -> bytes:
    """A bytea: hexadecimal behind \\x, or characters with escapes."""
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError as error:
            raise invalid_argument("invalid hexadecimal data") from error
    out = bytearray()
    place = 0
    encoded = text.encode()
    while place < len(encoded):
        if encoded[place] != ord("\\"):
            out.append(encoded[place])
            place += 1
        elif encoded[place + 1 : place + 2] == b"\\":
            out.append(ord("\\"))
            place += 2
        elif re.match(rb"[0-3][0-7]{2}", encoded[place + 1 : place + 4]):
            out.append(int(encoded[place + 1 : place + 4], 8))
            place += 4
        else:
            raise bad_input("bytea", text)
    return bytes(out)


def parse_jsonb(text: str) -> str:
    """A jsonb."""
    try:
        return jsonb.jsonb_form(text)
    except ValueError as error:
        raise invalid_argument(str(error)) from error


def parse_uuid(text: str) -> str:
    """A uuid."""
    try:
        return forms.uuid_form(text)
    except ValueError as error:
        raise bad_input("uuid", text) from error


PARSERS: dict[TypeCode, Callable[[str], Stored]] = {
    TypeCode.BOOL: parse_bool,
    TypeCode.INT64: parse_bigint,
    TypeCode.FLOAT32: parse_real,
    TypeCode.FLOAT64: parse_double,
    TypeCode.PG_NUMERIC: parse_numeric,
    TypeCode.STRING: lambda text: text,
    TypeCode.BYTES: parse_bytea,
    TypeCode.DATE: parse_date,
    TypeCode.TIMESTAMP: parse_timestamptz,
    TypeCode.PG_JSONB: parse_jsonb,
    TypeCode.UUID: parse_uuid,
    TypeCode.PG_OID: lambda text: to_oid(parse_bigint(text)),
}


def parse_value(text: str, type_: Type) -> Stored:
    """A text as a value of a type. Raises INVALID_ARGUMENT or OUT_OF_RANGE."""
    return PARSERS[type_.code](text)


def double_text(value: Float) -> str:
    """A double precision as text."""
    number = read_float(value)
    if not math.isfinite(number):
        return special_text(number)
    exact = Decimal(repr(number))
    return float_layout(exact, number, 15)


def float_layout(exact: Decimal, number: float, plain_digits: int) -> str:
    """Digits with an exponent where they would be many: as PostgreSQL chooses."""
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    exponent = exact.adjusted()
    if -5 < exponent < plain_digits:
        text = f"{exact:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0") or "0"
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{'-' if number < 0 else ''}{mantissa}e{exponent:+03d}"


def special_text(number: float) -> str:
    """NaN and the infinities."""
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def real_text(value: Float) -> str:
    """A real as text: the shortest digits that give it again."""
    number = read_float(value)
    if not math.isfinite(number):
        return special_text(number)
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if FLOAT32.unpack(FLOAT32.pack(float(text)))[0] == number:
            return float_layout(Decimal(text), number, 6)
    return float_layout(Decimal(f"{number:.9g}"), number, 6)


def timestamptz_text(form: str) -> str:
    """A time in the default zone, as 2024-01-02 03:04:05.6-08."""
    moment = datetime.fromisoformat(form[:26] + "+00:00").astimezone(DEFAULT_ZONE)
    text = moment.strftime("%Y-%m-%d %H:%M:%S").zfill(19)
    if moment.microsecond:
        text += f".{moment.microsecond:06d}".rstrip("0")
    offset = moment.utcoffset() or timedelta(0)
    seconds = abs(int(offset.total_seconds()))
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    text += f"{'-' if offset < timedelta(0) else '+'}{hours:02d}"
    if minutes or rest:
        text += f":{minutes:02d}"
    return text + (f":{rest:02d}" if rest else "")


def timestamptz_date(form: str) -> str:
    """The day of a time in the default zone."""
    moment = datetime.fromisoformat(form[:26] + "+00:00").astimezone(DEFAULT_ZONE)
    return moment.date().isoformat()


def float_to_bigint(value: Float) -> int:
    """Rounded half to even."""
    number = read_float(value)
    if not math.isfinite(number) or not INT64_MIN <= round(number) <= INT64_MAX:
        raise out_of_range("bigint out of range")
    return round(number)


def numeric_to_bigint(form: str) -> int:
    """Rounded half away from zero."""
    number = pg_numeric.number_of_form(form)
    if number.is_nan():
        raise out_of_range("cannot convert NaN to bigint")
    whole = int(rounded_to(number, 0))
    if not INT64_MIN <= whole <= INT64_MAX:
        raise out_of_range("bigint out of range")
    return whole


def float_to_numeric(digits: int) -> Callable[[Float], str]:
    """With as many digits as the type is sure of."""

    def call(value: Float) -> str:
        number = read_float(value)
        if math.isinf(number):
            raise out_of_range("cannot convert infinity to numeric")
        return parse_numeric("NaN" if math.isnan(number) else f"{number:.{digits}g}")

    return call


def numeric_to_double(form: str) -> Float:
    """The nearest double precision."""
    text = pg_numeric.text_of_form(form)
    return parse_double(text)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_parse_bool": parse_bool,
    "pg_parse_int8": parse_bigint,
    "pg_parse_float4": parse_real,
    "pg_parse_float8": parse_double,
    "pg_parse_numeric": parse_numeric,
    "pg_parse_bytea": parse_bytea,
    "pg_parse_date": parse_date,
    "pg_parse_timestamptz": parse_timestamptz,
    "pg_parse_jsonb": parse_jsonb,
    "pg_parse_uuid": parse_uuid,
    "pg_oid": to_oid,
    "pg_text_bool": lambda value: "true" if value else "false",
    "pg_text_int8": str,
    "pg_text_float4": real_text,
    "pg_text_float8": double_text,
    "pg_text_numeric": pg_numeric.text_of_form,
    "pg_text_bytea": lambda value: f"\\x{value.hex()}",
    "pg_text_timestamptz": timestamptz_text,
    "pg_int8_to_numeric": lambda value: to_form(Decimal(value)),
    "pg_int8_to_float8": float,
    "pg_float_to_int8": float_to_bigint,
    "pg_numeric_to_int8": numeric_to_bigint,
    "pg_float4_to_numeric": float_to_numeric(6),
    "pg_float8_to_numeric": float_to_numeric(15),
    "pg_numeric_to_float8": numeric_to_double,
    "pg_date_to_timestamptz": parse_timestamptz,
    "pg_timestamptz_to_date": timestamptz_date,
    "pg_truncate_text": lambda value, length: value[:length],
    "pg_jsonb_key": jsonb.jsonb_key,
}
