"""The JSON Schema of a table's plain records: the columns, and how the options write them."""

from __future__ import annotations

import json

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.message import Json
from watcher.envelopes.schema_files import schema_text
from watcher.envelopes.values import CellStyle
from watcher.model.change import Shape
from watcher.model.value_types import Form, describe_values

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What every registry reads."""


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
    match describe_values(type_).form:
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
