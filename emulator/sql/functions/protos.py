"""Messages and enums: their fields, and their conversions.

Each function takes the key of the bundle (``ProtoTypes.key``) and the full name of the type.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from emulator.errors import out_of_range
from emulator.values.proto_fields import find_field, get_field, set_field
from emulator.values.protos import BUNDLES, ProtoTypes

REFUSALS = (ValueError, TypeError, DecodeError)
"""What protobuf raises for values that a field does not take."""


def read_message(types: ProtoTypes, name: str, data: bytes) -> Message:
    """A message from its bytes. Raises OUT_OF_RANGE."""
    try:
        return types.parse(name, data)
    except ValueError as error:
        raise out_of_range(f"Error parsing proto: {error}") from error


def parse_text(types: ProtoTypes, name: str, text: str) -> bytes:
    """The bytes of a message from its text format. Raises ValueError."""
    message = types.new(name)
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise ValueError(f"Error parsing proto: {error}") from error
    except RecursionError as error:
        raise ValueError("Error parsing proto: the messages are nested too deeply") from error
    return write_message(message)


def write_message(message: Message) -> bytes:
    """The bytes of a message. Raises ValueError if a required field is missing."""
    missing: list[str] = message.FindInitializationErrors()  # type: ignore[attr-defined]
    if missing:
        raise ValueError(
            f"Error parsing proto: the required fields {', '.join(missing)} are missing"
        )
    try:
        return message.SerializeToString()
    except EncodeError as error:
        raise ValueError(f"Error writing proto: {error}") from error


def enum_number(types: ProtoTypes, name: str, text: str) -> int:
    """The number of an enum's value. Raises ValueError for a name that it has not."""
    enum = types.enum(name)
    value = enum.values_by_name.get(text) if enum is not None else None
    if value is None:
        raise ValueError(f"Could not cast {text!r} to type {name}")
    return value.number


def descriptor_of(message: Message) -> Descriptor:
    """What a message is."""
    descriptor: Descriptor = message.DESCRIPTOR  # type: ignore[assignment]
    return descriptor


def proto_field(data: bytes, key: str, name: str, field_name: str) -> object:
    """The field of a message; its default where it is not set."""
    message = read_message(BUNDLES[key], name, data)
    field = find_field(descriptor_of(message), field_name)
    try:
        return get_field(message, field) if field is not None else None
    except ValueError as error:
        raise out_of_range(str(error)) from error


def proto_has(data: bytes, key: str, name: str, field_name: str) -> int:
    """Whether the field of a message is set."""
    return int(read_message(BUNDLES[key], name, data).HasField(field_name))


def cast_string_proto(text: str, key: str, name: str) -> bytes:
    """The text format -> a message."""
    try:
        return parse_text(BUNDLES[key], name, text)
    except ValueError as error:
        raise out_of_range(str(error)) from error


def cast_bytes_proto(data: bytes, key: str, name: str) -> bytes:
    """The wire format -> a message, which keeps its bytes."""
    try:
        write_message(read_message(BUNDLES[key], name, data))
    except ValueError as error:
        raise out_of_range(str(error)) from error
    return data


def cast_proto_string(data: bytes, key: str, name: str) -> str:
    """A message -> the text format, in one line."""
    message = read_message(BUNDLES[key], name, data)
    return text_format.MessageToString(message, as_one_line=True, as_utf8=True)


def cast_string_enum(text: str, key: str, name: str) -> int:
    """The name of a value -> an enum."""
    try:
        return enum_number(BUNDLES[key], name, text)
    except ValueError as error:
        raise out_of_range(str(error)) from error


def cast_int64_enum(number: int, key: str, name: str) -> int:
    """The number of a value -> an enum."""
    if not BUNDLES[key].holds(name, number):
        raise out_of_range(f"Out of range cast of integer {number} to enum type {name}")
    return number


def cast_enum_string(number: int, key: str, name: str) -> str:
    """An enum -> the first name of its value; the number where it has none."""
    enum = BUNDLES[key].enum(name)
    values = enum.values if enum is not None else []
    return next((value.name for value in values if value.number == number), str(number))


def new_proto(key: str, name: str, fields: str, *values: object) -> bytes:
    """A message with some fields set; NULL leaves one unset."""
    message = BUNDLES[key].new(name)
    try:
        for path, value in zip(json.loads(fields), values, strict=True):
            set_path(message, path, value)
        return write_message(message)
    except REFUSALS as error:
        raise out_of_range(str(error)) from error


def replace_fields(data: object, key: str, name: str, paths: str, *values: object) -> bytes | None:
    """A message with other values in some fields, or fields of fields; NULL unsets one."""
    if not isinstance(data, bytes):
        return None
    message = read_message(BUNDLES[key], name, data)
    try:
        for path, value in zip(json.loads(paths), values, strict=True):
            set_path(message, path, value)
        return write_message(message)
    except REFUSALS as error:
        raise out_of_range(str(error)) from error


def update_fields(data: object, key: str, name: str, paths: str, *values: object) -> object:
    """The same for UPDATE, which cannot set the fields of NULL."""
    if data is None:
        raise out_of_range(f"Cannot set field of NULL `{name}`")
    return replace_fields(data, key, name, paths, *values)


def set_path(message: Message, path: str, value: object) -> None:
    """Sets a field, maybe of a message inside, which must be there. Raises ValueError."""
    *outer, last = path.split(".")
    for name in outer:
        if not message.HasField(name):
            raise ValueError(f"Cannot set a field of the message {name}, which is not set")
        message = getattr(message, name)
    field = find_field(descriptor_of(message), last)
    if field is None:
        raise ValueError(f"{message.DESCRIPTOR.full_name} has no field {last}")
    set_field(message, field, value)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_proto_field": proto_field,
    "fn_proto_has": proto_has,
    "cast_string_proto": cast_string_proto,
    "cast_bytes_proto": cast_bytes_proto,
    "cast_proto_string": cast_proto_string,
    "cast_string_enum": cast_string_enum,
    "cast_int64_enum": cast_int64_enum,
    "cast_enum_string": cast_enum_string,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "fn_new_proto": new_proto,
    "fn_replace_fields": replace_fields,
    "fn_update_fields": update_fields,
}
