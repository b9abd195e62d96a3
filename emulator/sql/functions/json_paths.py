"""JSON paths, and documents as text and as Python values."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from emulator.errors import out_of_range
from emulator.values.forms import first_of_each_key

Step = str | int
Path = tuple[Step, ...]
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


def value_at(value: Any, steps: Sequence[Any]) -> Any:
    """The value at a path, or MISSING."""
    for step in steps:
        keyed = isinstance(value, dict) and isinstance(step, str) and step in value
        placed = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not keyed and not placed:
            return MISSING
        value = value[step]
    return value


def parse_text(text: str) -> Any:
    """The JSON document in a STRING; MISSING if it is invalid."""
    try:
        return json.loads(text, object_pairs_hook=first_of_each_key)
    except (ValueError, RecursionError):
        return MISSING


def array_text(values: Sequence[object]) -> str:
    """An ARRAY in storage form."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
