"""CAST between Spanner's types."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from emulator.errors import out_of_range
from emulator.sql.functions.numbers import (
    INT64_MAX,
    INT64_MIN,
    Float,
    read_float,
    to_float32,
    write_float,
)
from emulator.values import forms
from emulator.values.local_times import local_time, timestamp_in_zone
from emulator.values.timestamp_texts import DEFAULT_ZONE, timestamp_form

UUID_BYTES = 16
FLOAT32_MAX = 3.4028235677973366e38
"""From here on a double is rounded to an infinity."""
WHOLE_FROM = 2.0**53
HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]")
INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|\d+)\s*\Z", re.ASCII)


def refuse_bad_text(function: Callable[[str], object], sentence: str) -> Callable[[str], object]:
    """A conversion of text whose ValueError becomes OUT_OF_RANGE, as Spanner's CAST does.

    ``sentence`` has a place for the text, as GoogleSQL words it.
    """

    def call(text: str) -> object:
        try:
            return function(text)
        except ValueError as error:
            raise out_of_range(sentence.format(text)) from error

    return call


def parse_int64(text: str) -> int:
    """Decimal or hexadecimal text -> INT64."""
    match = INTEGER.match(text)
    if match is None:
        raise ValueError(text)
    value = int(match.group(1) + match.group(2), 16 if "x" in text.lower() else 10)
    if not INT64_MIN <= value <= INT64_MAX:
        raise ValueError(text)
    return value


def parse_bool(text: str) -> int:
    """'true' and 'false' in any case -> BOOL."""
    words = {"true": 1, "false": 0}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def parse_float64(text: str) -> Float:
    """A number, inf or nan in any case -> FLOAT64."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    digits = text.strip().lower()
    return write_float(float.fromhex(digits) if HEXADECIMAL.match(digits) else float(digits))


def parse_float32(text: str) -> Float:
    """As ``parse_float64``; a number that is too large is an infinity."""
    parsed = parse_float64(text)
    number = read_float(parsed)
    return math.copysign(math.inf, number) if abs(number) > FLOAT32_MAX else to_float32(parsed)


def float_text(value: Float) -> str:
    """A FLOAT64 as Spanner prints it."""
    number = read_float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    text = f"{number:.15g}"
    return text if float(text) == number else f"{number:.17g}"


def float32_text(value: Float) -> str:
    """A FLOAT32 as Spanner prints it."""
    number = read_float(value)
    if not math.isfinite(number):
        return float_text(value)
    text = f"{number:.6g}"
    return text if read_float(to_float32(float(text))) == number else f"{number:.8g}"


def float_to_int64(value: Float) -> int:
    """Rounded half away from zero."""
    number = read_float(value)
    if not math.isfinite(number):
        raise out_of_range(f"Illegal conversion of non-finite value {number} to an integer")
    # Beyond 2^53 a double is whole, and its digits may be more than the context has.
    whole = abs(number) >= WHOLE_FROM
    rounded = int(number) if whole else int(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP))
    if not INT64_MIN <= rounded <= INT64_MAX:
        raise out_of_range(f"int64 out of range: {number}")
    return rounded


def float_to_numeric(value: Float) -> str:
    """The nearest NUMERIC."""
    number = read_float(value)
    if not math.isfinite(number):
        raise out_of_range(f"Illegal conversion of non-finite value {number} to NUMERIC")
    try:
        return forms.numeric_from_decimal(Decimal(number))
    except ValueError as error:
        raise out_of_range(f"numeric out of range: {number}") from error


def numeric_to_int64(form: str) -> int:
    """Rounded half away from zero."""
    value = forms.decimal_from_numeric(form)
    rounded = int(value.quantize(Decimal(1), ROUND_HALF_UP, forms.NUMERIC_CONTEXT))
    if not INT64_MIN <= rounded <= INT64_MAX:
        raise out_of_range(f"int64 out of range: {value}")
    return rounded


def bytes_to_text(value: bytes) -> str:
    """BYTES that must be UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise out_of_range(f"Invalid cast of bytes to UTF8 string: {value[:20]!r}") from error


def bytes_to_uuid(value: bytes) -> str:
    """The 16 bytes of a UUID."""
    if len(value) != UUID_BYTES:
        raise out_of_range(
            f"Invalid bytes value size for UUID, expected {UUID_BYTES} bytes,"
            f" but got {len(value)} bytes."
        )
    return str(uuid.UUID(bytes=value))


def timestamp_text(form: str) -> str:
    """A TIMESTAMP as CAST prints it: in the default zone, with its offset."""
    return timestamp_in_zone(form, DEFAULT_ZONE)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "cast_bool_string": lambda v: "true" if v else "false",
    "cast_int64_bool": lambda v: int(v != 0),
    "cast_int64_float64": float,
    "cast_int64_string": str,
    "int64_to_numeric": lambda v: forms.numeric_from_decimal(Decimal(v)),
    "numeric_to_float64": lambda v: float(forms.decimal_from_numeric(v)),
    "numeric_to_float32": lambda v: to_float32(float(forms.decimal_from_numeric(v))),
    "cast_float_int64": float_to_int64,
    "cast_float_numeric": float_to_numeric,
    # Without the sign of zero: -0.0 prints as 0.
    "cast_float64_string": lambda v: float_text(write_float(read_float(v) + 0.0)),
    "cast_float32_string": lambda v: float32_text(write_float(read_float(v) + 0.0)),
    "cast_numeric_int64": numeric_to_int64,
    "cast_numeric_string": forms.numeric_to_text,
    "cast_string_bool": refuse_bad_text(parse_bool, "Bad bool value: {}"),
    "cast_string_int64": refuse_bad_text(parse_int64, "Bad int64 value: {}"),
    "cast_string_float64": refuse_bad_text(parse_float64, "Bad double value: {}"),
    "cast_string_float32": refuse_bad_text(parse_float32, "Bad float value: {}"),
    "cast_string_numeric": refuse_bad_text(forms.numeric_form, "Invalid NUMERIC value: {}"),
    "cast_string_bytes": str.encode,
    "cast_string_date": refuse_bad_text(forms.date_form, "Invalid date: '{}'"),
    "cast_string_timestamp": refuse_bad_text(timestamp_form, "Invalid timestamp: '{}'"),
    "cast_string_uuid": refuse_bad_text(forms.uuid_form, "Invalid UUID value: {}"),
    "cast_bytes_string": bytes_to_text,
    "cast_bytes_uuid": bytes_to_uuid,
    "cast_uuid_bytes": lambda form: uuid.UUID(form).bytes,
    "cast_date_timestamp": timestamp_form,
    "cast_timestamp_string": timestamp_text,
    "cast_timestamp_date": refuse_bad_text(
        lambda form: local_time(form, DEFAULT_ZONE).date().isoformat(), "Invalid date: '{}'"
    ),
}
