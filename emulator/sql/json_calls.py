"""Functions of JSON, some with named arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce, require
from emulator.sql.compiler import Call, Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.sqlite_text import quote_text
from emulator.values.types import BOOL, FLOAT32, FLOAT64, INT64, JSON, STRING, array
from spanner_schema.model.column_types import Type, TypeCode

CONVERTED = {"BOOL": BOOL, "INT64": INT64, "FLOAT64": FLOAT64, "FLOAT32": FLOAT32, "STRING": STRING}
LAX = {"LAX_BOOL": BOOL, "LAX_INT64": INT64, "LAX_FLOAT64": FLOAT64, "LAX_STRING": STRING}


def read_arguments(
    compiler: Compiler,
    node: exp.Anonymous,
    scope: Scope,
    context: Context,
    named: Mapping[str, Type] | None = None,
) -> tuple[list[Typed], dict[str, Typed]]:
    """The arguments by place, and those by name: name => value."""
    places: list[Typed] = []
    names: dict[str, Typed] = {}
    for each in node.expressions:
        if not isinstance(each, exp.Kwarg):
            if names:
                raise errors.invalid_argument("Positional argument after a named argument")
            places.append(compiler.compile(each, scope, context))
            continue
        name = each.this.name.lower()
        if name not in (named or {}):
            raise errors.invalid_argument(
                f"Named argument {name} not found in signature for call to {node.name.upper()}"
            )
        item = compiler.compile(each.expression, scope, context)
        names[name] = require(item, (named or {})[name], context, f"The argument {name}")
    return places, names


def check_argument_count(items: list[Typed], name: str, least: int, most: int = 10_000) -> None:
    """INVALID_ARGUMENT when there are too few or too many arguments."""
    if not least <= len(items) <= most:
        raise errors.invalid_argument(
            f"Number of arguments does not match for function {name}: {len(items)}"
        )


def mismatch(name: str, items: list[Typed]) -> Exception:
    """No signature fits."""
    types = ", ".join(name_of(item.type) for item in items)
    return errors.invalid_argument(
        f"No matching signature for function {name} for argument types: {types}"
    )


def describe_type(type_: Type) -> object:
    """A type for the functions that encode values."""
    if type_.element is not None:
        return ["ARRAY", describe_type(type_.element)]
    if type_.code is TypeCode.STRUCT:
        return ["STRUCT", [[field.name, describe_type(field.type)] for field in type_.fields]]
    if type_.proto_name is not None:
        raise errors.unimplemented(f"A value of type {type_.proto_name} in JSON and FORMAT")
    return type_.code.value


def encode_argument(item: Typed, wide: str = "0") -> str:
    """A SQL value as SQLite text that gives JSON."""
    if item.type == JSON:
        return f"coalesce({item.sql}, 'null')"
    text = quote_text(json.dumps(describe_type(item.type or STRING)))
    return f"fn_to_json({item.sql}, {text}, {wide})"


def to_json(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TO_JSON, SAFE_TO_JSON."""
    name = node.name.upper()
    allowed = {"stringify_wide_numbers": BOOL} if name == "TO_JSON" else {}
    items, named = read_arguments(compiler, node, scope, context, allowed)
    check_argument_count(items, name, 1, 1)
    # SAFE_TO_JSON never fails: numbers that JSON does not hold are strings.
    wide = "1" if name == "SAFE_TO_JSON" else "0"
    wide = named["stringify_wide_numbers"].sql if named else wide
    return Typed(encode_argument(items[0], wide), JSON)


def to_json_string(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """TO_JSON_STRING, in Spanner of JSON only."""
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, "TO_JSON_STRING", 1, 1)
    (item,) = items
    if item.type not in {None, JSON}:
        raise errors.unimplemented(
            f"TO_JSON_STRING is not supported on values of type {name_of(item.type)}:"
            " TO_JSON_STRING of it"
        )
    return Typed(f"coalesce({item.sql}, 'null')", STRING)


