"""Kafka Connect's schemas as Avro's, and values in JSON as Avro's writer takes them: what the
converters of Kafka Connect make of them."""

from __future__ import annotations

import base64
from typing import Any

from watcher.envelopes.message import Json
from watcher.envelopes.typed_record import replace_signs

PRIMITIVES = {
    "boolean": "boolean",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}
LONG_END = 2**63
"""Nanoseconds after the year 2262 are not a long; the fields with them may be null, and are."""
OF_CONNECT = ("version", "parameters", "default", "name")
"""What a converter keeps of Connect's schema, as ``connect.NAME``, since Avro has no place for
it."""


def convert_schema(connect: dict[str, Any], known: set[str]) -> Json:
    """Connect's schema as Avro's; a record that is ``known`` is named. A union with null has the
    type of its default first."""
    avro = convert_type(connect, known)
    if not connect["optional"]:
        return avro
    return [avro, "null"] if "default" in connect else ["null", avro]


def convert_type(connect: dict[str, Any], known: set[str]) -> Json:
    """As ``convert_schema``, besides null."""
    kept: dict[str, Json] = {
        f"connect.{each}": connect[each] for each in OF_CONNECT if each in connect
    }
    if connect["type"] == "array":
        return {"type": "array", "items": convert_schema(connect["items"], known), **kept}
    if connect["type"] != "struct":
        primitive = PRIMITIVES[connect["type"]]
        return {"type": primitive, **kept} if kept else primitive
    name = name_record(connect["name"])
    if name in known:
        return name
    known.add(name)
    namespace, _, own = name.rpartition(".")
    fields: list[Json] = [convert_field(each, known) for each in connect["fields"]]
    record: dict[str, Json] = {"type": "record", "name": own, "namespace": namespace}
    return {**record, "fields": fields, **kept, "connect.name": name}


def convert_field(connect: dict[str, Any], known: set[str]) -> Json:
    """A field of a record. What may be left out has a default: so a column can be added or
    dropped."""
    field: dict[str, Json] = {"name": connect["field"], "type": convert_schema(connect, known)}
    if connect["optional"]:
        field["default"] = connect.get("default")
    return field


def name_record(name: str) -> str:
    """The name of a record with the signs that Avro allows, as Debezium adjusts it."""
    return ".".join(replace_signs(part) for part in name.split("."))


def convert_value(connect: dict[str, Any], value: Any) -> Any:
    """A value in JSON as Avro's writer takes it."""
    if value is None:
        return None
    match connect["type"]:
        case "struct":
            return {
                each["field"]: convert_value(each, value.get(each["field"]))
                for each in connect["fields"]
            }
        case "array":
            return [convert_value(connect["items"], each) for each in value]
        case "bytes":
            return base64.b64decode(value)
        case "float" | "double":
            return float(value)
        case "int64":
            return value if -LONG_END <= value < LONG_END else None
    return value
