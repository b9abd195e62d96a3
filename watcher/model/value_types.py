"""The values of every type of Spanner: how they are sent, what formats make of them, and how a copy
is compared. One entry a type, plain values, without Arrow.

``spanner_schema.model.column_types`` has what DDL knows of a type. What depends on the form alone
is decided by ``match`` over ``Form`` without a default branch: mypy refuses a form left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect
from watcher.model.errors import WatcherError


class UnsupportedTypeError(WatcherError):
    """A column of a type that cannot be delivered, compared, or written in a format."""


class Form(Enum):
    """How Spanner sends the values of a type, and what they are in Arrow."""

    BOOL = "a boolean"
    INTEGER = "an integer in a text"
    FLOAT32 = "a number, or NaN, Infinity, -Infinity in a text"
    FLOAT64 = "the same, of twice the size"
    NUMERIC = "a decimal in a text, of at most 29 and 9 digits"
    WIDE_NUMERIC = "a decimal in a text, of any size, or NaN"
    TEXT = "a text"
    BYTES = "base64 in a text"
    DATE = "ISO 8601 in a text"
    TIMESTAMP = "RFC 3339 in a text"
    JSON = "JSON in a text"


UNANNOTATED = "TYPE_ANNOTATION_CODE_UNSPECIFIED"
FLOATS = frozenset({Form.FLOAT32, Form.FLOAT64})


@dataclass(frozen=True, slots=True)
class ComparedText:
    """How a value becomes the canonical text of ``verification``.

    ``googlesql`` and ``postgresql`` are expressions of ``{0}``; None where the dialect does not
    have the type. ``measured``: the text may have any character, so its length is part of it.
    """

    googlesql: str | None
    postgresql: str | None
    measured: bool = False


@dataclass(frozen=True, slots=True)
class ValueType:
    """What becomes of the values of a type.

    ``avro``: a primitive type, or a logical type with its attributes, as Datastream's unified
    types. ``connect``: the type of Kafka Connect, with the name of a semantic type. ``compared`` is
    None for values that cannot be compared by a text. ``pushed``: Spark's filters can be checked by
    Spanner. ``written_like`` is the type of GoogleSQL whose code the API sends with a
    ``type_annotation``.
    """

    form: Form
    avro: str | Mapping[str, str | int]
    connect: str
    compared: ComparedText | None
    connect_name: str | None = None
    pushed: bool = False
    written_like: TypeCode | None = None


AS_TEXT, PG_AS_TEXT = "CAST({0} AS STRING)", "CAST({0} AS text)"
PLAIN_TEXT = ComparedText(AS_TEXT, PG_AS_TEXT)
DOUBLE = ComparedText("CAST({0} AS FLOAT64)", "CAST({0} AS double precision)")
"""Of floats not the text, but the value that ``canonical`` writes."""
AVRO_JSON = {"type": "string", "logicalType": "json"}

VALUE_TYPES: Mapping[TypeCode, ValueType | None] = {
    TypeCode.BOOL: ValueType(Form.BOOL, "boolean", "boolean", PLAIN_TEXT, pushed=True),
    TypeCode.INT64: ValueType(Form.INTEGER, "long", "int64", PLAIN_TEXT, pushed=True),
    TypeCode.FLOAT32: ValueType(Form.FLOAT32, "float", "float", DOUBLE),
    TypeCode.FLOAT64: ValueType(Form.FLOAT64, "double", "double", DOUBLE),
    TypeCode.NUMERIC: ValueType(
        Form.NUMERIC,
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
        "string",
        ComparedText(AS_TEXT, None),
        pushed=True,
    ),
    TypeCode.STRING: ValueType(
        Form.TEXT, "string", "string", ComparedText("{0}", "{0}", measured=True), pushed=True
    ),
    TypeCode.BYTES: ValueType(
        Form.BYTES,
        "bytes",
        "bytes",
        ComparedText("TO_HEX({0})", "SUBSTR(CAST({0} AS text), 3)", measured=True),  # after \\x
        pushed=True,
    ),
    TypeCode.DATE: ValueType(
        Form.DATE, {"type": "int", "logicalType": "date"}, "string", PLAIN_TEXT, pushed=True
    ),
    TypeCode.TIMESTAMP: ValueType(
        Form.TIMESTAMP,
        {"type": "long", "logicalType": "timestamp-micros"},
        "string",
        ComparedText(
            "CAST(UNIX_MICROS({0}) AS STRING)",
            "CAST(CAST(FLOOR(EXTRACT(EPOCH FROM {0}) * 1000000) AS bigint) AS text)",
        ),
        pushed=True,
    ),
    TypeCode.JSON: ValueType(
        Form.JSON, AVRO_JSON, "string", ComparedText("TO_JSON_STRING({0})", None, measured=True)
    ),
    TypeCode.UUID: ValueType(
        Form.TEXT,
        {"type": "string", "logicalType": "uuid"},
        "string",
        PLAIN_TEXT,
        connect_name="io.debezium.data.Uuid",
    ),
    # Spanner's cast gives '1-2 3 4:5:6', and its API sends 'P1Y2M3DT4H5M6S'.
    TypeCode.INTERVAL: ValueType(Form.TEXT, "string", "string", compared=None),
    TypeCode.PROTO: ValueType(
        Form.BYTES,
        "bytes",
        "bytes",
        ComparedText("TO_HEX(CAST({0} AS BYTES))", None, measured=True),
    ),
    TypeCode.ENUM: ValueType(
        Form.INTEGER, "long", "int64", ComparedText("CAST(CAST({0} AS INT64) AS STRING)", None)
    ),
    TypeCode.PG_NUMERIC: ValueType(
        Form.WIDE_NUMERIC,
        "string",
        "string",
        ComparedText(None, PG_AS_TEXT),
        pushed=True,
        written_like=TypeCode.NUMERIC,
    ),
    TypeCode.PG_JSONB: ValueType(
        Form.JSON,
        AVRO_JSON,
        "string",
        ComparedText(None, PG_AS_TEXT, measured=True),
        written_like=TypeCode.JSON,
    ),
    TypeCode.TOKENLIST: None,
    TypeCode.ARRAY: None,
    TypeCode.STRUCT: None,
    TypeCode.PG_OID: None,
}
"""None for values that are not delivered by themselves; an ARRAY is delivered by its elements."""
FORMS = {code: each.form for code, each in VALUE_TYPES.items() if each is not None}
ANNOTATIONS = {
    code: each.written_like
    for code, each in VALUE_TYPES.items()
    if each is not None and each.written_like is not None
}
"""The types that the API sends as another one with a ``type_annotation``, and that other one."""


def describe_values(type_: Type) -> ValueType:
    """The values of a type that is not an ARRAY. Raises UnsupportedTypeError."""
    described = VALUE_TYPES[type_.code]
    if described is None:
        refuse_values(type_)
    return described


def refuse_values(type_: Type) -> NoReturn:
    """Raises UnsupportedTypeError."""
    raise UnsupportedTypeError(
        f"columns of type {type_.code.value} cannot be delivered; leave the column out"
    )


def is_float(type_: Type) -> bool:
    """Whether values may be NaN, or one of two zeros. Raises UnsupportedTypeError."""
    return type_.element is None and describe_values(type_).form in FLOATS


def get_compared(type_: Type) -> ComparedText:
    """How values of a type are compared. Raises UnsupportedTypeError."""
    compared = describe_values(type_).compared
    if compared is None:
        raise UnsupportedTypeError(
            f"columns of type {type_.code.value} cannot be compared: leave the column out"
        )
    return compared


def write_compared(type_: Type, dialect: Dialect) -> str:
    """The expression of a value's canonical text, with ``{0}`` for the value. Raises
    UnsupportedTypeError."""
    compared = get_compared(type_)
    text = compared.googlesql if dialect is Dialect.GOOGLESQL else compared.postgresql
    if text is None:
        raise UnsupportedTypeError(f"databases of {dialect.value} have no type {type_.code.value}")
    return text


def find_code(code: str, annotation: str | None) -> TypeCode:
    """The type that the API describes by these names. Raises UnsupportedTypeError for a type that
    is newer than this release."""
    name = annotation if annotation and annotation != UNANNOTATED else code
    try:
        return TypeCode(name)
    except ValueError as error:
        raise UnsupportedTypeError(
            f"Spanner sent the type {name}, which this release does not know: leave the column out"
        ) from error
