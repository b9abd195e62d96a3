"""Messages and enums in expressions: fields, casts, literals that become one, NEW."""

from __future__ import annotations

import json

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.functions.protos import enum_number, parse_text
from emulator.sql.types import Typed, name_of
from emulator.values.proto_fields import field_type, find_field, is_one_of
from emulator.values.protos import ProtoTypes
from emulator.values.sqlite_text import quote_text
from emulator.values.types import BOOL
from spanner_schema.model.column_types import Type, TypeCode

NAMED = {TypeCode.PROTO, TypeCode.ENUM}
PRESENCE = "has_"

# (from, to) -> the SQLite function of CAST; "" keeps the value.
CASTS = {
    (TypeCode.STRING, TypeCode.PROTO): "cast_string_proto",
    (TypeCode.BYTES, TypeCode.PROTO): "cast_bytes_proto",
    (TypeCode.PROTO, TypeCode.STRING): "cast_proto_string",
    (TypeCode.PROTO, TypeCode.BYTES): "",
    (TypeCode.STRING, TypeCode.ENUM): "cast_string_enum",
    (TypeCode.INT64, TypeCode.ENUM): "cast_int64_enum",
    (TypeCode.ENUM, TypeCode.STRING): "cast_enum_string",
    (TypeCode.ENUM, TypeCode.INT64): "",
}


def proto_field(owner: Typed, name: str, types: ProtoTypes) -> Typed:
    """message.field, or message.has_field. Raises INVALID_ARGUMENT."""
    message = message_of(owner, types)
    field = find_field(message, name)
    if field is None:
        return presence(owner, message, name, types)
    type_ = readable_type(field, types)
    return Typed(call("fn_proto_field", owner, types, quote_text(field.name)), type_, column=name)


def presence(owner: Typed, message: Descriptor, name: str, types: ProtoTypes) -> Typed:
    """message.has_field: whether the field is set."""
    is_virtual = name.casefold().startswith(PRESENCE)
    field = find_field(message, name[len(PRESENCE) :]) if is_virtual else None
    if field is None or field.is_repeated:
        raise errors.invalid_argument(
            f"Protocol buffer {message.full_name} does not have a field called {name}"
        )
    if not field.has_presence:
        raise errors.invalid_argument(
            f"Checking the presence of scalar field {field.full_name} is not supported: it has no"
            " presence (declare it optional)"
        )
    return Typed(call("fn_proto_has", owner, types, quote_text(field.name)), BOOL, column=name)


def message_of(owner: Typed, types: ProtoTypes) -> Descriptor:
    """The message of a value."""
    name = (owner.type.proto_name if owner.type is not None else None) or ""
    message = types.message(name)
    if message is None:
        raise errors.invalid_argument(f"Type not found: {name}")
    return message


def readable_type(field: FieldDescriptor, types: ProtoTypes) -> Type:
    """The type of a field in SQL. Raises INVALID_ARGUMENT for a field that SQL cannot read."""
    if is_one_of(field):
        raise errors.invalid_argument(
            f"The field {field.full_name} is part of a oneof, which SQL cannot read"
        )
    type_ = field_type(types, field)
    if type_ is not None:
        return type_
    declared = field.message_type or field.enum_type
    if declared is not None:
        raise errors.invalid_argument(
            f"Type not found: {declared.full_name} of the field {field.full_name}; add it to the"
            " proto bundle"
        )
    raise errors.invalid_argument(
        f"The field {field.full_name} has a type of protocol buffers that SQL does not have"
    )


def readable_fields(value: Typed, types: ProtoTypes) -> tuple[Typed, ...]:
    """The fields of a message that SQL can read, by their names."""
    fields = []
    for field in message_of(value, types).fields:
        if field_type(types, field) is not None and not is_one_of(field):
            fields.append(proto_field(value, field.name, types))
    return tuple(fields)


def call(function: str, owner: Typed, types: ProtoTypes, *arguments: str) -> str:
    """A call of one of the functions of ``emulator.sql.functions.protos``."""
    assert owner.type is not None
    listed = (owner.sql, *of_type(owner.type, types), *arguments)
    return f"{function}({', '.join(listed)})"


def of_type(type_: Type, types: ProtoTypes) -> tuple[str, str]:
    """The bundle and the name of a type, as arguments."""
    return quote_text(types.key), quote_text(type_.proto_name or "")


def cast_named(item: Typed, target: Type, safe: bool, types: ProtoTypes) -> Typed | None:
    """A CAST to or from a message or an enum; None where there is none."""
    assert item.type is not None
    function = CASTS.get((item.type.code, target.code))
    if function is None:
        return None
    if not function:
        return Typed(item.sql, target)
    named = target if target.code in NAMED else item.type
    prefix = "safe_" if safe else ""
    return Typed(f"{prefix}{function}({item.sql}, {', '.join(of_type(named, types))})", target)


def convert_literal(item: Typed, target: Type, types: ProtoTypes) -> Typed:
    """A literal as the message or enum that its place asks for, converted now.

    Raises INVALID_ARGUMENT.
    """
    assert item.type is not None
    text, name = item.literal or "", target.proto_name or ""
    try:
        if target.code is TypeCode.PROTO:
            return Typed(f"x'{parse_text(types, name, text).hex()}'", target)
        if item.type.code is TypeCode.STRING:
            return Typed(str(enum_number(types, name, text)), target)
    except ValueError as error:
        if target.code is TypeCode.PROTO:
            raise errors.invalid_argument(str(error)) from error
        raise wrong_literal(text, target) from error
    if not types.holds(name, int(text)):
        raise wrong_literal(text, target)
    return Typed(text, target)


def wrong_literal(text: str, target: Type) -> SpannerError:
    """The refusal of a literal that is no value of an enum."""
    return errors.invalid_argument(f"Could not cast literal {text!r} to type {name_of(target)}")


def named_among(items: list[Typed]) -> Type | None:
    """The one message or enum among the types of some values; None if there is none, or two."""
    named = {item.type for item in items if item.type is not None and item.type.code in NAMED}
    return named.pop() if len(named) == 1 else None


def build(function: str, first: tuple[str, ...], paths: list[str], values: list[Typed]) -> str:
    """A call that sets fields to values."""
    names = quote_text(json.dumps(paths))
    return f"{function}({', '.join((*first, names, *(value.sql for value in values)))})"
