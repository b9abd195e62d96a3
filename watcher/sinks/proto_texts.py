"""Columns of messages and enums as JSON and names, by the descriptors that a user gives."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import Changed, StreamRows, TableRows
from watcher.model.change import Shape
from watcher.model.errors import ConfigurationError, EnvelopeError
from watcher.sinks.contract import Sink, SinkAround, WindowSink

Convert = Callable[[Any], Any]
JSON, STRING = Type(TypeCode.JSON), Type(TypeCode.STRING)
ADVICE = "make it with protoc --include_imports --descriptor_set_out=FILE"


@dataclass(frozen=True, slots=True)
class Shown:
    """How a column is shown: its type, and a function of each value that is not NULL."""

    type: Type
    convert: Convert


class ProtoTexts:
    """Messages as their JSON, enums by their names. A number without a name stays a number, as
    text. Keys are left as they are: others find rows by them."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigurationError for a file that is not a FileDescriptorSet, or lacks what its
        files import."""
        self._path = path
        self._pool = load_pool(path)
        self._shown: dict[Type, Shown | None] = {}

    def convert(self, rows: Changed) -> Changed:
        """The same rows with texts. Raises EnvelopeError for a type that the file does not have,
        and for a value that is not of its type."""
        return self._convert_stream(rows) if isinstance(rows, StreamRows) else self._convert(rows)

    def _convert(self, rows: TableRows) -> TableRows:
        table, batch = rows.table, rows.batch
        shown = self._find_shown(table.name, table.columns, table.primary_key)
        for name, how in shown.items():
            index = batch.schema.get_field_index(name)
            cells = batch.column(index).to_pylist()
            values = [None if cell is None else how.convert(cell) for cell in cells]
            batch = batch.set_column(index, name, pa.array(values, arrow_type(how.type)))
        table = replace(table, columns=retype(table.columns, shown))
        return replace(rows, table=table, batch=batch)

    def _convert_stream(self, rows: StreamRows) -> StreamRows:
        found = [self._find_shown(s.table, s.columns, s.primary_key) for s in rows.shapes]
        if not any(found):
            return rows
        batch, shapes = rows.batch, rows.batch.column("shape").to_pylist()
        for name in ("new_values", "old_values"):
            texts = batch.column(name).to_pylist()
            both = zip(texts, shapes, strict=True)
            field = batch.schema.field(name)
            converted = pa.array([convert_object(t, found[s]) for t, s in both], field.type)
            batch = batch.set_column(batch.schema.get_field_index(name), field, converted)
        pairs = zip(rows.shapes, found, strict=True)
        return replace(rows, batch=batch, shapes=tuple(retype_shape(s, f) for s, f in pairs))

    def _find_shown(
        self, table: str, columns: tuple[tuple[str, Type], ...], key: tuple[str, ...]
    ) -> dict[str, Shown]:
        """The columns of a table that are shown in another way."""
        return {
            name: how
            for name, type_ in columns
            if name not in key and (how := self._show(table, name, type_)) is not None
        }

    def _show(self, table: str, column: str, type_: Type) -> Shown | None:
        if type_ not in self._shown:
            self._shown[type_] = self._make_shown(f"{table}.{column}", type_)
        return self._shown[type_]

    def _make_shown(self, column: str, type_: Type) -> Shown | None:
        if type_.code is TypeCode.ARRAY and type_.element is not None:
            element = self._make_shown(column, type_.element)
            return element and show_elements(element)
        if type_.code not in (TypeCode.PROTO, TypeCode.ENUM):
            return None
        name = type_.proto_name or "a type that the change stream does not name"
        find = getattr(self._pool, f"Find{FINDERS[type_.code]}ByName")
        try:
            found = find(name)
        except KeyError as error:
            raise EnvelopeError(
                f"{self._path} does not have {name}, the type of column {column}; {ADVICE}"
            ) from error
        if type_.code is TypeCode.PROTO:
            return Shown(JSON, MessageToText(self._pool, GetMessageClass(found), name))
        names = {value.number: value.name for value in found.values}
        return Shown(STRING, lambda number: names.get(int(number), str(number)))


FINDERS = {TypeCode.PROTO: "MessageType", TypeCode.ENUM: "EnumType"}


class MessageToText:
    """Bytes of a message, or their base64, as JSON on one line."""

    def __init__(self, pool: DescriptorPool, message: Any, name: str) -> None:
        self._pool, self._message, self._name = pool, message, name

    def __call__(self, value: bytes | str) -> str:
        sent = b64decode(value) if isinstance(value, str) else value
        try:
            message = self._message.FromString(sent)
            shown = json_format.MessageToDict(message, descriptor_pool=self._pool)
        except (DecodeError, json_format.Error, TypeError, ValueError) as error:
            raise EnvelopeError(f"a value is not a message {self._name}: {error}") from error
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def check_descriptors(path: Path | None) -> None:
    """Raises ConfigurationError as ``ProtoTexts`` does, before anything is done."""
    if path is not None:
        load_pool(path)


def load_pool(path: Path) -> DescriptorPool:
    """The types that a file describes. Raises ConfigurationError."""
    try:
        described = FileDescriptorSet.FromString(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except DecodeError as error:
        raise ConfigurationError(f"{path} is not a FileDescriptorSet; {ADVICE}") from error
    pool, waiting = DescriptorPool(), {file.name: file for file in described.file}
    if not waiting:
        raise ConfigurationError(f"{path} describes no types; {ADVICE}")
    for name in list(waiting):
        add_file(pool, waiting, name, path)
    return pool


def add_file(
    pool: DescriptorPool, waiting: dict[str, FileDescriptorProto], name: str, path: Path
) -> None:
    """Adds a file after those that it imports, once."""
    file = waiting.pop(name, None)
    if file is None:
        return
    for imported in file.dependency:
        add_file(pool, waiting, imported, path)
    try:
        pool.Add(file)
        pool.FindFileByName(name)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{path}: {name} cannot be used: {error}; {ADVICE}") from error


def show_elements(element: Shown) -> Shown:
    """The same of an ARRAY."""

    def convert(values: list[Any]) -> list[Any]:
        return [None if each is None else element.convert(each) for each in values]

    return Shown(Type(TypeCode.ARRAY, element=element.type), convert)


def arrow_type(type_: Type) -> pa.DataType:
    """Texts, or lists of them."""
    return pa.string() if type_.element is None else pa.list_(pa.string())


def retype(
    columns: tuple[tuple[str, Type], ...], shown: Mapping[str, Shown]
) -> tuple[tuple[str, Type], ...]:
    """Columns with the types that they are shown in."""
    return tuple((n, shown[n].type if n in shown else type_) for n, type_ in columns)


def retype_shape(shape: Shape, shown: Mapping[str, Shown]) -> Shape:
    """A shape with the types that its columns are shown in."""
    return replace(shape, columns=retype(shape.columns, shown))


def convert_object(text: str | None, shown: Mapping[str, Shown]) -> str | None:
    """The values of a change, as a change stream sends them."""
    if text is None or not shown:
        return text
    values = json.loads(text)
    for name, how in shown.items():
        if values.get(name) is not None:
            values[name] = how.convert(values[name])
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


class ProtoTextSink(SinkAround):
    """As the sink inside, which gets texts instead of messages and enums."""

    def __init__(self, sink: Sink, texts: ProtoTexts) -> None:
        super().__init__(sink)
        self._sink, self._texts = sink, texts

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        self._sink.write(self._texts.convert(rows))


def show_protos(sink: Sink, descriptors: Path | None) -> Sink:
    """The sink with texts, where descriptors are given. Copies keep bytes and numbers."""
    if descriptors is None or isinstance(sink, WindowSink):
        return sink
    return ProtoTextSink(sink, ProtoTexts(descriptors))
