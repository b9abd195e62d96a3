"""Arrays of the PostgreSQL dialect as text and back, and what they have in common."""

from __future__ import annotations

import json
from collections.abc import Callable

from emulator.errors import SpannerError, invalid_argument, out_of_range
from emulator.limits import SERIES_MAX
from emulator.sql.functions.arrays import array, concatenate, dump
from emulator.sql.functions.postgres_casts import FUNCTIONS as CASTS
from emulator.sql.functions.postgres_casts import PARSERS
from emulator.sql.functions.postgres_intervals import parse_interval
from emulator.sql.functions.text_sizes import join_texts
from emulator.values import jsonb, pg_numeric
from spanner_schema.model.column_types import Type, TypeCode

SPECIAL = set('{},"\\')
KEYS: dict[str, Callable[[str], object]] = {
    "PG_NUMERIC": pg_numeric.key_of_form,
    "PG_JSONB": jsonb.jsonb_key,
}
TEXTS: dict[str, Callable[..., object]] = {
    "BOOL": lambda value: "t" if value else "f",
    "FLOAT32": CASTS["pg_text_float4"],
    "FLOAT64": CASTS["pg_text_float8"],
    "PG_NUMERIC": CASTS["pg_text_numeric"],
    "TIMESTAMP": CASTS["pg_text_timestamptz"],
}


def malformed(text: str) -> SpannerError:
    """A text that is no array."""
    return invalid_argument(f'malformed array literal: "{text}"')


def split_literal(text: str) -> list[str | None]:
    """{a, "b c", NULL}: the texts of the elements. Raises INVALID_ARGUMENT."""
    inside = text.strip()
    if not inside.startswith("{") or not inside.endswith("}") or len(inside) < 2:
        raise malformed(text)
    inside = inside[1:-1]
    items: list[str | None] = []
    offset = 0
    while inside.strip():
        item, offset, quoted = read_element(inside, offset, text)
        if not quoted and not item:
            raise malformed(text)
        items.append(None if not quoted and item.upper() == "NULL" else item)
        if offset >= len(inside):
            break
        offset += 1
    return items


def read_element(inside: str, offset: int, text: str) -> tuple[str, int, bool]:
    """An element, where it ends, and whether it is in quotes."""
    while offset < len(inside) and inside[offset].isspace():
        offset += 1
    quoted = offset < len(inside) and inside[offset] == '"'
    offset += quoted
    out: list[str] = []
    while offset < len(inside) and inside[offset] != ('"' if quoted else ","):
        if not quoted and inside[offset] in "{}":
            raise invalid_argument("Multi-dimensional arrays are not supported.")
        offset += inside[offset] == "\\"
        if offset >= len(inside):
            raise malformed(text)
        out.append(inside[offset])
        offset += 1
    if not quoted:
        return "".join(out).strip(), offset, False
    offset += 1
    while offset < len(inside) and inside[offset].isspace():
        offset += 1
    if offset < len(inside) and inside[offset] != ",":
        raise malformed(text)
    return "".join(out), offset, True


def parse_array(text: str, element: Type) -> str:
    """A text as an array of a type, in the form of storage."""
    parse = parse_interval if element.code is TypeCode.INTERVAL else PARSERS[element.code]
    return array(*(None if item is None else parse(item) for item in split_literal(text)))


def element_text(item: object, kind: str) -> str:
    """An element as text."""
    if kind == "BYTES":
        return str(item)
    return str(TEXTS[kind](item) if kind in TEXTS else item)


def array_text(values: str, kind: str) -> str:
    """An array as text: {a,"b c",NULL}."""
    shown = ",".join(
        "NULL" if item is None else quote(element_text(item, kind)) for item in json.loads(values)
    )
    return f"{{{shown}}}"


def quote(text: str) -> str:
    """An element in quotes where it must be."""
    plain = text and not SPECIAL & set(text) and not any(map(str.isspace, text))
    if plain and text.upper() != "NULL":
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def array_to_string(values: str, kind: str, delimiter: str, null: str | None = None) -> str:
    """array_to_string: NULLs are left out, or written as a text."""
    items = json.loads(values)
    texts = [null if item is None else element_text(item, kind) for item in items]
    return join_texts(delimiter, [text for text in texts if text is not None])


def keys_of(values: str, kind: str) -> list[object]:
    """The elements as they are compared."""
    key = KEYS.get(kind)
    items = json.loads(values)
    return [item if item is None or key is None else key(item) for item in items]


def contains(whole: str, part: str, kind: str) -> int:
    """@>: every element of the part is in the whole; NULL equals nothing."""
    held = set(keys_of(whole, kind))
    return int(all(item is not None and item in held for item in keys_of(part, kind)))


def overlaps(left: str, right: str, kind: str) -> int:
    """&&: an element is in both."""
    held = set(keys_of(left, kind))
    return int(any(item is not None and item in held for item in keys_of(right, kind)))


def series(start: int, end: int, step: int = 1) -> str:
    """generate_series."""
    if step == 0:
        raise invalid_argument("step size cannot equal zero")
    if (end - start) // step >= SERIES_MAX:
        raise out_of_range(f"generate_series gives more rows than this server takes: {SERIES_MAX}")
    return array(*range(start, end + (1 if step > 0 else -1), step))


def take_slice(values: str, first: int, last: int) -> str:
    """values[first:last], counted from 1."""
    return dump(json.loads(values)[max(first, 1) - 1 : max(last, 0)])


def array_length(array: str, dimension: int) -> int | None:
    """The number of elements; NULL of an empty array, and of a dimension that is not 1."""
    items = json.loads(array)
    return len(items) if items and dimension == 1 else None


FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_array_length": array_length,
    "pg_array_text": array_text,
    "pg_array_to_string": array_to_string,
    "pg_array_contains": contains,
    "pg_array_overlaps": overlaps,
    "pg_array_cat": concatenate,
    "pg_array_slice": take_slice,
    "pg_generate_series": series,
}
