"""The project's own JSON: what ``spanner-watcher watch`` prints by default, and its JSON Schema."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.kinds import Kind, Layer
from watcher.envelopes.leaves import (
    COMMIT_TIME,
    ID,
    RECORD_SEQUENCE,
    SHARD,
    TRANSACTION_ID,
    TRANSACTION_TAG,
    WINDOW_END_TIME,
    WINDOW_START_TIME,
    Cells,
    describe_key,
)
from watcher.envelopes.message import Json, Known, RecordLayout
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas
from watcher.envelopes.schema_files import schema_text
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import (
    PLAIN_CELLS,
    BytesAs,
    CellStyle,
    JsonColumns,
    Numbers,
    Timestamps,
    quote,
)
from watcher.model.change import Shape
from watcher.model.value_types import Form
from watcher.model.value_types import describe_values as describe_type
from watcher.spanner.json_columns.objects import NULL

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What every registry reads."""


class PlainRecord(JsonEnvelope):
    """A change as one JSON object with its id, key, values and window. The options say how cells of
    some types are written, those of the key too."""

    int64: Numbers = "number"
    numeric: Numbers = "text"
    timestamps: Timestamps = "iso"
    json_columns: JsonColumns = "text"
    bytes_as: BytesAs = "base64"

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return replace(
            PLAIN_CELLS,
            int64_as_text=self.int64 == "text",
            numeric_as_number=self.numeric == "number",
            timestamps=self.timestamps,
            json_nested=self.json_columns == "nested",
            bytes_as=self.bytes_as,
        )

    def check(self, known: Known) -> None:
        """Accepts every capture: what it does not know is left out."""

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``: of every kind."""
        style = self.style
        key = describe_key(shape, style)
        value: dict[str, Tree] = {
            "id": ID,
            "table": quote(shape.table),
            "operation": quote(kind.operation),
            "commit_timestamp": COMMIT_TIME,
            "shard": SHARD,
            "key": key,
            "values": describe_values(shape, style),
        }
        if kind.streamed:
            value["old_values"] = describe_old_values(shape, style) if kind.has_old else NULL
            value["transaction"] = {
                "id": TRANSACTION_ID,
                "sequence": RECORD_SEQUENCE,
                "tag": TRANSACTION_TAG,
            }
        value["window"] = {"start": WINDOW_START_TIME, "end": WINDOW_END_TIME}
        return Described(replace(key, as_array=True), value)


class Plain(PlainRecord):
    """The record by itself."""

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("table",),
        (
            (("commit_timestamp",), "string"),
            (("transaction", "id"), "string"),
            (("transaction", "sequence"), "string"),
        ),
        key=("key",),
    )

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:  # noqa: ARG002
        """As ``SchemaEnvelope.describe_schemas``: keys stay the arrays that they are."""
        schema = describe_record(shape, self.style)
        return RecordSchemas(None, RecordSchema("JSON", shape.table, schema))


def describe_values(shape: Shape, style: CellStyle = PLAIN_CELLS) -> Cells:
    """The row, or what is known of it."""
    return Cells(shape, (Layer.NEW, Layer.KEY), style)


def describe_old_values(shape: Shape, style: CellStyle = PLAIN_CELLS) -> Cells:
    """The values before, as they were captured."""
    return Cells(shape, (Layer.OLD,), style, own_order=True)


def describe_record(shape: Shape, style: CellStyle) -> dict[str, Json]:
    """``plain.json``, with the columns of a table. Objects take no other members: with open ones a
    registry would refuse a new column, which an older record might have had with another type."""
    schema: dict[str, Json] = json.loads(schema_text("plain.json"))
    del schema["$defs"]
    schema |= {"$schema": DRAFT, "title": shape.table}
    schema["dependencies"] = schema.pop("dependentRequired")
    cells: dict[str, Json] = {name: describe_cell(type_, style) for name, type_ in shape.columns}
    row: dict[str, Json] = {"type": "object", "properties": cells, "additionalProperties": False}
    key: Json = row | {
        "properties": {name: cells[name] for name in shape.primary_key},
        "required": list(shape.primary_key),
    }
    properties = schema["properties"]
    assert isinstance(properties, dict), "a record is an object"
    properties |= {"key": key, "values": row, "old_values": row | {"type": ["object", "null"]}}
    return schema


def describe_cell(type_: Type, style: CellStyle) -> dict[str, Json]:
    """A cell of a type, or null. Raises UnsupportedTypeError."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return {"type": ["array", "null"], "items": describe_cell(type_.element, style)}
    names = list_json_types(type_, style)
    return {"type": [*names, "null"]} if names else {}


def list_json_types(type_: Type, style: CellStyle) -> tuple[str, ...]:
    """What a cell may be in JSON besides null; empty: anything."""
    match describe_type(type_).form:
        case Form.BOOL:
            return ("boolean",)
        case Form.INTEGER:
            as_text = style.int64_as_text and type_.code is TypeCode.INT64
            return ("string",) if as_text else ("integer",)
        case Form.FLOAT32 | Form.FLOAT64:
            return ("number", "string")
        case Form.NUMERIC:
            return ("number",) if style.numeric_as_number else ("string",)
        case Form.WIDE_NUMERIC:
            return ("number", "string") if style.numeric_as_number else ("string",)
        case Form.TIMESTAMP:
            return ("string",) if style.timestamps == "iso" else ("integer",)
        case Form.JSON:
            return () if style.json_nested else ("string",)
        case Form.TEXT | Form.BYTES | Form.DATE:
            return ("string",)
