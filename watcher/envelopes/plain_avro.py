"""The project's own record in Avro: typed columns, and a key of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.avro import (
    avro_type,
    convert_row,
    describe_column,
    load_fastavro,
    write_datum,
)
from watcher.envelopes.message import Json, Known
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas, check_names
from watcher.envelopes.schema_files import schema_text
from watcher.envelopes.typed_record import TypedRecord
from watcher.model.change import Shape, Value


@dataclass(frozen=True, slots=True)
class Parsed:
    """The schemas of a table's keys and values, in fastavro's form."""

    key: object
    value: object


class PlainAvro(TypedRecord):
    """As ``TypedRecord``. ``timestamps``: microseconds since 1970, or text with all digits."""

    format_name: ClassVar[str] = "Avro"

    timestamps: Literal["micros", "iso"] = "micros"

    def check(self, known: Known) -> None:
        """As ``Envelope.check``. Raises MissingExtraError, too."""
        load_fastavro()
        super().check(known)

    def convert(self, shape: Shape, row: dict[str, Value]) -> dict[str, object]:
        """As ``TypedRecord.convert``."""
        return convert_row(shape, row, self.timestamps == "iso")

    def write(self, database: str, shape: Shape, event: dict[str, object]) -> tuple[bytes, bytes]:
        """As ``TypedRecord.write``."""
        parsed = parse_schemas(self, database, shape)
        return write_datum(parsed.key, event["key"]), write_datum(parsed.value, event)

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:
        """As ``SchemaEnvelope.describe_schemas``. Raises as ``check_names``, too."""
        check_names(shape)
        namespace = self.name_table(database, shape.table)
        types = {name: self.choose_type(type_) for name, type_ in shape.columns}
        key = make_record("Key", [describe_column(name, types[name]) for name in shape.primary_key])
        row = make_record("Row", [describe_column(name, avro) for name, avro in types.items()])
        value = json.loads(schema_text("plain-avro.avsc"))
        value["namespace"] = namespace
        for field in value["fields"]:
            if field["name"] == "key":
                field["type"] = key
            elif field["name"] == "values":
                field["type"] = ["null", row]
        return RecordSchemas(
            RecordSchema("AVRO", f"{namespace}.Key", {**key, "namespace": namespace}),
            RecordSchema("AVRO", f"{namespace}.Value", value),
        )

    def choose_type(self, type_: Type) -> Json:
        """The Avro type of a column besides null. Raises UnsupportedTypeError."""
        if self.timestamps == "iso" and type_.code is TypeCode.TIMESTAMP:
            return "string"
        if self.timestamps == "iso" and type_.element is not None:
            return {"type": "array", "items": ["null", self.choose_type(type_.element)]}
        return avro_type(type_)


@lru_cache(maxsize=1024)
def parse_schemas(chosen: PlainAvro, database: str, shape: Shape) -> Parsed:
    """The schemas of a table in fastavro's form. Raises as ``describe_schemas``."""
    schemas, parse = chosen.describe_schemas(database, shape), load_fastavro().parse_schema
    assert schemas.key is not None
    return Parsed(parse(schemas.key.schema), parse(schemas.value.schema))


def make_record(name: str, fields: list[Json]) -> dict[str, Json]:
    """A record of columns."""
    return {"type": "record", "name": name, "fields": fields}
