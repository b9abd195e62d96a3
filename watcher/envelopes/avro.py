"""Rows in Avro: the types of columns, cells as the writer takes them, single data and files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.message import Json
from watcher.envelopes.record_schemas import OTHERWISE, check_names
from watcher.envelopes.schema_files import schema_text
from watcher.model.change import Shape, Value
from watcher.model.errors import EnvelopeError
from watcher.model.value_types import describe_values
from watcher.process.extras import require_extras
from watcher.spanner.json_columns.scalars import format_numeric
from watcher.spanner.timestamps import to_micros

FRACTION_DIGITS = 6
SAME_IN_AVRO = frozenset({type(None), bool, int, float, bytes})
"""Cells of these types are what Avro's writer takes."""


@cache
def load_fastavro() -> ModuleType:
    """The library, which only the Avro envelope needs. Raises MissingExtraError."""
    require_extras("avro")
    return import_module("fastavro")


def event_schema(shape: Shape) -> dict[str, Json]:
    """The schema of a table's events: the columns are the payload's fields, in their order. Raises
    as ``check_names``, and UnsupportedTypeError."""
    check_names(shape)
    schema = json.loads(schema_text("datastream.avsc"))
    payload: Json = {
        "type": "record",
        "name": "payload",
        "fields": [describe_column(name, avro_type(type_)) for name, type_ in shape.columns],
    }
    return {**schema, "fields": [*schema["fields"], {"name": "payload", "type": payload}]}


def describe_column(name: str, avro: Json) -> Json:
    """A column as a field. It may be NULL, and is where a reader of another version does not find
    it: so a column can be added or dropped."""
    return {"name": name, "type": ["null", avro], "default": None}


def avro_type(type_: Type) -> Json:
    """The Avro type of a Spanner type; elements of arrays may be NULL. Raises
    UnsupportedTypeError."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return {"type": "array", "items": ["null", avro_type(type_.element)]}
    avro = describe_values(type_).avro
    return avro if isinstance(avro, str) else dict(avro)


@lru_cache(maxsize=1024)
def parse_event_schema(shape: Shape) -> object:
    """As ``event_schema``, in fastavro's form."""
    parsed: object = load_fastavro().parse_schema(event_schema(shape))
    return parsed


def convert_row(
    shape: Shape, row: Mapping[str, Value], time_texts: bool = False
) -> dict[str, object]:
    """A row as Avro's writer takes it. ``time_texts``: a TIMESTAMP stays a text."""
    types = dict(shape.columns)
    return {name: convert_cell(value, types[name], time_texts) for name, value in row.items()}


def convert_cell(value: Value, type_: Type, time_texts: bool) -> object:
    """A cell as Avro's writer takes it: a TIMESTAMP in microseconds, or as it is.

    Raises EnvelopeError for what Avro's type would lose.
    """
    if type(value) in SAME_IN_AVRO:
        return value
    if isinstance(value, list | tuple) and type_.element is not None:
        return [convert_cell(item, type_.element, time_texts) for item in value]
    if type_.code is TypeCode.TIMESTAMP and isinstance(value, str):
        return value if time_texts else parse_micros(value)
    if isinstance(value, Decimal) and type_.code is TypeCode.PG_NUMERIC:
        return format_numeric(value)
    if isinstance(value, Decimal) and not value.is_finite():
        raise EnvelopeError(f"Avro's decimal cannot hold {value}: {OTHERWISE}")
    return value


def parse_micros(text: str) -> int:
    """A TIMESTAMP in microseconds since 1970. Raises EnvelopeError for one that is finer."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    if fraction[FRACTION_DIGITS:].strip("0"):
        raise EnvelopeError(
            f"a TIMESTAMP is finer than microseconds, and Avro's type would round it: {OTHERWISE}"
        )
    digits = fraction[:FRACTION_DIGITS].ljust(FRACTION_DIGITS, "0")
    return to_micros(datetime.fromisoformat(f"{whole}.{digits}+00:00"))


def write_datum(schema: object, datum: object) -> bytes:
    """Encodes one datum of a schema in fastavro's form, without the schema."""
    buffer = io.BytesIO()
    load_fastavro().schemaless_writer(buffer, schema, datum)
    return buffer.getvalue()


def write_container(shape: Shape, events: Iterable[Mapping[str, object]]) -> bytes:
    """Encodes events of one table as an Avro file, with their schema."""
    buffer = io.BytesIO()
    load_fastavro().writer(buffer, parse_event_schema(shape), events, codec="deflate")
    return buffer.getvalue()
