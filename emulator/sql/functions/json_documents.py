"""JSON documents made and changed: TO_JSON, JSON_OBJECT, JSON_SET, JSON_REMOVE and the like."""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from emulator.errors import out_of_range
from emulator.sql.functions.json_paths import MISSING, Path, dump, path_of, value_at
from emulator.sql.functions.json_values import SAFE_INTEGER
from emulator.sql.functions.numbers import INT64_MIN
from emulator.values import forms

UINT64_MAX = 2**64 - 1


@functools.lru_cache(maxsize=1024)
def parse_type(text: str) -> Any:
    """A type as the compiler encodes it: a code, ["ARRAY", type] or ["STRUCT", [[name, type]]]."""
    return json.loads(text)


def encode(stored: object, type_: Any, wide: bool) -> Any:
    """A value in storage form (or inside an array) as JSON."""
    if stored is None:
        return None
    if isinstance(type_, list):
        items: list[Any] = json.loads(str(stored))
        if type_[0] == "ARRAY":
            return [encode(each, type_[1], wide) for each in items]
        members: dict[str, object] = {}
        for (name, inner), each in zip(type_[1], items, strict=True):
            members.setdefault(name, encode(each, inner, wide))
        return members
    encoder = SCALARS.get(type_)
    return encoder(stored, wide) if encoder is not None else stored


def encode_int64(stored: Any, wide: bool) -> int | str:
    """INT64."""
    return str(stored) if wide and abs(stored) > SAFE_INTEGER else int(stored)


def encode_float(stored: Any, wide: bool) -> float | str:
    """FLOAT64: NaN and the infinities as their names."""
    if isinstance(stored, str):
        return stored
    if math.isinf(stored):
        return "Infinity" if stored > 0 else "-Infinity"
    return float(stored) + 0.0


def encode_numeric(stored: Any, wide: bool) -> int | float | str:
    """NUMERIC: a number, where one holds it without loss."""
    exact: Decimal = forms.decimal_from_numeric(stored)
    if exact == exact.to_integral_value() and INT64_MIN <= exact <= UINT64_MAX:
        return encode_int64(int(exact), wide)
    if Decimal(repr(float(exact))) == exact:
        return float(exact)
    text: str = forms.numeric_to_text(stored)
    if wide:
        return text
    raise out_of_range(f"Cannot convert NUMERIC {text} to JSON without loss of precision")


SCALARS: dict[str, Callable[[Any, bool], object]] = {
    "BOOL": lambda stored, _: bool(stored),
    "INT64": encode_int64,
    "FLOAT64": encode_float,
    "FLOAT32": encode_float,
    "NUMERIC": encode_numeric,
    "TIMESTAMP": lambda stored, _: forms.timestamp_to_text(stored),
    "BYTES": lambda stored, _: forms.base64_text(stored),
    "JSON": lambda stored, _: json.loads(stored),
}


def to_json(stored: object, type_: str, wide: int | None) -> str | None:
    """TO_JSON: NULL is JSON null."""
    return None if wide is None else dump(encode(stored, parse_type(type_), bool(wide)))


def json_array(*documents: str | None) -> str:
    """JSON_ARRAY of values that are JSON already."""
    return dump([json.loads(each) for each in documents if each is not None])


def json_object(*pairs: str | None) -> str:
    """JSON_OBJECT: keys and JSON values alternate; of equal keys the first counts."""
    members: dict[str, object] = {}
    for key, document in zip(pairs[::2], pairs[1::2], strict=True):
        if key is None:
            raise out_of_range("A key of JSON_OBJECT cannot be NULL")
        members.setdefault(key, json.loads(document or "null"))
    return dump(members)


def object_of_arrays(keys: str | None, values: str | None, values_null: int) -> str:
    """JSON_OBJECT of an array of keys and one of values (JSON already)."""
    if keys is None or values is None or values_null:
        raise out_of_range("The arrays of JSON_OBJECT cannot be NULL")
    names, items = json.loads(keys), json.loads(values)
    if len(names) != len(items):
        raise out_of_range("The number of keys and values of JSON_OBJECT must match")
    members: dict[str, object] = {}
    for name, each in zip(names, items, strict=True):
        if name is None:
            raise out_of_range("A key of JSON_OBJECT cannot be NULL")
        members.setdefault(name, each)
    return dump(members)


