"""Debezium's event in Avro, key and value, as its connector writes it through a converter."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from watcher.envelopes.avro import load_fastavro, write_datum
from watcher.envelopes.connect_avro import convert_schema, convert_value
from watcher.envelopes.connect_schema import event_schema, key_schema
from watcher.envelopes.debezium import DebeziumRecord
from watcher.envelopes.message import Known, Message, RecordLayout, id_header
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas, check_names
from watcher.envelopes.templates import Template
from watcher.model.change import Change, Shape


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
