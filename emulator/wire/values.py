"""From protobuf values to the storage form, one decoder a type."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from emulator.errors import SpannerError
from emulator.sql.functions.intervals import parse_iso
from emulator.unsupported import parameter_type
from emulator.values import forms, pg_numeric
from emulator.values.jsonb import jsonb_form
from emulator.values.protos import ProtoTypes
from emulator.values.requests import COMMIT_TIMESTAMP, Stored
from emulator.wire.messages import Message
from spanner_schema.model.column_types import Type, TypeCode

Decoder = Callable[[Message], Stored]
"""Raises ValueError, with what was expected, for a value that is not of the type."""

COMMIT_TIMESTAMP_TEXT = "spanner.commit_timestamp()"
INTEGER = re.compile(r"[+-]?[0-9]+\Z")
TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?[Zz]\Z", re.A)
DATE_CHARACTERS = len("YYYY-MM-DD")
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
SPECIAL_FLOATS: dict[str, float | str] = {
    "NaN": "NaN",
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


def text_of(value: Message, expected: str) -> str | None:
    """The string of a value; None for NULL."""
    text: str = value.string_value
    if text:
        return text  # of the kinds of a value, a string alone has one
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return text
    if kind == "null_value":
        return None
    raise ValueError(f"Expected {expected}.")


def string(value: Message) -> Stored:
    """STRING."""
    return text_of(value, "STRING")


def boolean(value: Message) -> Stored:
    """BOOL."""
    kind = value.WhichOneof("kind")
    if kind == "bool_value":
        return 1 if value.bool_value else 0
    if kind == "null_value":
        return None
    raise ValueError("Expected BOOL.")


def int64(value: Message) -> Stored:
    """INT64, sent as a decimal string."""
    text = text_of(value, "INT64")
    if text is None:
        return None
    if not INTEGER.match(text):
        raise ValueError("Expected INT64.")
    number = int(text) if len(text) < 30 else 1 << 64
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("Expected INT64.")
    return number


def float64(value: Message) -> Stored:
    """FLOAT64: a number, or the name of NaN or an infinity."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number: float = value.number_value
        return number if number == number else "NaN"  # noqa: PLR0124 - NaN alone differs from itself
    if kind == "null_value":
        return None
    if kind == "string_value" and value.string_value in SPECIAL_FLOATS:
        return SPECIAL_FLOATS[value.string_value]
    raise ValueError("Expected FLOAT64.")


def float32(value: Message) -> Stored:
    """FLOAT32, rounded to single precision."""
    number = float64(value)
    if not isinstance(number, float) or math.isinf(number):
        return number
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError as error:
        raise ValueError("Expected FLOAT32: the number is out of its range.") from error
    return rounded


def numeric(value: Message) -> Stored:
    """NUMERIC: at most 29 digits before and 9 after the point."""
    text = text_of(value, "NUMERIC")
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError("Expected NUMERIC.") from error
    if not number.is_finite() or (number and number.adjusted() > 28):
        raise ValueError("Expected NUMERIC: the number is out of its range.")
    exponent = number.normalize(forms.NUMERIC_CONTEXT).as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9:
        raise ValueError("Expected NUMERIC: it has more than 9 digits after the point.")
    return forms.numeric_from_decimal(number)


def timestamp(value: Message) -> Stored:
    """TIMESTAMP in RFC 3339 with Z, or the words for the commit timestamp."""
    text = text_of(value, "TIMESTAMP")
    if text is None:
        return None
    match = TIMESTAMP.match(text)
    if match is None:
        if text == COMMIT_TIMESTAMP_TEXT:
            return COMMIT_TIMESTAMP
        raise ValueError("Expected TIMESTAMP.")
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError as error:
        raise ValueError(f"Expected TIMESTAMP: there is no time {text}.") from error
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{fraction or '':0<9}Z"


def day(value: Message) -> Stored:
    """DATE as YYYY-MM-DD."""
    text = text_of(value, "DATE")
    if text is None:
        return None
    if len(text) != DATE_CHARACTERS or text[4] != "-" or text[7] != "-":
        raise ValueError("Expected DATE.")
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"Expected DATE: there is no day {text}.") from error
    return text


def octets(value: Message) -> Stored:
    """BYTES as base64."""
    text = text_of(value, "BYTES")
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("Expected BYTES in base64.") from error


def document(value: Message) -> Stored:
    """JSON."""
    text = text_of(value, "JSON")
    try:
        return None if text is None else forms.json_form(text, exact=True)
    except ValueError as error:
        raise ValueError(f"Expected JSON: {error}.") from error


