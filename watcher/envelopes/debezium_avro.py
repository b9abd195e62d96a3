"""Debezium's event in Avro, key and value, as its connector writes it through a converter of Kafka
Connect, which makes Avro of Connect's schemas."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from watcher.envelopes.avro import load_fastavro, write_datum
from watcher.envelopes.connect_schema import event_schema, key_schema
from watcher.envelopes.debezium import DebeziumRecord
from watcher.envelopes.message import Json, Known, Message, RecordLayout, id_header
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas, check_names
from watcher.envelopes.templates import Template
from watcher.envelopes.typed_record import replace_signs
from watcher.model.change import Change, Shape

PRIMITIVES = {
    "boolean": "boolean",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}
LONG_END = 2**63
"""Nanoseconds after the year 2262 are not a long; the fields with them may be null, and are."""
OF_CONNECT = ("version", "parameters", "default", "name")
"""What a converter keeps of Connect's schema, as ``connect.NAME``, since Avro has no place for
it."""


@dataclass(frozen=True, slots=True)
class Record:
    """The schema of keys, or of values: Connect's, Avro's, and that in fastavro's form."""

    connect: dict[str, Any]
    avro: dict[str, Any]
    parsed: object

    @property
    def schema(self) -> RecordSchema:
        """As a registry takes it."""
        return RecordSchema("AVRO", self.avro["connect.name"], self.avro)

    def write(self, template: Template, change: Change) -> bytes:
        """What a template writes of a change, as Avro."""
        datum = convert_value(self.connect, json.loads(template.write(change)))
        return write_datum(self.parsed, datum)


class DebeziumAvro(DebeziumRecord):
    """As ``DebeziumRecord``, without the schemas, which a registry keeps. Columns of a key may be
    NULL, as in Spanner: so the keys of a table have one schema."""

    binary: ClassVar[bool] = True
    needs_registry: ClassVar[bool] = True
    layout: ClassVar[RecordLayout | None] = None

    def check(self, known: Known) -> None:
        """As ``Envelope.check``. Raises MissingExtraError, too."""
        load_fastavro()
        super().check(known)

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``. Raises as ``check_names``, too."""
        compiled, headers = self.compile_for(change), id_header(change.id)
        keys, values = describe_records(self.name, change.shape)
        key = keys.write(compiled.key, change)
        message = Message(key, values.write(compiled.value, change), headers)
        return (message, Message(key, None, headers)) if compiled.tombstone else (message,)

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:  # noqa: ARG002
        """As ``SchemaEnvelope.describe_schemas``. Raises as ``check_names``, too."""
        keys, values = describe_records(self.name, shape)
        return RecordSchemas(keys.schema, values.schema)


@lru_cache(maxsize=1024)
def describe_records(connector: str, shape: Shape) -> tuple[Record, Record]:
    """The keys and the values of a table's events. Raises as ``check_names``, and
    UnsupportedTypeError."""
    check_names(shape)
    nulls = frozenset(shape.primary_key)
    return make_record(key_schema(shape, nulls)), make_record(event_schema(connector, shape, nulls))


def make_record(connect: dict[str, Any]) -> Record:
    """The schemas of a record, from Connect's."""
    avro = convert_schema(connect, set())
    assert isinstance(avro, dict), "a record is not optional"
    return Record(connect, avro, load_fastavro().parse_schema(avro))


def convert_schema(connect: dict[str, Any], known: set[str]) -> Json:
    """Connect's schema as Avro's; a record that is ``known`` is named. A union with null has the
    type of its default first."""
    avro = convert_type(connect, known)
    if not connect["optional"]:
        return avro
    return [avro, "null"] if "default" in connect else ["null", avro]


def convert_type(connect: dict[str, Any], known: set[str]) -> Json:
    """As ``convert_schema``, besides null."""
    kept: dict[str, Json] = {
        f"connect.{each}": connect[each] for each in OF_CONNECT if each in connect
    }
    if connect["type"] == "array":
        return {"type": "array", "items": convert_schema(connect["items"], known), **kept}
    if connect["type"] != "struct":
        primitive = PRIMITIVES[connect["type"]]
        return {"type": primitive, **kept} if kept else primitive
    name = name_record(connect["name"])
    if name in known:
        return name
    known.add(name)
    namespace, _, own = name.rpartition(".")
    fields: list[Json] = [convert_field(each, known) for each in connect["fields"]]
    record: dict[str, Json] = {"type": "record", "name": own, "namespace": namespace}
    return {**record, "fields": fields, **kept, "connect.name": name}


def convert_field(connect: dict[str, Any], known: set[str]) -> Json:
    """A field of a record. What may be left out has a default: so a column can be added or
    dropped."""
    field: dict[str, Json] = {"name": connect["field"], "type": convert_schema(connect, known)}
    if connect["optional"]:
        field["default"] = connect.get("default")
    return field


def name_record(name: str) -> str:
    """The name of a record with the signs that Avro allows, as Debezium adjusts it."""
    return ".".join(replace_signs(part) for part in name.split("."))


def convert_value(connect: dict[str, Any], value: Any) -> Any:
    """A value in JSON as Avro's writer takes it."""
    if value is None:
        return None
    match connect["type"]:
        case "struct":
            return {
                each["field"]: convert_value(each, value.get(each["field"]))
                for each in connect["fields"]
            }
        case "array":
            return [convert_value(connect["items"], each) for each in value]
        case "bytes":
            return base64.b64decode(value)
        case "float" | "double":
            return float(value)
        case "int64":
            return value if -LONG_END <= value < LONG_END else None
    return value
