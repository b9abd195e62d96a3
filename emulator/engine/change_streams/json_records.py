"""Change records as the PostgreSQL dialect reads them: one JSON object a record."""

from __future__ import annotations

import json
from typing import TypeAlias

from emulator.values import forms
from emulator.values.jsonb import parse_document, write_document
from spanner_schema.model.column_types import Type, TypeCode

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def record_to_jsonb(text: str, type_: Type) -> str:
    """A record in the stored form of its type -> {"data_change_record": {...}} and the like."""
    (record,) = json.loads(text)
    assert type_.element is not None
    for field, values in zip(type_.element.fields, record, strict=True):
        if values:
            assert field.type.element is not None
            content = to_json(values[0], field.type.element)
            # Of what a column of texts holds, nothing is refused when it is read back.
            return write_document(parse_document(json.dumps({field.name: content})))
    raise ValueError("a change record of no kind")


def to_json(value: Json, type_: Type) -> Json:
    """A value inside a record as JSON."""
    if value is None:
        return None
    if type_.code is TypeCode.STRUCT and isinstance(value, list):
        pairs = zip(type_.fields, value, strict=True)
        return {field.name: to_json(item, field.type) for field, item in pairs}
    if type_.element is not None and isinstance(value, list):
        return [to_json(item, type_.element) for item in value]
    if type_.code is TypeCode.BOOL:
        return bool(value)
    if type_.code is TypeCode.TIMESTAMP:
        return forms.timestamp_to_text(str(value))
    if type_.code is TypeCode.JSON:
        document: Json = json.loads(str(value))
        return document
    return value
