"""The schemas of records: what a schema registry keeps, and by which readers decode messages."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from watcher.envelopes.message import Json
from watcher.model.change import Shape
from watcher.model.errors import EnvelopeError

Part: TypeAlias = Literal["key", "value"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
"""What a name may be, in Avro and in Protobuf."""
OTHERWISE = "use an envelope in JSON, as 'plain' or 'datastream'"


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """A schema in the words of a registry: ``kind`` is its ``schemaType``. ``name`` is the full
    name of the record, ``place`` what the wire format has between the id of a schema and a record:
    where in a file of Protobuf its message is."""

    kind: Literal["AVRO", "JSON", "PROTOBUF"]
    name: str
    schema: Json
    place: bytes = b""

    @property
    def text(self) -> str:
        """As it is registered: JSON, or a file of Protobuf."""
        if self.kind == "PROTOBUF":
            return str(self.schema)
        return json.dumps(self.schema)


@dataclass(frozen=True, slots=True)
class RecordSchemas:
    """Of the messages of a table. ``key`` is None where keys have no schema: they stay as they
    are."""

    key: RecordSchema | None
    value: RecordSchema


@runtime_checkable
class SchemaEnvelope(Protocol):
    """An ``Envelope`` that knows the schemas of its records."""

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:
        """The schemas of a table's records: all records of a shape have the same. Raises
        UnsupportedTypeError."""
        ...


def check_names(shape: Shape, format_name: str = "Avro") -> None:
    """Raises EnvelopeError for a column whose name a format does not allow: the writer would take
    it, and other readers would not."""
    for name, _ in shape.columns:
        if NAME.match(name) is None:
            raise EnvelopeError(
                f"{format_name} does not allow a column name of table {shape.table} ('{name}'):"
                f" leave the column out, or {OTHERWISE}"
            )
