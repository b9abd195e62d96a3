"""The project's own record in Avro: typed columns, and a key of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ddl.model.names import split_name
from ddl.model.schema import Type, TypeCode
from watcher.envelopes.avro import (
    avro_type,
    check_names,
    convert_row,
    describe_column,
    load_fastavro,
    write_datum,
)
from watcher.envelopes.kinds import (
    Kind,
    LackingError,
    Layer,
    Layers,
    find_kind,
    new_row,
    old_row,
    refuse_change,
    refuse_part,
)
from watcher.envelopes.leaves import read_row
from watcher.envelopes.message import (
    EnvelopeOptions,
    Json,
    Known,
    Message,
    RecordLayout,
    id_header,
)
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas
from watcher.envelopes.schema_files import schema_text
from watcher.model.change import Change, Shape
from watcher.model.errors import ConfigurationError

NAMESPACE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
"""Avro: what a namespace may be."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
ROW: Layers = (Layer.NEW, Layer.KEY)
NEED = "a row in Avro needs every column"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The schemas of a table's keys and values, in fastavro's form."""

    key: object
    value: object


class PlainAvro(EnvelopeOptions):
    """As ``Plain``, key and value as Avro data without their schemas, which a registry keeps.

    ``values`` is the row afterwards, ``old_values`` the row before where it is known; each is whole
    or null, since Avro has no way to leave a column out. ``namespace`` is that of the records; by
    default the database. ``timestamps``: microseconds since 1970, or text with all digits.
    """

    has_key: ClassVar[bool] = True
    binary: ClassVar[bool] = True
    needs_registry: ClassVar[bool] = True
    layout: ClassVar[RecordLayout | None] = None

    namespace: Annotated[str, Field(pattern=NAMESPACE)] | None = None
    timestamps: Literal["micros", "iso"] = "micros"

    def check(self, known: Known) -> None:
        """As ``Envelope.check``. Raises MissingExtraError, too."""
        load_fastavro()
        if not known.whole_rows:
            raise ConfigurationError(
                f"{NEED}, and {known} has only the columns that changed: use value_capture_type"
                " NEW_ROW or NEW_ROW_AND_OLD_VALUES"
            )

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        try:
            event = self._fill(change, find_kind(change))
        except LackingError as error:
            raise refuse_change(change, error) from error
        parsed = parse_schemas(self, change.database, change.shape)
        key = write_datum(parsed.key, event["key"])
        return (Message(key, write_datum(parsed.value, event), id_header(change.id)),)

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:
        """As ``SchemaEnvelope.describe_schemas``. Raises as ``check_names``, too."""
        check_names(shape)
        namespace = self._name_table(database, shape.table)
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

    def _name_table(self, database: str, table: str) -> str:
        """The namespace of a table's records."""
        namespace = self.namespace or replace_signs(database.rpartition("/")[2])
        return ".".join([namespace, *(replace_signs(part) for part in split_name(table) if part)])

    def choose_type(self, type_: Type) -> Json:
        """The Avro type of a column besides null. Raises UnsupportedTypeError."""
        if self.timestamps == "iso" and type_.code is TypeCode.TIMESTAMP:
            return "string"
        if self.timestamps == "iso" and type_.element is not None:
            return {"type": "array", "items": ["null", self.choose_type(type_.element)]}
        return avro_type(type_)

    def _fill(self, change: Change, kind: Kind) -> dict[str, object]:
        """The record of a change. Raises LackingError."""
        refuse_part(kind, kind.has_whole_new_row, NEED)
        new = ROW if kind.has_new else new_row(kind)  # of a soft delete there is still the row
        old = old_row(kind)
        origin, texts = change.origin, self.timestamps == "iso"
        return {
            "id": change.id,
            "table": change.table,
            "operation": str(change.operation),
            "commit_timestamp": change.commit_timestamp,
            "shard": change.shard_id,
            "key": convert_row(change.shape, change.key, texts),
            "values": new and convert_row(change.shape, read_row(change, new), texts),
            "old_values": old and convert_row(change.shape, read_row(change, old), texts),
            "transaction": origin
            and {
                "id": origin.transaction_id,
                "sequence": origin.record_sequence,
                "tag": origin.transaction_tag,
            },
            "window": {"start": change.window.start, "end": change.window.end},
        }


@lru_cache(maxsize=1024)
def parse_schemas(chosen: PlainAvro, database: str, shape: Shape) -> Parsed:
    """The schemas of a table in fastavro's form. Raises as ``describe_schemas``."""
    schemas, parse = chosen.describe_schemas(database, shape), load_fastavro().parse_schema
    assert schemas.key is not None
    return Parsed(parse(schemas.key.schema), parse(schemas.value.schema))


def make_record(name: str, fields: list[Json]) -> dict[str, Json]:
    """A record of columns."""
    return {"type": "record", "name": name, "fields": fields}


def replace_signs(name: str) -> str:
    """A name with only the signs that Avro allows."""
    replaced = NOT_IN_NAMES.sub("_", name)
    return f"_{replaced}" if replaced[0].isdigit() else replaced
