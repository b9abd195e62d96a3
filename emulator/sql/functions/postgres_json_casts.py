"""Casts of jsonb to other types, as the PostgreSQL dialect has them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from emulator.errors import SpannerError, invalid_argument, out_of_range
from emulator.sql.functions.arrays import array
from emulator.sql.functions.postgres_casts import (
    numeric_to_bigint,
    parse_double,
    parse_numeric,
)
from emulator.sql.functions.postgres_numbers import to_form, to_real
from emulator.values.jsonb import Document, parse_document
from emulator.values.types import BOOL, FLOAT32, FLOAT64, INT64, STRING
from spanner_schema.model.column_types import Type

INT64_RANGE = range(-(2**63), 2**63)


def wrong_kind(document: Document, wanted: str) -> SpannerError:
    """A document that is not of the kind to which it is cast."""
    kinds = {type(None): "null", bool: "boolean", Decimal: "numeric", str: "string", list: "array"}
    kind = kinds.get(type(document), "object")
    return invalid_argument(f"cannot cast jsonb {kind} to type {wanted}")


def number_of(document: Document, wanted: str) -> Decimal:
    """A document that is a number."""
    if not isinstance(document, Decimal):
        raise wrong_kind(document, wanted)
    return document


def to_bool(document: Document) -> int:
    """A document as a boolean."""
    if not isinstance(document, bool):
        raise wrong_kind(document, "boolean")
    return int(document)


def to_bigint(document: Document) -> int:
    """A document as a bigint, rounded."""
    return numeric_to_bigint(to_form(number_of(document, "bigint")))


def to_double(document: Document) -> float | str:
    """A document as a double precision."""
    return parse_double(str(number_of(document, "double precision")))


def to_float4(document: Document) -> float | str:
    """A document as a real."""
    return to_real(to_double(document))


def to_numeric(document: Document) -> str:
    """A document as a numeric."""
    return parse_numeric(str(number_of(document, "numeric")))


def exact_bigint(document: Document) -> int:
    """A number without a fraction."""
    number = number_of(document, "bigint")
    if number != number.to_integral_value() or int(number) not in INT64_RANGE:
        raise out_of_range(f"The JSON number {number} is no bigint")
    return int(number)


def exact_text(document: Document) -> str:
    """A document that is a string."""
    if not isinstance(document, str):
        raise wrong_kind(document, "text")
    return document


def array_of_document(convert: Callable[[Document], object]) -> Callable[[str], str]:
    """A document that is an array, each element converted."""

    def call(document: str) -> str:
        root = parse_document(document)
        if not isinstance(root, list):
            raise wrong_kind(root, "array")
        return array(*map(convert, root))

    return call


def cast_of(convert: Callable[[Document], object]) -> Callable[[str], object]:
    """A cast of the stored form."""
    return lambda document: convert(parse_document(document))


ELEMENTS: dict[str, tuple[Type, Callable[[Document], object]]] = {
    "BOOL": (BOOL, to_bool),
    "INT64": (INT64, exact_bigint),
    "FLOAT32": (FLOAT32, to_float4),
    "FLOAT64": (FLOAT64, to_double),
    "STRING": (STRING, exact_text),
}
"""The arrays that a document becomes: of which type, and what makes an element."""