def pg_numeric_value(value: Message) -> Stored:
    """The numeric of the PostgreSQL dialect."""
    text = text_of(value, "PG_NUMERIC")
    try:
        return None if text is None else pg_numeric.numeric_form(pg_numeric.parse_numeric(text))
    except ValueError as error:
        raise ValueError(f"Expected PG_NUMERIC: {error}.") from error


def pg_jsonb_value(value: Message) -> Stored:
    """The jsonb of the PostgreSQL dialect."""
    text = text_of(value, "PG_JSONB")
    try:
        return None if text is None else jsonb_form(text)
    except ValueError as error:
        raise ValueError(f"Expected PG_JSONB: {error}.") from error


def uuid(value: Message) -> Stored:
    """UUID in its usual writing."""
    text = text_of(value, "UUID")
    if text is not None and not UUID.match(text):
        raise ValueError("Expected UUID.")
    return None if text is None else text.lower()


def interval(value: Message) -> Stored:
    """INTERVAL in ISO 8601, kept in its usual writing."""
    text = text_of(value, "INTERVAL")
    if text is None:
        return None
    try:
        return parse_iso(text).iso()
    except SpannerError as error:
        raise ValueError(error.message) from error


SCALARS: dict[TypeCode, Decoder] = {
    TypeCode.BOOL: boolean,
    TypeCode.INT64: int64,
    TypeCode.FLOAT64: float64,
    TypeCode.FLOAT32: float32,
    TypeCode.NUMERIC: numeric,
    TypeCode.STRING: string,
    TypeCode.BYTES: octets,
    TypeCode.DATE: day,
    TypeCode.TIMESTAMP: timestamp,
    TypeCode.JSON: document,
    TypeCode.UUID: uuid,
    TypeCode.INTERVAL: interval,
    TypeCode.PG_NUMERIC: pg_numeric_value,
    TypeCode.PG_JSONB: pg_jsonb_value,
    TypeCode.PG_OID: int64,
}


@lru_cache(maxsize=4096)
def decoder(type_: Type, types: ProtoTypes) -> Decoder:
    """How values of a type are read; ``types`` are those of the proto bundle."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return array_decoder(decoder(type_.element, types))
    if type_.code is TypeCode.STRUCT:
        return struct_decoder(tuple(decoder(field.type, types) for field in type_.fields))
    if type_.proto_name is not None:
        named = message_decoder if type_.code is TypeCode.PROTO else enum_decoder
        return named(type_.proto_name, types)
    scalar = SCALARS.get(type_.code)
    if scalar is None:
        raise parameter_type(type_.code.value)
    return scalar


def message_decoder(name: str, types: ProtoTypes) -> Decoder:
    """PROTO: the bytes of a message, in base64."""

    def decode(value: Message) -> Stored:
        data = octets(value)
        if isinstance(data, bytes):
            types.parse(name, data)
        return data

    return decode


def enum_decoder(name: str, types: ProtoTypes) -> Decoder:
    """ENUM: the number of one of its values."""

    def decode(value: Message) -> Stored:
        number = int64(value)
        if isinstance(number, int) and not types.holds(name, number):
            raise ValueError(f"Expected ENUM<{name}>: {number} is none of its values.")
        return number

    return decode


def array_decoder(element: Decoder) -> Decoder:
    """ARRAY: the elements in JSON."""

    def decode(value: Message) -> Stored:
        kind = value.WhichOneof("kind")
        if kind == "null_value":
            return None
        if kind != "list_value":
            raise ValueError("Expected ARRAY.")
        return dump_array([to_json_element(element(item)) for item in value.list_value.values])

    return decode


def struct_decoder(fields: tuple[Decoder, ...]) -> Decoder:
    """STRUCT: the fields in JSON, in their order."""

    def decode(value: Message) -> Stored:
        kind = value.WhichOneof("kind")
        if kind == "null_value":
            return None
        if kind != "list_value" or len(value.list_value.values) != len(fields):
            raise ValueError(f"Expected STRUCT of {len(fields)} fields.")
        pairs = zip(fields, value.list_value.values, strict=True)
        return dump_array([to_json_element(field(item)) for field, item in pairs])

    return decode


def to_json_element(value: Stored) -> Stored:
    """A value's form inside an array."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == COMMIT_TIMESTAMP:
        raise ValueError("An array cannot contain the commit timestamp.")
    return value


def dump_array(items: list[Stored]) -> str:
    """A JSON array as SQLite writes it."""
    return json.dumps(items, separators=(",", ":"), ensure_ascii=False)
