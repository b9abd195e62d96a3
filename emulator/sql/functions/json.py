"""Functions of JSON. Documents are text in storage; arguments written as JSON have their type."""

from __future__ import annotations

import copy
import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from emulator.errors import out_of_range
from emulator.sql.functions.casts import float_text, floating, integer
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN, read, to_float32
from emulator.storage import forms

Step = str | int
Path = tuple[Step, ...]
UINT64_MAX = 2**64 - 1
SAFE_INTEGER = 2**53
STEP = re.compile(
    r"\.([^.\[\]\"'\s$]+)|\.\"((?:[^\"\\]|\\.)*)\"|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]"
    r"|\[\"((?:[^\"\\]|\\.)*)\"\]"
)
MISSING = object()


@functools.lru_cache(maxsize=1024)
def path_of(path: str) -> Path:
    """$.a.b[0]['c'] as keys and positions."""
    if not path.startswith("$"):
        raise out_of_range(f"JSONPath must start with '$': {path}")
    steps: list[Step] = []
    offset = 1
    while offset < len(path):
        match = STEP.match(path, offset)
        if match is None:
            raise out_of_range(f"Invalid token in JSONPath at: {path[offset:]}")
        number = match.group(3)
        text = next((g for g in match.groups() if g is not None), "")
        steps.append(int(number) if number is not None else re.sub(r"\\(.)", r"\1", text))
        offset = match.end()
    return tuple(steps)


def dump(value: object) -> str:
    """A document in storage form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def inside(value: Any, steps: Sequence[Any]) -> Any:
    """The value at a path, or MISSING."""
    for step in steps:
        keyed = isinstance(value, dict) and isinstance(step, str) and step in value
        placed = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not keyed and not placed:
            return MISSING
        value = value[step]
    return value


def parsed(text: str) -> Any:
    """JSON in a STRING; MISSING for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return MISSING


def query(document: str, path: str = "$") -> str | None:
    """JSON_QUERY of JSON: a part of the document, JSON null too."""
    found = inside(json.loads(document), path_of(path))
    return None if found is MISSING else dump(found)


def query_text(text: str, path: str = "$") -> str | None:
    """JSON_QUERY of a STRING: null is NULL, the order of keys stays."""
    found = inside(parsed(text), path_of(path))
    if found is MISSING or found is None:
        return None
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def scalar_text(value: object) -> str | None:
    """A scalar as JSON_VALUE gives it."""
    if value is None or value is MISSING or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def value(text: str, path: str = "$") -> str | None:
    """JSON_VALUE: a scalar as a STRING, else NULL."""
    return scalar_text(inside(parsed(text), path_of(path)))


def array_text(values: Sequence[object]) -> str:
    """An ARRAY in storage form."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def query_array(text: str, path: str = "$") -> str | None:
    """JSON_QUERY_ARRAY: each element as JSON."""
    found = inside(parsed(text), path_of(path))
    return array_text([dump(each) for each in found]) if isinstance(found, list) else None


def value_array(text: str, path: str = "$") -> str | None:
    """JSON_VALUE_ARRAY: scalars as STRINGs; NULL when there is anything else."""
    found = inside(parsed(text), path_of(path))
    if not isinstance(found, list) or any(isinstance(each, dict | list) for each in found):
        return None
    return array_text([scalar_text(each) for each in found])


def parse(text: str, mode: str = "exact") -> str:
    """PARSE_JSON: numbers that JSON cannot hold are an error, or rounded."""
    check_mode(mode)
    try:
        return forms.json_form(text, exact=mode == "exact")
    except (ValueError, RecursionError) as error:
        raise out_of_range(f"Invalid input to PARSE_JSON: {error}") from error


def check_mode(mode: str) -> None:
    """The two values of wide_number_mode."""
    if mode not in {"exact", "round"}:
        raise out_of_range(
            f"Invalid wide_number_mode {mode!r}: it must be either 'exact' or 'round'"
        )


def kind(document: str) -> str:
    """JSON_TYPE."""
    found = json.loads(document)
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return "null" if found is None else names.get(type(found), "number")


def refused(found: object, wanted: str) -> Exception:
    """The error of a conversion."""
    return out_of_range(f"The provided JSON input is not {wanted}: {dump(found)[:60]}")


def as_bool(found: object, mode: str) -> int:
    """JSON boolean -> BOOL."""
    if not isinstance(found, bool):
        raise refused(found, "a boolean")
    return int(found)


def as_string(found: object, mode: str) -> str:
    """JSON string -> STRING."""
    if not isinstance(found, str):
        raise refused(found, "a string")
    return found


def as_int64(found: object, mode: str) -> int:
    """JSON number without fraction -> INT64."""
    whole = isinstance(found, int) or (isinstance(found, float) and found.is_integer())
    if isinstance(found, bool) or not whole or not INT64_MIN <= int(str_number(found)) <= INT64_MAX:
        raise refused(found, "an integer of 64 bits")
    return int(str_number(found))


def str_number(found: object) -> int:
    """A JSON number as Python's own integer."""
    return int(found) if isinstance(found, int | float) else 0


