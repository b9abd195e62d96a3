"""JSON paths, and documents as text and as Python values."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from emulator.errors import out_of_range
from emulator.values.forms import first_of_each_key
from emulator.values.json_text import write_document

Step = str | int
Path = tuple[Step, ...]
STEP = re.compile(r"\.([^.\[\]\"'\s$]+)|\.\"((?:[^\"\\]|\\.)*)\"|\[(\d+)\]")
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
    return write_document(value)


def value_at(value: Any, steps: Sequence[Any]) -> Any:
    """The value at a path, or MISSING."""
    for step in steps:
        keyed = isinstance(value, dict) and isinstance(step, str) and step in value
        placed = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not keyed and not placed:
            return MISSING
        value = value[step]
    return value


class WrittenNumber(str):
    """A number as the text has it."""

    __slots__ = ()


class Members(dict[str, Any]):
    """An object: of equal keys the first counts, and ``pairs`` has all of them."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(first_of_each_key(pairs))
        self.pairs = pairs


READER = json.JSONDecoder(
    parse_int=WrittenNumber, parse_float=WrittenNumber, object_pairs_hook=Members, strict=False
)


def parse_text(text: str) -> Any:
    """The JSON document at the beginning of a text; MISSING if it is invalid."""
    try:
        return READER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return MISSING


def written(value: Any) -> str:
    """A part of a document as the text has it, without blanks."""
    if isinstance(value, WrittenNumber):
        return str(value)
    if isinstance(value, Members):
        pairs = (f"{json.dumps(k, ensure_ascii=False)}:{written(v)}" for k, v in value.pairs)
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def array_text(values: Sequence[object]) -> str:
    """An ARRAY in storage form."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
