"""The fields of protocol buffers: their types in SQL, and their values in storage form."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from emulator.values.forms import bytes_of
from emulator.values.protos import ProtoTypes
from emulator.values.types import BOOL, BYTES, FLOAT64, INT64, STRING, array
from spanner_schema.model.column_types import Type

SCALARS = {
    FieldDescriptor.TYPE_BOOL: BOOL,
    FieldDescriptor.TYPE_BYTES: BYTES,
    FieldDescriptor.TYPE_DOUBLE: FLOAT64,
    FieldDescriptor.TYPE_INT64: INT64,
    FieldDescriptor.TYPE_SINT64: INT64,
    FieldDescriptor.TYPE_SFIXED64: INT64,
    FieldDescriptor.TYPE_STRING: STRING,
}
"""Fields that SQL can read; float and the other integers have no type in Spanner's SQL
(reference/standard-sql/protocol-buffers, "Type mapping")."""

MESSAGES = {FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP}


def find_field(message: Descriptor, name: str) -> FieldDescriptor | None:
    """The field of this name, without regard to case unless two differ by it alone."""
    exact = message.fields_by_name.get(name)
    folded = name.casefold()
    return exact or next((f for f in message.fields if f.name.casefold() == folded), None)


def field_type(types: ProtoTypes, field: FieldDescriptor) -> Type | None:
    """What a field is in SQL; None for a type that SQL lacks, or that the bundle does not name."""
    declared = field.message_type or field.enum_type
    single = types.type(declared.full_name) if declared is not None else SCALARS.get(field.type)
    return array(single) if single is not None and field.is_repeated else single


def is_one_of(field: FieldDescriptor) -> bool:
    """Whether a field is one of several of which at most one is set."""
    group = field.containing_oneof
    return group is not None and field.has_presence and not is_optional(field)


def is_optional(field: FieldDescriptor) -> bool:
    """Whether a field of proto3 is written with the word optional, for which there is a oneof."""
    group = field.containing_oneof
    return group is not None and len(group.fields) == 1 and group.name.startswith("_")


def get_field(message: Message, field: FieldDescriptor) -> object:
    """A field in storage form: its default where it is not set, NULL for a missing message.

    Raises ValueError for a string that is not UTF-8.
    """
    if field.is_repeated:
        items = [to_element(to_stored(each, field)) for each in getattr(message, field.name)]
        return json.dumps(items, separators=(",", ":"), ensure_ascii=False)
    if field.type in MESSAGES and not message.HasField(field.name):
        return None
    return to_stored(getattr(message, field.name), field)


def to_stored(value: object, field: FieldDescriptor) -> object:
    """One value in storage form. Raises ValueError for a string that is not UTF-8."""
    if field.type == FieldDescriptor.TYPE_STRING and not isinstance(value, str):
        raise ValueError(f"The string in the proto field {field.full_name} is not UTF-8")
    if isinstance(value, Message):
        return value.SerializeToString()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return int(value) if isinstance(value, bool) else value


def to_element(value: object) -> object:
    """A value in storage form as an element of an array."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def set_field(message: Message, field: FieldDescriptor, stored: object) -> None:
    """Sets a field from the storage form; NULL takes it away.

    Raises ValueError for a value that does not fit, and for NULL in a required field.
    """
    message.ClearField(field.name)
    if stored is None:
        if field.is_required:
            raise ValueError(f"Cannot clear required proto field {field.full_name}")
        return
    if not field.is_repeated:
        set_one(message, field, stored)
        return
    values = getattr(message, field.name)
    for item in json.loads(str(stored)):
        if item is None:
            raise ValueError(
                f"Cannot encode a null value in repeated protocol message field {field.full_name}"
            )
        if field.type in MESSAGES:
            values.add().MergeFromString(bytes_of(item))
        else:
            values.append(from_stored(field, item))


def set_one(message: Message, field: FieldDescriptor, stored: object) -> None:
    """Sets a field that is not repeated."""
    if field.type in MESSAGES:
        inner = getattr(message, field.name)
        inner.SetInParent()
        inner.MergeFromString(bytes_of(stored))
    else:
        setattr(message, field.name, from_stored(field, stored))


def from_stored(field: FieldDescriptor, stored: object) -> object:
    """A value in storage form, which may be that of an element, as protobuf takes it."""
    convert = FROM_STORED.get(field.type)
    return convert(stored) if convert is not None else stored


FROM_STORED: dict[int, Callable[[object], object]] = {
    FieldDescriptor.TYPE_BOOL: bool,
    FieldDescriptor.TYPE_BYTES: bytes_of,
    FieldDescriptor.TYPE_DOUBLE: lambda stored: float(str(stored)),
}
