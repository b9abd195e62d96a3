"""The schemas of records: what a schema registry keeps, and by which readers decode messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from watcher.envelopes.message import Json
from watcher.model.change import Shape

Part: TypeAlias = Literal["key", "value"]


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """A schema in the words of a registry: ``kind`` is its ``schemaType``. ``name`` is the full
    name of the record."""

    kind: Literal["AVRO", "JSON"]
    name: str
    schema: Json

    @property
    def text(self) -> str:
        """As it is registered."""
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
