"""JSON documents as text: keys in order, no blanks, numbers as GoogleSQL writes them."""

from __future__ import annotations

import json
import re
from typing import Any

from emulator.values.json_numbers import write_number

MAYBE_FLOAT = re.compile(r"\d[.e]")
"""In a text without a match there is no double."""


def write_document(value: Any) -> str:
    """A document of Python's own types in one line."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text if MAYBE_FLOAT.search(text) is None else write_part(value)


def write_part(value: Any) -> str:
    """As ``write_document``, for one that may have doubles."""
    if isinstance(value, float):
        return write_number(value)
    if isinstance(value, dict):
        pairs = (f"{write_text(key)}:{write_part(each)}" for key, each in sorted(value.items()))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write_part, value)) + "]"
    return write_text(value)


def write_lines(value: Any, depth: int = 0) -> str:
    """A document over several lines, each level two blanks further to the right."""
    if not isinstance(value, dict | list | tuple) or not value:
        return write_part(value)
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        parts = [f"{write_text(k)}: {write_lines(v, depth + 1)}" for k, v in sorted(value.items())]
        begin, end = "{}"
    else:
        parts = [write_lines(each, depth + 1) for each in value]
        begin, end = "[]"
    lines = ",\n".join(inner + each for each in parts)
    return f"{begin}\n{lines}\n{outer}{end}"


def write_text(value: Any) -> str:
    """A string, an integer, a Boolean or null."""
    return json.dumps(value, ensure_ascii=False)
