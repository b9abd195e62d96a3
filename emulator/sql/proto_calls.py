"""NEW and REPLACE_FIELDS: messages from values."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce
from emulator.sql.compiler import Call, Compiler
from emulator.sql.parsed import NEW_FUNCTION
from emulator.sql.protos import build, message_of, of_type, readable_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.proto_fields import find_field
from emulator.values.protos import ProtoTypes
from spanner_schema.model.column_types import Type, TypeCode


class FieldValues:
    """The fields of a message that are set, and their values, in the type of each."""

    def __init__(self, type_: Type, context: Context) -> None:
        self.type = type_
        self.paths: list[str] = []
        self.values: list[Typed] = []
        self._context = context
        self._message = message_of(Typed("", type_), context.protos)

    def add(self, names: list[str], value: Typed) -> None:
        """Sets one field. Raises INVALID_ARGUMENT for one that is set already."""
        path, target = resolve_field(self._message, names, self._context.protos)
        if any(overlaps(path, other) for other in self.paths):
            raise errors.invalid_argument(f"The proto field {path} is set twice")
        self.paths.append(path)
        self.values.append(as_field(value, target, path, self._context))


def new_message(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """NEW pkg.Message(value AS field, ...)."""
    if not node.expressions or not isinstance(node.expressions[0], exp.Literal):
        raise errors.invalid_argument(f"Function not found: {node.name}")
    first, *items = node.expressions
    type_ = context.protos.type(str(first.this))
    if type_ is None or type_.code is not TypeCode.PROTO:
        raise errors.invalid_argument(f"Type not found: {first.this}")
    fields = FieldValues(type_, context)
    for each in items:
        value = compiler.compile(each, scope, context)
        if not value.column:
            raise errors.invalid_argument("Cannot construct proto because an argument has no name")
        fields.add([value.column], value)
    arguments = of_type(type_, context.protos)
    return Typed(build("fn_new_proto", arguments, fields.paths, fields.values), type_)


def replace_fields(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """REPLACE_FIELDS(message, value AS path, ...)."""
    first, *items = node.expressions
    owner = compiler.compile(first, scope, context)
    if owner.type is None or owner.type.code is not TypeCode.PROTO:
        raise errors.invalid_argument(
            f"REPLACE_FIELDS() is not defined for type {name_of(owner.type)}"
        )
    fields = FieldValues(owner.type, context)
    for each in items:
        if not isinstance(each, exp.Alias):
            raise errors.invalid_argument("REPLACE_FIELDS() takes values with the path of a field")
        fields.add(each.alias.split("."), compiler.compile(each.this, scope, context))
    arguments = (owner.sql, *of_type(owner.type, context.protos))
    return Typed(build("fn_replace_fields", arguments, fields.paths, fields.values), owner.type)


def overlaps(left: str, right: str) -> bool:
    """Whether a path is another one, or leads into it."""
    return f"{left}.".startswith(f"{right}.") or f"{right}.".startswith(f"{left}.")


def resolve_field(message: Descriptor, names: list[str], types: ProtoTypes) -> tuple[str, Type]:
    """A path of fields as the message spells it, and the type at its end."""
    path: list[str] = []
    type_ = Type(TypeCode.PROTO, proto_name=message.full_name)
    for name in names:
        if type_.code is not TypeCode.PROTO:
            raise errors.invalid_argument(
                f"Cannot access field {name} on a value with type {name_of(type_)}"
            )
        owner = message_of(Typed("", type_), types)
        field = find_field(owner, name)
        if field is None:
            raise errors.invalid_argument(
                f"Protocol buffer {owner.full_name} does not have a field called {name}"
            )
        path.append(field.name)
        type_ = readable_type(field, types)
    return ".".join(path), type_


def as_field(value: Typed, target: Type, path: str, context: Context) -> Typed:
    """A value as the type of the field that takes it."""
    converted = coerce(value, target, context)
    if converted is None:
        raise errors.invalid_argument(
            f"Could not store value with type {name_of(value.type)} into proto field {path} which"
            f" has SQL type {name_of(target)}"
        )
    return converted


CALLS: dict[str, Call] = {NEW_FUNCTION: new_message, "REPLACE_FIELDS": replace_fields}
