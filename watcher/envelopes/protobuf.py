"""Files of Protobuf: the types of columns, messages, and the text that a registry takes.

The number of a column's field is a digest of its name. So it is the same in all versions of a
table's schema and in every process, with nothing remembered; a column that comes again with another
type has its number again, and a registry refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE

from spanner_schema.model.column_types import Type
from watcher.envelopes.record_schemas import OTHERWISE
from watcher.model.change import Shape
from watcher.model.errors import EnvelopeError
from watcher.model.value_types import Form, describe_values

NUMBER_MAX = 2**29 - 1
"""Protobuf: the greatest number of a field."""
RESERVED = range(19_000, 20_000)
"""Protobuf keeps these numbers for itself."""
TIMESTAMP = ".google.protobuf.Timestamp"
SCALARS = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
}
SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
ELEMENTS, ELEMENT = "elements", "value"
"""The field of an ARRAY's message, and that of an element, which has none where it is NULL."""


def name_type(type_: Type) -> str:
    """The type of a column's field. Raises UnsupportedTypeError."""
    if type_.element is not None:
        return f"{name_element(type_.element)}Array"
    match describe_values(type_).form:
        case Form.BOOL:
            return "bool"
        case Form.INTEGER:
            return "int64"
        case Form.FLOAT32:
            return "float"
        case Form.FLOAT64:
            return "double"
        case Form.BYTES:
            return "bytes"
        case Form.TIMESTAMP:
            return TIMESTAMP
        case Form.TEXT | Form.DATE | Form.JSON | Form.NUMERIC | Form.WIDE_NUMERIC:
            return "string"


def name_element(type_: Type) -> str:
    """What the messages of an ARRAY's elements are named after."""
    return name_type(type_).rpartition(".")[2].capitalize()


def declare_arrays(shape: Shape) -> Iterator[DescriptorProto]:
    """The messages of a table's ARRAYs: one that is NULL is not there, and is not an empty one."""
    elements = {name_element(t.element): t.element for _, t in shape.columns if t.element}
    for name, element in sorted(elements.items()):
        one = DescriptorProto(name=f"{name}Element")
        add_field(one, ELEMENT, name_type(element), 1)
        several = DescriptorProto(name=f"{name}Array")
        add_field(several, ELEMENTS, one.name, 1, repeated=True)
        yield from (one, several)


def declare_row(name: str, shape: Shape, columns: tuple[str, ...]) -> DescriptorProto:
    """A message of columns. A field of one that is NULL is not there. Raises EnvelopeError where
    two columns cannot be in one message, and UnsupportedTypeError."""
    message, types = DescriptorProto(name=name), dict(shape.columns)
    for column in columns:
        add_field(message, column, name_type(types[column]), number_field(column))
    refuse_twins(shape.table, {each.name: str(each.number) for each in message.field})
    refuse_twins(shape.table, {each.name: write_json_name(each.name) for each in message.field})
    return message


def number_field(column: str) -> int:
    """The number of a column's field."""
    digest = blake2b(column.encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big") % (NUMBER_MAX - len(RESERVED)) + 1
    return number if number < RESERVED.start else number + len(RESERVED)


def write_json_name(name: str) -> str:
    """What ``protoc`` calls a field in JSON: it refuses two of one name."""
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


def refuse_twins(table: str, signs: dict[str, str]) -> None:
    """Raises EnvelopeError for two columns that Protobuf cannot tell apart."""
    known: dict[str, str] = {}
    for column, sign in signs.items():
        twin = known.setdefault(sign, column)
        if twin != column:
            raise EnvelopeError(
                f"Protobuf cannot tell the columns '{twin}' and '{column}' of table {table} apart:"
                f" leave one of them out, or {OTHERWISE}"
            )


def add_field(
    message: DescriptorProto, name: str, kind: str, number: int, repeated: bool = False
) -> None:
    """Adds a field that is there or not, or has any number of values."""
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if kind not in SCALARS:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
    else:
        field.type = SCALARS[kind]
        if not repeated:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.append(OneofDescriptorProto(name=f"_{name}"))


def make_file(package: str, message: DescriptorProto) -> FileDescriptorProto:
    """A file with one message."""
    return FileDescriptorProto(
        name=f"{package}.{message.name}.proto",
        package=package,
        syntax="proto3",
        dependency=[TIMESTAMP_FILE.name],
        message_type=[message],
    )


def write_file(file: FileDescriptorProto) -> str:
    """A file as ``protoc`` reads it."""
    lines = [
        f'syntax = "{file.syntax}";',
        f"package {file.package};",
        "",
        *(f'import "{name}";' for name in file.dependency),
    ]
    for message in file.message_type:
        lines += ["", *list_lines(message, "")]
    return "\n".join(lines) + "\n"


def list_lines(message: DescriptorProto, indent: str) -> Iterator[str]:
    """The declaration of a message."""
    yield f"{indent}message {message.name} {{"
    for nested in message.nested_type:
        yield from list_lines(nested, f"{indent}  ")
    for field in message.field:
        kind = SCALAR_NAMES.get(field.type) or field.type_name
        label = "repeated" if field.label == FieldDescriptorProto.LABEL_REPEATED else "optional"
        yield f"{indent}  {label} {kind} {field.name} = {field.number};"
    yield f"{indent}}}"


def compile_file(file: FileDescriptorProto) -> type[Message]:
    """The class of a file's message."""
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP_FILE.serialized_pb)
    pool.Add(file)
    name = f"{file.package}.{file.message_type[0].name}"
    return GetMessageClass(pool.FindMessageTypeByName(name))
