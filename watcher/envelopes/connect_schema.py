"""The schema part of Debezium's events: Kafka Connect's schemas of keys, rows and sources."""

from __future__ import annotations

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.debezium_source import FIELDS
from watcher.envelopes.message import Json
from watcher.model.change import Shape
from watcher.model.value_types import describe_values

SNAPSHOT: dict[str, Json] = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,"
        "incremental"
    },
    "default": "false",
    "field": "snapshot",
}
TRANSACTION: dict[str, Json] = {
    "type": "struct",
    "fields": [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ],
    "optional": True,
    "name": "event.block",
    "version": 1,
    "field": "transaction",
}
"""Every envelope has it; the connector for Spanner leaves it null."""
SOURCE_NAME = "com.google.spanner.connector.Source"
ENVELOPE_VERSION = 2


def key_schema(shape: Shape, nulls: frozenset[str]) -> dict[str, Json]:
    """The schema of a key; ``nulls`` are its columns that are NULL."""
    types = dict(shape.columns)
    fields: list[Json] = [
        column_schema(name, types[name], optional=name in nulls) for name in shape.primary_key
    ]
    return {
        "type": "struct",
        "fields": fields,
        "optional": False,
        "name": f"{shape.table}.Key",
    }


def event_schema(connector: str, shape: Shape, nulls: frozenset[str]) -> dict[str, Json]:
    """The schema of an event's value. Only key columns are not optional, as in the connector; and
    they are, too, in the events of a row whose key holds a NULL, which Spanner allows."""
    row = [
        column_schema(name, type_, optional=name not in shape.primary_key or name in nulls)
        for name, type_ in shape.columns
    ]
    fields: list[Json] = [
        struct(f"{shape.table}.Value", row, "before", optional=True),
        struct(f"{shape.table}.Value", row, "after", optional=True),
        struct(SOURCE_NAME, source_fields(), "source", optional=False) | {"version": 1},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
        {"type": "int64", "optional": True, "field": "ts_us"},
        {"type": "int64", "optional": True, "field": "ts_ns"},
        TRANSACTION,
    ]
    return {
        "type": "struct",
        "fields": fields,
        "optional": False,
        "name": f"{connector}.{shape.table}.Envelope",
        "version": ENVELOPE_VERSION,
    }


def struct(name: str, fields: list[dict[str, Json]], field: str, optional: bool) -> dict[str, Json]:
    """A structure that is a field of another."""
    return {
        "type": "struct",
        "fields": list(fields),
        "optional": optional,
        "name": name,
        "field": field,
    }


def source_fields() -> list[dict[str, Json]]:
    """The fields of ``source``."""
    return [
        SNAPSHOT
        if each.type == "enum"
        else {"type": each.type, "optional": each.optional, "field": each.name}
        for each in FIELDS
    ]


def column_schema(name: str, type_: Type, optional: bool) -> dict[str, Json]:
    """The schema of a column."""
    return type_schema(type_, optional) | {"field": name}


def type_schema(type_: Type, optional: bool) -> dict[str, Json]:
    """The schema of a Spanner type. Raises UnsupportedTypeError."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items = type_schema(type_.element, optional=True)
        return {"type": "array", "items": items, "optional": optional}
    described = describe_values(type_)
    schema: dict[str, Json] = {"type": described.connect, "optional": optional}
    if described.connect_name is not None:
        schema |= {"name": described.connect_name, "version": 1}
    return schema