def parse(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """PARSE_JSON(text [, wide_number_mode => 'exact' | 'round'])."""
    items, named = read_arguments(compiler, node, scope, context, {"wide_number_mode": STRING})
    check_argument_count(items, "PARSE_JSON", 1, 1)
    item = require(items[0], STRING, context, "The argument of PARSE_JSON")
    listed = ", ".join(each.sql for each in [item, *named.values()])
    return Typed(f"fn_parse_json({listed})", JSON)


def convert_json(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """BOOL(json), INT64(json), ..., BOOL_ARRAY(json), ..."""
    name = node.name.upper()
    element = CONVERTED[name.removesuffix("_ARRAY")]
    allowed = {"wide_number_mode": STRING} if "FLOAT" in name else {}
    items, named = read_arguments(compiler, node, scope, context, allowed)
    check_argument_count(items, name, 1, 1)
    item = require_json(items[0], name, context)
    listed = ", ".join(each.sql for each in [item, *named.values()])
    result = array(element) if name.endswith("_ARRAY") else element
    return Typed(f"fn_json_{name.lower()}({listed})", result)


def require_json(item: Typed, name: str, context: Context) -> Typed:
    """An argument that must be JSON."""
    document = coerce(item, JSON, context)
    if document is None:
        raise mismatch(name, [item])
    return document


def lax(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """LAX_BOOL, LAX_INT64, LAX_FLOAT64, LAX_STRING."""
    name = node.name.upper()
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, name, 1, 1)
    item = require_json(items[0], name, context)
    return Typed(f"fn_{name.lower()}({item.sql})", LAX[name])


def extract_json(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_QUERY, JSON_VALUE and their arrays, of JSON or of a STRING."""
    name = node.name.upper()
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, name, 2 if name == "JSON_QUERY" else 1, 2)
    if items[0].type not in {None, JSON, STRING}:
        raise mismatch(name, items)
    document = require(items[0], items[0].type or STRING, context, name)
    paths = [require(each, STRING, context, "The JSONPath") for each in items[1:]]
    listed = ", ".join(each.sql for each in [document, *paths])
    result = {
        "JSON_QUERY": document.type or STRING,
        "JSON_VALUE": STRING,
        "JSON_QUERY_ARRAY": array(document.type or STRING),
        "JSON_VALUE_ARRAY": array(STRING),
    }[name]
    suffix = "_text" if name == "JSON_QUERY" and document.type == STRING else ""
    return Typed(f"fn_{name.lower()}{suffix}({listed})", result)


def json_type(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_TYPE(json)."""
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, "JSON_TYPE", 1, 1)
    return Typed(f"fn_json_type({require_json(items[0], 'JSON_TYPE', context).sql})", STRING)


def contains(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_CONTAINS(json, json)."""
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, "JSON_CONTAINS", 2, 2)
    left, right = (require_json(item, "JSON_CONTAINS", context) for item in items)
    return Typed(f"fn_json_contains({left.sql}, {right.sql})", BOOL)


def new_array(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_ARRAY(value, ...)."""
    items, _ = read_arguments(compiler, node, scope, context)
    return Typed(f"fn_new_json_array({', '.join(map(encode_argument, items))})", JSON)


def new_object(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_OBJECT(key, value, ...), JSON_OBJECT(keys, values)."""
    items, _ = read_arguments(compiler, node, scope, context)
    if len(items) == 2 and all(i.type is not None and i.type.element is not None for i in items):
        names = require(items[0], array(STRING), context, "The keys of JSON_OBJECT")
        values = f"{encode_argument(items[1])}, {items[1].sql} IS NULL"
        return Typed(f"fn_json_object_of_arrays({names.sql}, {values})", JSON)
    if len(items) % 2:
        raise mismatch("JSON_OBJECT", items)
    listed = []
    for key, value in zip(items[::2], items[1::2], strict=True):
        listed.append(require(key, STRING, context, "A key of JSON_OBJECT").sql)
        listed.append(encode_argument(value))
    return Typed(f"fn_new_json_object({', '.join(listed)})", JSON)


def remove(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_REMOVE(json, path, ...)."""
    items, _ = read_arguments(compiler, node, scope, context)
    check_argument_count(items, "JSON_REMOVE", 2)
    document = require_json(items[0], "JSON_REMOVE", context)
    paths = [require(each, STRING, context, "A JSONPath of JSON_REMOVE") for each in items[1:]]
    return Typed(f"fn_json_remove({', '.join(i.sql for i in [document, *paths])})", JSON)


def set_(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_SET(json, path, value, ... [, create_if_missing => b])."""
    items, named = read_arguments(compiler, node, scope, context, {"create_if_missing": BOOL})
    check_argument_count(items, "JSON_SET", 3)
    if len(items) % 2 == 0:
        raise mismatch("JSON_SET", items)
    listed = [require_json(items[0], "JSON_SET", context).sql]
    listed.append(named["create_if_missing"].sql if named else "1")
    for path, value in zip(items[1::2], items[2::2], strict=True):
        listed.append(require(path, STRING, context, "A JSONPath of JSON_SET").sql)
        listed.append(encode_argument(value))
    return Typed(f"fn_json_set({', '.join(listed)})", JSON)


def insert(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_ARRAY_APPEND, JSON_ARRAY_INSERT (json, path, value, ... [, ..._each_element => b])."""
    name = node.name.upper()
    append = name.endswith("APPEND")
    flag = "append_each_element" if append else "insert_each_element"
    items, named = read_arguments(compiler, node, scope, context, {flag: BOOL})
    check_argument_count(items, name, 3)
    if len(items) % 2 == 0:
        raise mismatch(name, items)
    listed = [require_json(items[0], name, context).sql, named[flag].sql if named else "1"]
    listed.append("1" if append else "0")
    for path, value in zip(items[1::2], items[2::2], strict=True):
        listed.append(require(path, STRING, context, f"A JSONPath of {name}").sql)
        listed.append(encode_argument(value))
        listed.append("1" if value.type is not None and value.type.element is not None else "0")
    return Typed(f"fn_json_insert({', '.join(listed)})", JSON)


def strip_nulls(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_STRIP_NULLS(json [, path] [, include_arrays => b] [, remove_empty => b])."""
    allowed = {"include_arrays": BOOL, "remove_empty": BOOL, "json_path": STRING}
    items, named = read_arguments(compiler, node, scope, context, allowed)
    check_argument_count(items, "JSON_STRIP_NULLS", 1, 2)
    document = require_json(items[0], "JSON_STRIP_NULLS", context)
    path = require(items[1], STRING, context, "The JSONPath").sql if len(items) > 1 else "'$'"
    path = named["json_path"].sql if "json_path" in named else path
    arrays = named["include_arrays"].sql if "include_arrays" in named else "1"
    empty = named["remove_empty"].sql if "remove_empty" in named else "0"
    return Typed(f"fn_json_strip_nulls({document.sql}, {path}, {arrays}, {empty})", JSON)


def keys(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JSON_KEYS(json [, max_depth] [, mode => m])."""
    items, named = read_arguments(
        compiler, node, scope, context, {"mode": STRING, "max_depth": INT64}
    )
    check_argument_count(items, "JSON_KEYS", 1, 2)
    document = require_json(items[0], "JSON_KEYS", context)
    depth = require(items[1], INT64, context, "max_depth").sql if len(items) > 1 else "NULL"
    depth = named["max_depth"].sql if "max_depth" in named else depth
    mode = named["mode"].sql if "mode" in named else "'strict'"
    return Typed(f"fn_json_keys({document.sql}, {depth}, {mode})", array(STRING))


CALLS: dict[str, Call] = {
    "TO_JSON": to_json,
    "SAFE_TO_JSON": to_json,
    "TO_JSON_STRING": to_json_string,
    "PARSE_JSON": parse,
    **{name: convert_json for name in CONVERTED if name != "STRING"},
    **{f"{name}_ARRAY": convert_json for name in CONVERTED},
    **dict.fromkeys(LAX, lax),
    "JSON_QUERY": extract_json,
    "JSON_VALUE": extract_json,
    "JSON_QUERY_ARRAY": extract_json,
    "JSON_VALUE_ARRAY": extract_json,
    "JSON_TYPE": json_type,
    "JSON_CONTAINS": contains,
    "JSON_ARRAY": new_array,
    "JSON_OBJECT": new_object,
    "JSON_REMOVE": remove,
    "JSON_SET": set_,
    "JSON_ARRAY_APPEND": insert,
    "JSON_ARRAY_INSERT": insert,
    "JSON_STRIP_NULLS": strip_nulls,
    "JSON_KEYS": keys,
}
