"""Functions of jsonb that build and change documents, as the PostgreSQL dialect has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal

from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.arrays import array
from emulator.sql.functions.postgres_casts import (
    double_text,
    real_text,
    timestamptz_text,
)
from emulator.sql.functions.postgres_json_casts import (
    ELEMENTS,
    array_of_document,
    cast_of,
    to_bigint,
    to_bool,
    to_double,
    to_float4,
    to_numeric,
)
from emulator.sql.functions.served import ServedFunctions
from emulator.values import jsonb, pg_numeric
from emulator.values.jsonb import Document, parse_document, write_document
from emulator.values.types import BOOL, PG_JSONB, STRING
from emulator.values.types import array as array_of

Path = list[str | None]
TREATMENTS = ("raise_exception", "use_json_null", "delete_key", "return_target")


def to_document(value: object, kind: str) -> Document:
    """A stored value of a type as a document."""
    if value is None:
        return None
    if kind.startswith("ARRAY "):
        inner = kind.removeprefix("ARRAY ")
        return [to_document(item, inner) for item in json.loads(str(value))]
    if kind == "BOOL":
        return bool(value)
    if kind in {"INT64", "PG_OID"}:
        return Decimal(int(str(value)))
    if kind == "PG_JSONB":
        return parse_document(str(value))
    if kind in {"FLOAT64", "FLOAT32"}:
        assert isinstance(value, float | str)
        text = double_text(value) if kind == "FLOAT64" else real_text(value)
        return text if text[-1].isalpha() else pg_numeric.parse_numeric(text)
    if kind == "PG_NUMERIC":
        number = pg_numeric.number_of_form(str(value))
        return "NaN" if number.is_nan() else number
    if kind == "TIMESTAMP":
        text = timestamptz_text(str(value)).replace(" ", "T")
        return text if ":" in text[-5:] else f"{text}:00"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value)


def to_jsonb(value: object, kind: str) -> str:
    """to_jsonb."""
    return write_document(to_document(value, kind))


def build_array(*pairs: object) -> str:
    """jsonb_build_array of values, each followed by its type."""
    return write_document(list(documents(pairs)))


def documents(pairs: tuple[object, ...]) -> Iterator[Document]:
    """The documents of values that are each followed by their type."""
    for value, kind in zip(pairs[::2], pairs[1::2], strict=True):
        yield to_document(value, str(kind))


def build_object(*pairs: object) -> str:
    """jsonb_build_object of names and values, each followed by its type."""
    if len(pairs) % 4:
        raise invalid_argument("argument list must have even number of elements")
    listed = list(documents(pairs))
    made: dict[str, Document] = {}
    for name, value in zip(listed[::2], listed[1::2], strict=True):
        if name is None:
            raise invalid_argument("argument 1: key must not be null")
        made[name if isinstance(name, str) else write_document(name)] = value
    return write_document(made)


def read_path(path: str) -> Path:
    """An array of texts."""
    steps: Path = json.loads(path)
    return steps


def index_of(step: str, size: int, place: int) -> int:
    """A step of a path as a place in an array; from the end where it is negative."""
    try:
        number = int(step)
    except ValueError as error:
        raise invalid_argument(
            f'path element at position {place} is not an integer: "{step}"'
        ) from error
    return number if number >= 0 else size + number


def change_at(
    document: Document, path: Path, change: Callable[[Document, str, int], Document], place: int = 1
) -> Document:
    """A document with what ``change`` makes of the owner of the last step of a path."""
    step = path[0]
    if step is None:
        raise out_of_range(f"path element at position {place} is null")
    if not isinstance(document, dict | list):
        return document
    if len(path) == 1:
        return change(document, step, place)
    if isinstance(document, dict):
        if step not in document:
            return document
        inner = change_at(document[step], path[1:], change, place + 1)
        return {**document, step: inner}
    index = index_of(step, len(document), place)
    if not 0 <= index < len(document):
        return document
    changed = list(document)
    changed[index] = change_at(document[index], path[1:], change, place + 1)
    return changed


def refuse_scalar(document: Document, what: str) -> None:
    """Raises for a document that has no members."""
    if not isinstance(document, dict | list):
        raise invalid_argument(f"cannot {what} in scalar")


def set_value(document: str, path: str, value: str, create: int = 1) -> str:
    """jsonb_set. As in PostgreSQL, the path into an empty document is not looked at unless what it
    leads to is created."""
    root, new = parse_document(document), parse_document(value)
    refuse_scalar(root, "set path")

    def change(owner: Document, step: str, place: int) -> Document:
        if isinstance(owner, dict):
            return {**owner, step: new} if step in owner or create else owner
        assert isinstance(owner, list)
        index = index_of(step, len(owner), place)
        if 0 <= index < len(owner):
            return [*owner[:index], new, *owner[index + 1 :]]
        if not create:
            return owner
        return [new, *owner] if index < 0 else [*owner, new]

    steps = read_path(path) if root or create else []
    return write_document(change_at(root, steps, change) if steps else root)


def insert_value(document: str, path: str, value: str, after: int = 0) -> str:
    """jsonb_insert."""
    root, new = parse_document(document), parse_document(value)
    refuse_scalar(root, "set path")

    def change(owner: Document, step: str, place: int) -> Document:
        if isinstance(owner, dict):
            if step in owner:
                raise invalid_argument("cannot replace existing key")
            return {**owner, step: new}
        assert isinstance(owner, list)
        index = index_of(step, len(owner), place)
        if index < 0:
            return [new, *owner]
        cut = index + 1 if after and index < len(owner) else index
        return [*owner[:cut], new, *owner[cut:]]

    steps = read_path(path)
    return write_document(change_at(root, steps, change) if steps else root)


def delete_path(document: str, path: str) -> str:
    """#-: without what stands at a path, which is not looked at where the document is empty."""
    root = parse_document(document)
    refuse_scalar(root, "delete path")

    def change(owner: Document, step: str, place: int) -> Document:
        if isinstance(owner, dict):
            return {key: value for key, value in owner.items() if key != step}
        assert isinstance(owner, list)
        index = index_of(step, len(owner), place)
        if not 0 <= index < len(owner):
            return owner
        return [*owner[:index], *owner[index + 1 :]]

    steps = read_path(path) if root else []
    return write_document(change_at(root, steps, change) if steps else root)


