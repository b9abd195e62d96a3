"""Functions of JSON. Documents are text in storage; arguments written as JSON have their type."""

from __future__ import annotations

import json
from collections.abc import Callable

from emulator.errors import out_of_range
from emulator.sql.functions.json_containment import contains_document
from emulator.sql.functions.json_documents import (
    insert,
    json_array,
    json_object,
    object_of_arrays,
    remove,
    set_,
    strip_nulls,
    to_json,
)
from emulator.sql.functions.json_paths import (
    MISSING,
    array_text,
    dump,
    escaped,
    part_of_text,
    text_path_of,
    value_by_text,
    written,
)
from emulator.sql.functions.json_values import (
    CONVERTERS,
    array_converter,
    check_mode,
    converter,
    json_type,
    lax_bool,
    lax_float64,
    lax_int64,
    lax_string,
)
from emulator.values import forms
from emulator.values.json_text import write_part


def query(document: str, path: str = "$") -> str | None:
    """JSON_QUERY of JSON: a part of the document, JSON null too."""
    part = value_by_text(json.loads(document), text_path_of(path))
    return None if part is MISSING else dump(part)


def query_text(text: str, path: str = "$") -> str | None:
    """JSON_QUERY of a STRING: null is NULL, the order of keys stays."""
    part = part_of_text(text, path)
    if part is MISSING or part is None:
        return None
    return written(part)


def scalar_text(value: object) -> str | None:
    """A scalar as JSON_VALUE gives it."""
    if value is None or value is MISSING or isinstance(value, dict | list):
        return None
    return str(value) if isinstance(value, str) else write_part(value)


def value(text: str, path: str = "$") -> str | None:
    """JSON_VALUE: a scalar as a STRING, else NULL."""
    return scalar_text(part_of_text(text, path))


def query_array(text: str, path: str = "$") -> str | None:
    """JSON_QUERY_ARRAY: each element as JSON."""
    part = part_of_text(text, path)
    return array_text([written(each) for each in part]) if isinstance(part, list) else None


def value_array(text: str, path: str = "$") -> str | None:
    """JSON_VALUE_ARRAY: scalars as STRINGs; NULL when there is anything else."""
    part = part_of_text(text, path)
    if not isinstance(part, list) or any(isinstance(each, dict | list) for each in part):
        return None
    return array_text([scalar_text(each) for each in part])


def parse(text: str, mode: str = "exact") -> str:
    """PARSE_JSON: numbers that JSON cannot hold are an error, or rounded."""
    check_mode(mode)
    try:
        return forms.json_form(text, exact=mode == "exact")
    except (ValueError, RecursionError) as error:
        raise out_of_range(f"Invalid input to PARSE_JSON: {error}") from error


def member(document: str, name: str) -> str | None:
    """document.name and document['name']."""
    owner = json.loads(document)
    return dump(owner[name]) if isinstance(owner, dict) and name in owner else None


def item(document: str, position: int) -> str | None:
    """document[position]."""
    items = json.loads(document)
    inside_ = isinstance(items, list) and 0 <= position < len(items)
    return dump(items[position]) if inside_ else None


def contains(document: str, other: str) -> int:
    """JSON_CONTAINS: a top-level array contains a scalar too."""
    return int(contains_document(json.loads(document), json.loads(other)))


def keys(document: str | None, depth: int | None, mode: str | None) -> str | None:
    """JSON_KEYS."""
    if document is None or mode is None:
        return None
    if depth is not None and depth <= 0:
        raise out_of_range("max_depth of JSON_KEYS must be positive")
    modes = {"strict": 0, "lax": 1, "lax recursive": 1 << 30, "recursive lax": 1 << 30}
    mode = mode.lower()
    if mode not in modes:
        raise out_of_range(f"Invalid mode of JSON_KEYS: {mode!r}")
    paths: set[str] = set()
    gather_keys(json.loads(document), "", depth or 1 << 30, modes[mode], 0, paths)
    return array_text(sorted(paths))


def quote_key(key: str) -> str:
    """A key as a path has it: in quotes where it has a dot or what JSON escapes."""
    quoted = escaped(key)
    return key if quoted == f'"{key}"' and "." not in key else quoted


def gather_keys(
    value_: object, prefix: str, depth: int, nesting: int, arrays: int, paths: set[str]
) -> None:
    """Adds the keys below a value; ``arrays`` arrays follow each other directly above it."""
    if isinstance(value_, dict) and depth > 0:
        for key, inner in value_.items():
            shown = quote_key(key)
            path = f"{prefix}.{shown}" if prefix else shown
            paths.add(path)
            gather_keys(inner, path, depth - 1, nesting, 0, paths)
    elif isinstance(value_, list) and arrays < nesting:
        for inner in value_:
            gather_keys(inner, prefix, depth, nesting, arrays + 1, paths)


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{f"fn_json_{name}": converter(one) for name, one in CONVERTERS.items()},
    **{f"fn_json_{name}_array": array_converter(one) for name, one in CONVERTERS.items()},
    "fn_parse_json": parse,
    "fn_json_query": query,
    "fn_json_query_text": query_text,
    "fn_json_value": value,
    "fn_json_query_array": query_array,
    "fn_json_value_array": value_array,
    "fn_json_type": json_type,
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
