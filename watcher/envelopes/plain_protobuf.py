"""The project's own record in Protobuf: typed columns, and a key of its own.

The number of a column's field is a digest of its name. So it is the same in all versions of a
table's schema and in every process, with nothing remembered; a column that comes again with another
type has its number again, and a registry refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import ClassVar

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.record_schemas import (
    OTHERWISE,
    RecordSchema,
    RecordSchemas,
    check_names,
)
from watcher.envelopes.typed_record import TypedRecord
from watcher.model.change import Shape, Value
from watcher.model.errors import EnvelopeError
from watcher.model.value_types import Form, describe_values
from watcher.spanner.json_columns.scalars import format_numeric
from watcher.spanner.key_values import read_nanos

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
NANOS = 1_000_000_000
MICROS = 1_000_000
FIRST = b"\0"
"""The message is the first one of its file."""
TRANSACTION = (("id", "string"), ("sequence", "string"), ("tag", "string"))
WINDOW = (("start", TIMESTAMP), ("end", TIMESTAMP))
VALUE = (
    ("id", "string"),
    ("table", "string"),
    ("operation", "string"),
    ("commit_timestamp", TIMESTAMP),
    ("shard", "int64"),
    ("key", "Key"),
    ("values", "Row"),
    ("old_values", "Row"),
    ("transaction", "Transaction"),
    ("window", "Window"),
)
"""The fields of these messages, whose numbers begin with 1."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The classes of a table's keys and values."""

    key: type[ProtoMessage]
    value: type[ProtoMessage]


class PlainProtobuf(TypedRecord):
    """As ``TypedRecord``. ``namespace`` is the package of its messages."""

    format_name: ClassVar[str] = "Protobuf"

    def convert(self, shape: Shape, row: dict[str, Value]) -> dict[str, object]:
        """As ``TypedRecord.convert``: what is NULL is left out."""
        types = dict(shape.columns)
        return {n: convert_cell(v, types[n]) for n, v in row.items() if v is not None}

    def write(self, database: str, shape: Shape, event: dict[str, object]) -> tuple[bytes, bytes]:
        """As ``TypedRecord.write``."""
        compiled, window = compile_messages(self, database, shape), event["window"]
        assert isinstance(window, dict), "a record has its window"
        event["commit_timestamp"] = write_micros(event["commit_timestamp"])
        event["window"] = {name: write_micros(at) for name, at in window.items()}
        key, value = compiled.key(**as_fields(event["key"])), compiled.value(**event)
        return key.SerializeToString(), value.SerializeToString()

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:
        """As ``SchemaEnvelope.describe_schemas``. Raises as ``describe_files``."""
        files = describe_files(self.name_table(database, shape.table), shape)
        key, value = (
            RecordSchema("PROTOBUF", f"{file.package}.{name}", write_file(file), FIRST)
            for file, name in zip(files, ("Key", "Value"), strict=True)
        )
        return RecordSchemas(key, value)


def describe_files(package: str, shape: Shape) -> tuple[FileDescriptorProto, FileDescriptorProto]:
    """The files of a table's keys and values. Raises as ``check_names`` and ``declare_row``."""
    check_names(shape, "Protobuf")
    key = declare_row("Key", shape, shape.primary_key)
    value = declare_message("Value", VALUE)
    value.nested_type.extend(
        [
            *declare_arrays(shape),
            key,
            declare_row("Row", shape, tuple(name for name, _ in shape.columns)),
            declare_message("Transaction", TRANSACTION),
            declare_message("Window", WINDOW),
        ]
    )
    return make_file(package, key), make_file(package, value)


def declare_message(name: str, fields: tuple[tuple[str, str], ...]) -> DescriptorProto:
    """A message whose fields are numbered."""
    message = DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields, 1):
        add_field(message, field, kind, number)
    return message


@lru_cache(maxsize=1024)
def compile_messages(chosen: PlainProtobuf, database: str, shape: Shape) -> Compiled:
    """The classes of a table's messages. Raises as ``describe_files``."""
    key, value = describe_files(chosen.name_table(database, shape.table), shape)
    return Compiled(compile_file(key), compile_file(value))


def as_fields(row: object) -> dict[str, object]:
    """A converted row."""
    assert isinstance(row, dict), "a row is converted to fields"
    return row


def convert_cell(value: Value, type_: Type) -> object:
    """A cell that is not NULL as a field takes it."""
    if isinstance(value, list | tuple) and type_.element is not None:
        element = type_.element
        return {
            ELEMENTS: [
                {} if item is None else {ELEMENT: convert_cell(item, element)} for item in value
            ]
        }
    if type_.code is TypeCode.TIMESTAMP and isinstance(value, str):
        seconds, nanos = divmod(read_nanos(value), NANOS)
        return {"seconds": seconds, "nanos": nanos}
    if isinstance(value, Decimal):
        return format_numeric(value)
    return value.isoformat() if isinstance(value, date) else value


def write_micros(micros: object) -> dict[str, int]:
    """A time in microseconds as the fields of a timestamp."""
    assert isinstance(micros, int), "a time is a number here"
    seconds, rest = divmod(micros, MICROS)
    return {"seconds": seconds, "nanos": rest * (NANOS // MICROS)}


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


def compile_file(file: FileDescriptorProto) -> type[ProtoMessage]:
    """The class of a file's message."""
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP_FILE.serialized_pb)
    pool.Add(file)
    name = f"{file.package}.{file.message_type[0].name}"
    return GetMessageClass(pool.FindMessageTypeByName(name))