def set_lax(
    document: str | None,
    path: str | None,
    value: str | None,
    create: int | None = 1,
    treatment: str | None = "use_json_null",
) -> str | None:
    """jsonb_set_lax: jsonb_set that also takes NULL for the new value."""
    if document is None or path is None or create is None:
        return None
    if treatment not in TREATMENTS:
        raise invalid_argument(
            'null_value_treatment must be "delete_key", "return_target", "use_json_null", or'
            ' "raise_exception"'
        )
    if value is not None:
        return set_value(document, path, value, create)
    if treatment == "raise_exception":
        raise invalid_argument("JSON value must not be null")
    if treatment == "return_target":
        return document
    if treatment == "delete_key":
        return delete_path(document, path)
    return set_value(document, path, "null", create)


def concatenate(left: str, right: str) -> str:
    """||: two objects are one, all else is an array."""
    first, second = parse_document(left), parse_document(right)
    if isinstance(first, dict) and isinstance(second, dict):
        return write_document({**first, **second})
    lists = [value if isinstance(value, list) else [value] for value in (first, second)]
    return write_document([*lists[0], *lists[1]])


def delete_key(document: str, key: str | int) -> str:
    """-: without a member, or an element."""
    root = parse_document(document)
    if not isinstance(root, dict | list):
        raise invalid_argument("cannot delete from scalar")
    if isinstance(key, str):
        if isinstance(root, dict):
            return write_document({name: value for name, value in root.items() if name != key})
        return write_document([item for item in root if item != key])
    if isinstance(root, dict):
        raise invalid_argument("cannot delete from object using integer index")
    index = key if key >= 0 else len(root) + key
    kept = [item for place, item in enumerate(root) if place != index]
    return write_document(kept)


def strip_nulls(document: str) -> str:
    """jsonb_strip_nulls: without the members that are null."""

    def strip(value: Document) -> Document:
        if isinstance(value, dict):
            return {key: strip(inner) for key, inner in value.items() if inner is not None}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return write_document(strip(parse_document(document)))


def has_keys(document: str, keys: str, test: Callable[[Iterator[bool]], bool]) -> int:
    """?| and ?&: whether texts are names of members, or elements."""
    root = parse_document(document)
    held = root if isinstance(root, dict | list) else [root]
    return int(test(key in held for key in json.loads(keys) if key is not None))


def object_keys(document: str) -> str:
    """jsonb_object_keys."""
    root = parse_document(document)
    if not isinstance(root, dict):
        kind = "an array" if isinstance(root, list) else "a scalar"
        raise invalid_argument(f"cannot call jsonb_object_keys on {kind}")
    return array(*sorted(root, key=jsonb.key_order))


def query_array(document: str) -> str:
    """The elements of an array, as an array of documents."""
    root = parse_document(document)
    if not isinstance(root, list):
        kind = "an object" if isinstance(root, dict) else "a scalar"
        raise invalid_argument(f"cannot extract elements from {kind}")
    return array(*(write_document(item) for item in root))


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add = served.add

    path = [PG_JSONB, array_of(STRING), PG_JSONB]
    add("JSONB_SET", [*path, BOOL], PG_JSONB, set_value, optional=1)
    add("JSONB_INSERT", [*path, BOOL], PG_JSONB, insert_value, optional=1)
    add("JSONB_SET_LAX", [*path, BOOL, STRING], PG_JSONB, "pg_jsonb_set_lax", optional=2)
    add("JSONB_STRIP_NULLS", [PG_JSONB], PG_JSONB, strip_nulls)
    add("JSONB_OBJECT_KEYS", [PG_JSONB], array_of(STRING), object_keys)
    names, elements = "SPANNER.JSONB_QUERY_ARRAY JSONB_ARRAY_ELEMENTS", array_of(PG_JSONB)
    add(names, [PG_JSONB], elements, query_array, function="pg_jsonb_query_array")
    for name, (element, convert) in ELEMENTS.items():
        function = f"pg_jsonb_{name.lower()}_array"
        run = array_of_document(convert)
        add(f"SPANNER.{name}_ARRAY", [PG_JSONB], array_of(element), run, function=function)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_jsonb_delete_path": delete_path,
    "pg_jsonb_concat": concatenate,
    "pg_jsonb_delete": delete_key,
    "pg_jsonb_exists_any": lambda document, keys: has_keys(document, keys, any),
    "pg_jsonb_exists_all": lambda document, keys: has_keys(document, keys, all),
    "pg_jsonb_to_bool": cast_of(to_bool),
    "pg_jsonb_to_int8": cast_of(to_bigint),
    "pg_jsonb_to_float8": cast_of(to_double),
    "pg_jsonb_to_float4": cast_of(to_float4),
    "pg_jsonb_to_numeric": cast_of(to_numeric),
    "pg_to_jsonb": to_jsonb,
    **SERVED.at_run_time,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "pg_jsonb_build_array": build_array,
    "pg_jsonb_build_object": build_object,
    "pg_jsonb_set_lax": set_lax,
}
