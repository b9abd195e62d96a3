"""Types between their proto and our value."""

from __future__ import annotations

from collections.abc import Sequence

from emulator import limits
from emulator.errors import invalid_argument, not_found
from emulator.values.protos import ProtoTypes
from emulator.values.requests import ResultColumn
from emulator.values.served_types import SERVED_TYPES
from emulator.wire.messages import Message, ResultSetMetadata
from spanner_schema.model.column_types import StructField, Type, TypeCode

BY_NUMBER = {(served.number, served.annotation): code for code, served in SERVED_TYPES.items()}
"""By the numbers of google.spanner.v1.TypeCode and TypeAnnotationCode."""


def read_type(proto: Message, types: ProtoTypes, depth: int = 0) -> Type:
    """A type that a client declares; ``types`` are those of the proto bundle.

    Raises INVALID_ARGUMENT when it makes no sense, NOT_FOUND when it is not in the bundle.
    """
    code = BY_NUMBER.get((proto.code, proto.type_annotation))
    if code is None or depth > limits.ARRAY_DEPTH_MAX:
        raise invalid_argument(f"Invalid type: unknown code {proto.code}.")
    if code in (TypeCode.PROTO, TypeCode.ENUM):
        return read_named_type(proto, code, types)
    if code is TypeCode.ARRAY:
        if not proto.HasField("array_element_type"):
            raise invalid_argument("Invalid type: ARRAY without array_element_type.")
        return Type(code, element=read_type(proto.array_element_type, types, depth + 1))
    if code is TypeCode.STRUCT:
        fields = (
            StructField(f.name, read_type(f.type_, types, depth + 1))
            for f in proto.struct_type.fields
        )
        return Type(code, fields=tuple(fields))
    return Type(code)


def read_named_type(proto: Message, code: TypeCode, types: ProtoTypes) -> Type:
    """A message or an enum."""
    name = str(proto.proto_type_fqn)
    declared = types.type(name)
    if declared is None or declared.code is not code:
        kind = "Type" if code is TypeCode.PROTO else "Enum type"
        raise not_found(f"{kind} not found: `{name}`")
    return declared


def fill_type(proto: Message, type_: Type) -> None:
    """Writes a type into its proto."""
    served = SERVED_TYPES[type_.code]
    proto.code = served.number
    if served.annotation:
        proto.type_annotation = served.annotation
    if type_.proto_name is not None:
        proto.proto_type_fqn = type_.proto_name
    if type_.element is not None:
        fill_type(proto.array_element_type, type_.element)
    if type_.code is TypeCode.STRUCT:
        proto.struct_type.SetInParent()
        for field in type_.fields:
            added = proto.struct_type.fields.add(name=field.name)
            fill_type(added.type_, field.type)


def result_metadata(
    columns: Sequence[ResultColumn], undeclared: Sequence[ResultColumn] = ()
) -> Message:
    """ResultSetMetadata without its transaction."""
    message = ResultSetMetadata()
    message.row_type.SetInParent()
    for column in columns:
        fill_type(message.row_type.fields.add(name=column.name).type_, column.type)
    for column in undeclared:
        fill_type(message.undeclared_parameters.fields.add(name=column.name).type_, column.type)
    return message
