"""The values of Spark's options, which are all texts."""

from __future__ import annotations

import json

from pydantic.alias_generators import to_snake

EXAMPLE = '{"name": "value"}'


def split_names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def join_names(tables: str, exclude: str) -> str:
    """A list of names, and of those left out, in one spelling."""
    left_out = f" except {','.join(split_names(exclude))}" if exclude else ""
    return ",".join(split_names(tables)) + left_out


def convert_operations(value: object) -> object:
    """The operations of a comma-separated list."""
    return tuple(name.upper() for name in split_names(value)) if isinstance(value, str) else value


def convert_json(value: object) -> object:
    """A JSON object. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is not JSON: write an object such as {EXAMPLE}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{value!r} is not a JSON object: write one such as {EXAMPLE}")
    return parsed


def convert_mask_key(value: object) -> object:
    """A JSON object. Raises ValueError that does not show a text that is none: it may be a key."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None if value is None else ()


def convert_directed_read(value: object) -> object:
    """A JSON object, whose names are in camelCase. Raises ValueError."""
    values = convert_json(value)
    if not isinstance(values, dict):
        return values
    return {to_snake(name): each for name, each in values.items()}


def convert_shard_values(value: object) -> object:
    """The values of a comma-separated list, or of a JSON array: numbers where all are."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return tuple(json.loads(value))
    names = split_names(value)
    numbers = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(map(int, names)) if numbers else names


def convert_columns(value: object) -> object:
    """The names of a comma-separated list. Raises ValueError for one that comes twice."""
    names = split_names(value) if isinstance(value, str) else value
    if isinstance(names, tuple) and len(set(names)) < len(names):
        raise ValueError("a column is named twice")
    return names


def convert_table_options(value: object) -> object:
    """A JSON object of objects, whose names are in camelCase. Raises ValueError."""
    tables = convert_json(value)
    if not isinstance(tables, dict):
        return tables
    for name, spec in tables.items():
        if not isinstance(spec, dict):
            raise ValueError(f"the options of {name} are not a JSON object: {spec!r}")
    return {
        name: {to_snake(option): each for option, each in spec.items()}
        for name, spec in tables.items()
    }