def as_float64(found: object, mode: str) -> float:
    """JSON number -> FLOAT64."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise refused(found, "a number")
    number = float(found)
    if mode == "exact" and number != found:
        raise out_of_range(f"JSON number {found} cannot be converted to DOUBLE without loss")
    return number


def as_float32(found: object, mode: str) -> float:
    """JSON number -> FLOAT32."""
    number = as_float64(found, mode)
    single = float(to_float32(number))
    if mode == "exact" and isinstance(found, int) and single != found:
        raise out_of_range(f"JSON number {found} cannot be converted to FLOAT without loss")
    return single


def converter(one: Callable[[object, str], object]) -> Callable[..., object]:
    """BOOL, INT64, FLOAT64, STRING and their kin of a document."""

    def call(document: str, mode: str = "round") -> object:
        check_mode(mode)
        return one(json.loads(document), mode)

    return call


def array_converter(one: Callable[[object, str], object]) -> Callable[..., str]:
    """The same of every element of a JSON array."""

    def call(document: str, mode: str = "round") -> str:
        check_mode(mode)
        found = json.loads(document)
        if not isinstance(found, list):
            raise refused(found, "an array")
        return array_text([one(each, mode) for each in found])

    return call


def lax_bool(document: str) -> int | None:
    """LAX_BOOL."""
    found = json.loads(document)
    if isinstance(found, str):
        return {"true": 1, "false": 0}.get(found.lower())
    return int(bool(found)) if isinstance(found, bool | int | float) else None


def lax_int64(document: str) -> int | None:
    """LAX_INT64: rounds; NULL where it does not fit."""
    found = json.loads(document)
    if isinstance(found, bool):
        return int(found)
    number = lax_number(found)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    rounded = number if isinstance(number, int) else half_away(number)
    return rounded if INT64_MIN <= rounded <= INT64_MAX else None


def half_away(number: float) -> int:
    """Rounded half away from zero."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


