"""What jsonb has: members, elements, other documents, as the PostgreSQL dialect asks for it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from emulator.errors import invalid_argument
from emulator.sql.functions.json_containment import contains_document
from emulator.sql.functions.served import ServedFunctions
from emulator.values import jsonb
from emulator.values.types import INT64, PG_JSONB, STRING

MISSING = object()


def json_get(document: str, key: str | int) -> str | None:
    """->: a member or an element as jsonb; NULL where there is none."""
    found = find_member(document, key)
    return None if found is MISSING else jsonb.write_document(found)  # type: ignore[arg-type]


def json_get_text(document: str, key: str | int) -> str | None:
    """->>: the same as text; NULL of null."""
    found = find_member(document, key)
    if found is MISSING or found is None:
        return None
    return found if isinstance(found, str) else jsonb.write_document(found)  # type: ignore[arg-type]


def find_member(document: str, key: str | int) -> object:
    """A member of an object by its name, an element of an array by its place."""
    parsed = jsonb.parse_document(document)
    if isinstance(key, str):
        return parsed.get(key, MISSING) if isinstance(parsed, dict) else MISSING
    if isinstance(parsed, dict):
        return MISSING
    if not isinstance(parsed, list):
        # PostgreSQL takes a scalar for an array of one.
        return parsed if key in (0, -1) else MISSING
    index = key if key >= 0 else len(parsed) + key
    return parsed[index] if 0 <= index < len(parsed) else MISSING


def json_exists(document: str, key: str) -> int:
    """?: whether a text is a member's name, an element, or the whole."""
    parsed = jsonb.parse_document(document)
    if isinstance(parsed, dict | list):
        return int(key in parsed)
    return int(parsed == key)


def json_contains(document: str, other: str) -> int:
    """@>: whether a document has all that another has."""
    return int(contains_document(jsonb.parse_document(document), jsonb.parse_document(other)))


def json_typeof(document: str) -> str:
    """The kind of a document."""
    parsed = jsonb.parse_document(document)
    if parsed is None:
        return "null"
    kinds = {bool: "boolean", Decimal: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(parsed)]


def json_array_length(document: str) -> int:
    """The number of elements."""
    parsed = jsonb.parse_document(document)
    if not isinstance(parsed, list):
        kind = "an object" if isinstance(parsed, dict) else "a scalar"
        raise invalid_argument(f"cannot get array length of {kind}")
    return len(parsed)


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    served.add("JSONB_TYPEOF", [PG_JSONB], STRING, json_typeof)
    served.add("JSONB_ARRAY_LENGTH", [PG_JSONB], INT64, json_array_length)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_json_get": json_get,
    "pg_json_get_text": json_get_text,
    "pg_json_exists": json_exists,
    "pg_json_contains": json_contains,
    **SERVED.at_run_time,
}
