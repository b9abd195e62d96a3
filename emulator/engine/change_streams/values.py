"""Values and types as the JSON of data change records shows them."""

from __future__ import annotations

import base64
import json
import math
from typing import TypeAlias

from emulator.engine.write_plans import PENDING_TEXT
from emulator.values import forms
from emulator.values.served_types import SERVED_TYPES, Sent
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column

ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def to_json_value(value: Json, column: Column, commit_text: str) -> Json:
    """A value of an image (see ``emulator.storage.change_streams``) as Spanner's API writes it.

    INT64 and NUMERIC are strings; what was pending is the commit timestamp.
    """
    if value is None:
        return None
    type_ = column.type
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items: list[Json] = json.loads(str(value))
        inner = type_.element
        return [element_to_json(item, inner, commit_text) for item in items]
    if type_.code in (TypeCode.BYTES, TypeCode.PROTO) and isinstance(value, str):
        return base64.b64encode(bytes.fromhex(value)).decode()
    return scalar_to_json(value, type_, commit_text)


def element_to_json(value: Json, type_: Type, commit_text: str) -> Json:
    """An element of an array; BYTES in arrays are base64 already."""
    return None if value is None else scalar_to_json(value, type_, commit_text)


def scalar_to_json(value: Json, type_: Type, commit_text: str) -> Json:
    """A value that is neither NULL nor an array."""
    if type_.code is TypeCode.TIMESTAMP and value == PENDING_TEXT:
        return forms.timestamp_to_text(commit_text)
    match SERVED_TYPES[type_.code].sent:
        case Sent.BOOL:
            return bool(value)
        case Sent.FLOAT:
            return float_to_json(value)
        case Sent.ASCII | Sent.TEXT | Sent.PARTS:
            return value
        case convert:
            return convert(value)


def float_to_json(value: Json) -> Json:
    """A floating-point number, or the name of what JSON cannot say."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def type_to_json(type_: Type) -> dict[str, Json]:
    """A type as the API's Type message in JSON."""
    shown_type: dict[str, Json] = {
        "code": type_.code.value.removeprefix("PG_").replace("JSONB", "JSON")
    }
    if type_.code in {TypeCode.PG_NUMERIC, TypeCode.PG_JSONB}:
        shown_type["type_annotation"] = type_.code.value
    if type_.proto_name is not None:
        shown_type["proto_type_fqn"] = type_.proto_name
    if type_.element is not None:
        shown_type["array_element_type"] = type_to_json(type_.element)
    return shown_type


def compact_json(value: Json) -> str:
    """JSON text without spaces."""
    return ENCODE(value)