def remove(document: str | None, *paths: str | None) -> str | None:
    """JSON_REMOVE."""
    if document is None:
        return None
    result = json.loads(document)
    for path in paths:
        steps = path_of(path) if path is not None else ()
        if path is not None and not steps:
            raise out_of_range("The JSONPath of JSON_REMOVE cannot be '$'")
        owner = value_at(result, steps[:-1])
        if steps and owner is not MISSING and value_at(owner, steps[-1:]) is not MISSING:
            del owner[steps[-1]]
    return dump(result)


def set_at(current: Any, steps: Path, new_value: object) -> Any:
    """A value with another at a path; MISSING where the path does not fit what is there."""
    if not steps:
        return new_value
    step, *rest = steps
    if current is None:
        current = {} if isinstance(step, str) else []
    if isinstance(step, str) and isinstance(current, dict):
        inner = set_at(current.get(step), tuple(rest), new_value)
        return MISSING if inner is MISSING else {**current, step: inner}
    if isinstance(step, int) and isinstance(current, list):
        padded = current + [None] * (step + 1 - len(current))
        inner = set_at(padded[step], tuple(rest), new_value)
        if inner is MISSING:
            return MISSING
        padded[step] = inner
        return padded
    return MISSING


def set_(document: str | None, create: int | None, *pairs: str | None) -> str | None:
    """JSON_SET: paths and JSON values alternate."""
    if document is None or create is None:
        return document
    result = json.loads(document)
    for path, new_value in zip(pairs[::2], pairs[1::2], strict=True):
        if path is None or (not create and value_at(result, path_of(path)) is MISSING):
            continue
        changed = set_at(result, path_of(path), json.loads(new_value or "null"))
        result = result if changed is MISSING else changed
    return dump(result)


def insert(
    document: str | None, each_element: int | None, append: int, *triples: str | int | None
) -> str | None:
    """JSON_ARRAY_APPEND and JSON_ARRAY_INSERT: path, JSON value, whether it is a SQL array."""
    if document is None or each_element is None:
        return document
    result = json.loads(document)
    put = append_items if append else insert_items
    for path, new_value, array in zip(triples[::3], triples[1::3], triples[2::3], strict=True):
        if path is None:
            continue
        value_: Any = json.loads(str(new_value)) if new_value is not None else None
        if array and each_element and value_ is None:
            continue  # a NULL array has no elements to put anywhere
        items: list[object] = value_ if array and each_element else [value_]
        result = put(copy.deepcopy(result), path_of(str(path)), items)
    return dump(result)


def append_items(current: Any, steps: Path, items: list[object]) -> Any:
    """The document with items at the end of the array at the path."""
    target = value_at(current, steps)
    if target is MISSING or not (target is None or isinstance(target, list)):
        return current
    return set_at(current, steps, (target or []) + items)


def insert_items(current: Any, steps: Path, items: list[object]) -> Any:
    """The document with items before a position of an array; the array grows to reach it."""
    target = value_at(current, steps[:-1]) if steps else MISSING
    position = steps[-1] if steps else ""
    if target is MISSING or not isinstance(position, int):
        return current
    if not (target is None or isinstance(target, list)):
        return current
    before = list(target or [])
    before += [None] * (position - len(before) + (not items and position >= len(before)))
    return set_at(current, steps[:-1], before[:position] + items + before[position:])


def strip_nulls(
    document: str | None, path: str | None, arrays: int | None, empty: int | None
) -> str | None:
    """JSON_STRIP_NULLS."""
    if document is None or path is None or arrays is None or empty is None:
        return document
    current = json.loads(document)
    target = value_at(current, path_of(path))
    if target is MISSING:
        return document
    stripped = strip_value(target, bool(arrays), bool(empty))
    cleaned = None if stripped is MISSING else stripped
    return dump(set_at(current, path_of(path), cleaned))


def strip_value(current: Any, arrays: bool, empty: bool) -> Any:
    """A value without nulls inside; MISSING where nothing is left."""
    if current is None:
        return MISSING
    if isinstance(current, dict):
        kept = {k: strip_value(v, arrays, empty) for k, v in current.items()}
        members = {k: v for k, v in kept.items() if v is not MISSING}
        return members if members or not empty else MISSING
    if isinstance(current, list):
        items = [strip_value(v, arrays, empty) for v in current]
        if not arrays:
            return [None if v is MISSING else v for v in items]
        left = [v for v in items if v is not MISSING]
        return left if left or not empty else MISSING
    return current
