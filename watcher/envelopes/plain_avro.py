"""The project's own record in Avro: typed columns, and a key of its own.

Rows that were polled are also written by column: cells of types that Arrow has as Avro by vectors,
others one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.changes import convert_cell as read_cell
from watcher.envelopes.avro import (
    avro_type,
    convert_cell,
    convert_row,
    describe_column,
    load_fastavro,
    write_datum,
)
from watcher.envelopes.by_column.avro_cells import (
    NULL,
    PRESENT,
    encode_booleans,
    encode_floats,
    encode_longs,
    encode_texts,
    encode_union,
    join,
)
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.kinds import LackingError
from watcher.envelopes.message import Json, Known
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas, check_names
from watcher.envelopes.schema_files import schema_text
from watcher.envelopes.templates import Messages
from watcher.envelopes.typed_record import TypedRecord
from watcher.envelopes.values import COMPACT_CELLS, CellStyle
from watcher.model.change import Shape, Value
from watcher.spanner.results.columns import TIMESTAMP

VECTORS: Mapping[tuple[pa.DataType, str], Callable[[pa.Array], pa.Array]] = {
    (pa.bool_(), "boolean"): encode_booleans,
    (pa.int64(), "long"): encode_longs,
    (pa.float32(), "float"): encode_floats,
    (pa.float64(), "double"): encode_floats,
    (pa.string(), "string"): encode_texts,
    (pa.binary(), "bytes"): encode_texts,
    (pa.date32(), "date"): lambda column: encode_longs(column.cast(pa.int32())),
    (TIMESTAMP, "timestamp-micros"): encode_longs,
}
"""By the type in Arrow and the logical type in Avro, or the primitive one where there is none, or
none that writes other bytes."""
SAME_BYTES = frozenset({"json", "uuid"})
"""Logical types that are texts as they are."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The schemas of a table's keys and values, in fastavro's form."""

    key: object
    value: object


class PlainAvro(TypedRecord):
    """As ``TypedRecord``. ``timestamps``: microseconds since 1970, or text with all digits."""

    format_name: ClassVar[str] = "Avro"

    style: ClassVar[CellStyle] = COMPACT_CELLS

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

    def render(self, changes: ChangeColumns, database: str) -> Messages[pa.Array]:
        """As ``ColumnWriter.render``, of rows that were polled, none of which has old values."""
        if changes.kind.streamed:
            raise LackingError("does not have its values as columns")
        batch, shape = changes.batch, changes.shape
        self.describe_schemas(database, shape)  # refuses names
        absent = pa.nulls(changes.rows, pa.bool_())
        cells = {
            name: self._encode_cells(
                batch.column(name) if name in batch.schema.names else absent,
                type_,
                name in shape.primary_key,
            )
            for name, type_ in shape.columns
        }
        key = join(b"", *(cells[name] for name in shape.primary_key), pa.repeat(b"", changes.rows))
        value = join(
            encode_texts(changes.ids),
            encode_constants("string", shape.table, str(changes.kind.operation)),
            encode_longs(changes.commits),
            encode_union(changes.shards, encode_longs(changes.shards)),
            key,
            PRESENT,
            *cells.values(),
            NULL + NULL,  # no old row, no transaction
            encode_constants("long", changes.window.start, changes.window.end),
        )
        return Messages(key, value)

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

    def _encode_cells(self, column: pa.Array, type_: Type, in_key: bool) -> pa.Array:
        """The cells of a column, which may be NULL. Raises EnvelopeError."""
        avro = self.choose_type(type_)
        encode = VECTORS.get((column.type, name_encoding(avro)))
        is_time = type_.code is TypeCode.TIMESTAMP and pa.types.is_string(column.type)
        if encode is None or (is_time and self.timestamps == "micros"):
            return encode_one_by_one(column, type_, avro, self.timestamps == "iso")
        if in_key and pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is the same key as 0.0
        return encode_union(column, encode(column))


@lru_cache(maxsize=1024)
def parse_schemas(chosen: PlainAvro, database: str, shape: Shape) -> Parsed:
    """The schemas of a table in fastavro's form. Raises as ``describe_schemas``."""
    schemas, parse = chosen.describe_schemas(database, shape), load_fastavro().parse_schema
    assert schemas.key is not None
    return Parsed(parse(schemas.key.schema), parse(schemas.value.schema))


def make_record(name: str, fields: list[Json]) -> dict[str, Json]:
    """A record of columns."""
    return {"type": "record", "name": name, "fields": fields}


def encode_constants(avro: str, *values: str | int) -> bytes:
    """Values that all changes have alike."""
    return b"".join(write_datum(avro, value) for value in values)


def name_encoding(avro: Json) -> str:
    """What decides which bytes are written."""
    if isinstance(avro, dict):
        logical = avro.get("logicalType")
        return str(avro["type"] if logical is None or logical in SAME_BYTES else logical)
    return str(avro)


def encode_one_by_one(column: pa.Array, type_: Type, avro: Json, texts: bool) -> pa.Array:
    """The cells of a column of any type, which may be NULL. Raises EnvelopeError."""
    schema = load_fastavro().parse_schema(["null", avro])
    cells = (convert_cell(read_cell(cell), type_, texts) for cell in column.to_pylist())
    return pa.array([write_datum(schema, cell) for cell in cells], pa.binary())
