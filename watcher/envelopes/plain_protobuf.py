"""The project's own record in Protobuf: typed columns, and a key of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import ClassVar

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message import Message as ProtoMessage

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.protobuf import (
    ELEMENT,
    ELEMENTS,
    TIMESTAMP,
    add_field,
    compile_file,
    declare_arrays,
    declare_row,
    make_file,
    write_file,
)
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas, check_names
from watcher.envelopes.typed_record import TypedRecord
from watcher.model.change import Shape, Value
from watcher.spanner.json_columns.scalars import format_numeric
from watcher.spanner.key_values import read_nanos

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