def lax_number(found: object) -> int | float | None:
    """A number, or one in a string."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int | float):
        return found
    if not isinstance(found, str) or found != found.strip():
        return None
    for convert in (integer, lambda text: read(floating(text))):
        try:
            number: int | float = convert(found)
        except (ValueError, OverflowError):
            continue
        return number
    return None


def lax_float64(document: str) -> float | str | None:
    """LAX_FLOAT64."""
    number = lax_number(json.loads(document))
    if number is None:
        return None
    return "NaN" if isinstance(number, float) and math.isnan(number) else float(number)


def lax_string(document: str) -> str | None:
    """LAX_STRING."""
    found = json.loads(document)
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int):
        return str(found)
    return float_text(found) if isinstance(found, float) else None


def member(document: str, name: str) -> str | None:
    """document.name and document['name']."""
    found = json.loads(document)
    return dump(found[name]) if isinstance(found, dict) and name in found else None


def item(document: str, position: int) -> str | None:
    """document[position]."""
    found = json.loads(document)
    inside_ = isinstance(found, list) and 0 <= position < len(found)
    return dump(found[position]) if inside_ else None


@functools.lru_cache(maxsize=1024)
def described(text: str) -> Any:
    """A type as the compiler tells it: a code, ["ARRAY", type] or ["STRUCT", [[name, type]]]."""
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
    found = SCALARS.get(type_)
    return found(stored, wide) if found is not None else stored


def encode_int64(stored: Any, wide: bool) -> int | str:
    """INT64."""
    return str(stored) if wide and abs(stored) > SAFE_INTEGER else int(stored)


def encode_float(stored: Any, wide: bool) -> float | str:
    """FLOAT64: what is no number is told by its name."""
    if isinstance(stored, str):
        return stored
    if math.isinf(stored):
        return "Infinity" if stored > 0 else "-Infinity"
    return float(stored)


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
    return None if wide is None else dump(encode(stored, described(type_), bool(wide)))


def json_array(*documents: str | None) -> str:
    """JSON_ARRAY of values that are JSON already."""
    return dump([json.loads(each) for each in documents if each is not None])


def json_object(*pairs: str | None) -> str:
    """JSON_OBJECT: keys and JSON values by turns; of equal keys the first counts."""
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
    found = json.loads(document)
    for path in paths:
        steps = path_of(path) if path is not None else ()
        if path is not None and not steps:
            raise out_of_range("The JSONPath of JSON_REMOVE cannot be '$'")
        owner = inside(found, steps[:-1])
        if steps and owner is not MISSING and inside(owner, steps[-1:]) is not MISSING:
            del owner[steps[-1]]
    return dump(found)


def grown(current: Any, steps: Path, given: object) -> Any:
    """A value with another at a path; MISSING where the path does not fit what is there."""
    if not steps:
        return given
    step, *rest = steps
    if current is None:
        current = {} if isinstance(step, str) else []
    if isinstance(step, str) and isinstance(current, dict):
        made = grown(current.get(step), tuple(rest), given)
        return MISSING if made is MISSING else {**current, step: made}
    if isinstance(step, int) and isinstance(current, list):
        padded = current + [None] * (step + 1 - len(current))
        made = grown(padded[step], tuple(rest), given)
        if made is MISSING:
            return MISSING
        padded[step] = made
        return padded
    return MISSING


def set_(document: str | None, create: int | None, *pairs: str | None) -> str | None:
    """JSON_SET: paths and JSON values by turns."""
    if document is None or create is None:
        return document
    found = json.loads(document)
    for path, given in zip(pairs[::2], pairs[1::2], strict=True):
        if path is None or (not create and inside(found, path_of(path)) is MISSING):
            continue
        made = grown(found, path_of(path), json.loads(given or "null"))
        found = found if made is MISSING else made
    return dump(found)


def insert(
    document: str | None, each_element: int | None, append: int, *triples: str | int | None
) -> str | None:
    """JSON_ARRAY_APPEND and JSON_ARRAY_INSERT: path, JSON value, whether it is a SQL array."""
    if document is None or each_element is None:
        return document
    found = json.loads(document)
    put = appended if append else inserted
    for path, given, array in zip(triples[::3], triples[1::3], triples[2::3], strict=True):
        if path is None:
            continue
        value_ = json.loads(str(given)) if given is not None else None
        items = value_ if array and each_element and isinstance(value_, list) else [value_]
        found = put(copy.deepcopy(found), path_of(str(path)), items)
    return dump(found)


def appended(found: Any, steps: Path, items: list[object]) -> Any:
    """The document with items at the end of the array at the path."""
    target = inside(found, steps)
    if target is MISSING or not (target is None or isinstance(target, list)):
        return found
    return grown(found, steps, (target or []) + items)


def inserted(found: Any, steps: Path, items: list[object]) -> Any:
    """The document with items before a position of an array; the array grows to reach it."""
    target = inside(found, steps[:-1]) if steps else MISSING
    position = steps[-1] if steps else ""
    if target is MISSING or not isinstance(position, int):
        return found
    if not (target is None or isinstance(target, list)):
        return found
    before = list(target or [])
    before += [None] * (position - len(before))
    return grown(found, steps[:-1], before[:position] + items + before[position:])


def strip_nulls(
    document: str | None, path: str | None, arrays: int | None, empty: int | None
) -> str | None:
    """JSON_STRIP_NULLS."""
    if document is None or path is None or arrays is None or empty is None:
        return document
    found = json.loads(document)
    target = inside(found, path_of(path))
    if target is MISSING:
        return document
    stripped = without_nulls(target, bool(arrays), bool(empty))
    cleaned = None if stripped is MISSING else stripped
    return dump(grown(found, path_of(path), cleaned))


def without_nulls(found: Any, arrays: bool, empty: bool) -> Any:
    """A value without nulls inside; MISSING where nothing is left."""
    if found is None:
        return MISSING
    if isinstance(found, dict):
        kept = {k: without_nulls(v, arrays, empty) for k, v in found.items()}
        members = {k: v for k, v in kept.items() if v is not MISSING}
        return members if members or not empty else MISSING
    if isinstance(found, list):
        items = [without_nulls(v, arrays, empty) for v in found]
        if not arrays:
            return [None if v is MISSING else v for v in items]
        left = [v for v in items if v is not MISSING]
        return left if left or not empty else MISSING
    return found


def contains(document: str, other: str) -> int:
    """JSON_CONTAINS: a top-level array contains a scalar too."""
    outer, inner = json.loads(document), json.loads(other)
    if isinstance(outer, list) and not isinstance(inner, list | dict):
        return int(any(within(each, inner) for each in outer))
    return int(within(outer, inner))


def within(outer: object, inner: object) -> bool:
    """Whether one value contains another."""
    if isinstance(inner, dict):
        return isinstance(outer, dict) and all(
            key in outer and within(outer[key], each) for key, each in inner.items()
        )
    if isinstance(inner, list):
        return isinstance(outer, list) and all(
            any(within(mine, theirs) for mine in outer) for theirs in inner
        )
    return isinstance(outer, bool) == isinstance(inner, bool) and outer == inner


def keys(document: str | None, depth: int | None, mode: str | None) -> str | None:
    """JSON_KEYS."""
    if document is None or mode is None:
        return None
    if depth is not None and depth <= 0:
        raise out_of_range("max_depth of JSON_KEYS must be positive")
    modes = {"strict": 0, "lax": 1, "lax recursive": 1 << 30}
    if mode not in modes:
        raise out_of_range(f"Invalid mode of JSON_KEYS: {mode!r}")
    found: set[str] = set()
    gather_keys(json.loads(document), "", depth or 1 << 30, modes[mode], 0, found)
    return array_text(sorted(found))


def gather_keys(
    value_: object, prefix: str, depth: int, nesting: int, arrays: int, found: set[str]
) -> None:
    """Adds the keys below a value; ``arrays`` arrays follow each other directly above it."""
    if isinstance(value_, dict) and depth > 0:
        for key, inner in value_.items():
            shown = key if re.fullmatch(r"\w+", key) else json.dumps(key, ensure_ascii=False)
            path = f"{prefix}.{shown}" if prefix else shown
            found.add(path)
            gather_keys(inner, path, depth - 1, nesting, 0, found)
    elif isinstance(value_, list) and arrays < nesting:
        for inner in value_:
            gather_keys(inner, prefix, depth, nesting, arrays + 1, found)


CONVERTERS = {
    "bool": as_bool,
    "int64": as_int64,
    "float64": as_float64,
    "float32": as_float32,
    "string": as_string,
}

FUNCTIONS: dict[str, Callable[..., object]] = {
    **{f"fn_json_{name}": converter(one) for name, one in CONVERTERS.items()},
    **{f"fn_json_{name}_array": array_converter(one) for name, one in CONVERTERS.items()},
    "fn_parse_json": parse,
    "fn_json_query": query,
    "fn_json_query_text": query_text,
    "fn_json_value": value,
    "fn_json_query_array": query_array,
    "fn_json_value_array": value_array,
    "fn_json_type": kind,
    "fn_json_member": member,
    "fn_json_item": item,
    "fn_json_contains": contains,
    "fn_lax_bool": lax_bool,
    "fn_lax_int64": lax_int64,
    "fn_lax_float64": lax_float64,
    "fn_lax_string": lax_string,
}

SEEING_NULL: dict[str, Callable[..., object]] = {
    "fn_to_json": to_json,
    "fn_new_json_array": json_array,
    "fn_new_json_object": json_object,
    "fn_json_object_of_arrays": object_of_arrays,
    "fn_json_remove": remove,
    "fn_json_set": set_,
    "fn_json_insert": insert,
    "fn_json_strip_nulls": strip_nulls,
    "fn_json_keys": keys,
}
"""Functions that have rules of their own for NULL."""
