"""JSON paths, and documents as text and as Python values."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from emulator.errors import out_of_range
from emulator.values.forms import first_of_each_key, refuse_constant
from emulator.values.json_text import write_document

Step = str | int
Path = tuple[Step, ...]
KEY = r"[\w\-: \t\n\f\r]+"
QUOTED_KEY = r"\.\"((?:[^\"\\]|\\.)*)\""
STEP = re.compile(rf"\.({KEY})|{QUOTED_KEY}|\[\s*(\d+)\s*\]", re.DOTALL)
"""Of a path to an element that is changed: keys are no positions."""
TEXT_STEP = re.compile(rf"\.({KEY})|{QUOTED_KEY}|\[\s*([\d_-]+)\s*\]", re.DOTALL)
"""Of a path to what is read: what a key or a position is says the value."""
UNSUPPORTED = re.compile(r"\*|\.\.|@")
POSITION = re.compile(r"\d{1,18}", re.ASCII)
BLANKS = re.compile(r"[ \t\n\r\v\f]*")
MISSING = object()


@functools.lru_cache(maxsize=1024)
def path_of(path: str) -> Path:
    """$.a.b[0]['c'] as keys and positions."""
    steps: list[Step] = []
    for match in split_path(path, STEP):
        text = unescape(match)
        steps.append(int(text) if match.group(3) is not None else text)
    return tuple(steps)


@functools.lru_cache(maxsize=1024)
def text_path_of(path: str) -> tuple[str, ...]:
    """The same of a path that JSON_VALUE and its kin read: also positions are texts."""
    return tuple(unescape(match) for match in split_path(path, TEXT_STEP))


def split_path(path: str, step: re.Pattern[str]) -> list[re.Match[str]]:
    """The steps of a path. Raises OUT_OF_RANGE."""
    if not path.startswith("$"):
        raise out_of_range(f"JSONPath must start with '$': {path}")
    matches: list[re.Match[str]] = []
    offset = 1
    while offset < len(path):
        match = step.match(path, offset)
        if match is None:
            unsupported = UNSUPPORTED.search(path, offset)
            if unsupported is not None:
                raise out_of_range(f"Unsupported operator in JSONPath: {unsupported.group()}")
            raise out_of_range(f"Invalid token in JSONPath at: {path[offset:]}")
        matches.append(match)
        offset = match.end()
    return matches


def unescape(step: re.Match[str]) -> str:
    """A key or a position without its signs; in a quoted key a backslash stands before quotes."""
    plain, quoted, position = step.groups()
    return quoted.replace('\\"', '"') if quoted is not None else plain or position


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


def value_by_text(value: Any, steps: Sequence[str]) -> Any:
    """The value at a path whose steps are texts: a key of an object, a position in an array."""
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and POSITION.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
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
    parse_int=WrittenNumber,
    parse_float=WrittenNumber,
    parse_constant=refuse_constant,
    object_pairs_hook=Members,
    strict=False,
)


def parse_text(text: str) -> Any:
    """The JSON document at the beginning of a text; MISSING if it is invalid."""
    try:
        return read_value(text, skip_blanks(text, 0))[0]
    except (ValueError, RecursionError):
        return MISSING


def part_of_text(text: str, path: str) -> Any:
    """The part of a STRING that a path names, or MISSING.

    GoogleSQL reads a text up to the end of what is asked for: what comes behind may be no JSON.
    """
    steps = text_path_of(path)
    document = parse_text(text)
    if document is not MISSING:
        return value_by_text(document, steps)
    try:
        return part_of_beginning(text, steps)
    except (ValueError, IndexError, RecursionError):
        return MISSING


def part_of_beginning(text: str, steps: Sequence[str]) -> Any:
    """The part of a text that is a document up to there. Raises ValueError or IndexError."""
    offset = skip_blanks(text, 0)
    for step in steps:
        offset = find_member(text, offset, step)
    return read_value(text, offset)[0]


def read_value(text: str, offset: int) -> tuple[Any, int]:
    """The value that begins at an offset, and where it ends. Raises ValueError."""
    value, end = READER.raw_decode(text, offset)
    if isinstance(value, WrittenNumber) and "e" not in value.lower():
        signs = ("e", "E") if "." in value else ("e", "E", ".")
        if text.startswith(signs, end):
            raise ValueError("a number without its last digits")
    return value, end


def find_member(text: str, offset: int, step: str) -> int:
    """Where the value of a key or a position of the document at ``offset`` begins."""
    keyed = text[offset] == "{"
    if not keyed and text[offset] != "[":
        raise ValueError("neither an object nor an array")
    for position in itertools.count():
        offset = skip_blanks(text, offset + 1)
        name = str(position)
        if keyed:
            if text[offset] != '"':
                raise ValueError("no key")
            name, offset = READER.raw_decode(text, offset)
            offset = skip_blanks(text, offset)
            if text[offset] != ":":
                raise ValueError("no value")
            offset = skip_blanks(text, offset + 1)
        if name == step:
            return offset
        offset = skip_blanks(text, read_value(text, offset)[1])
        if text[offset] != ",":
            raise ValueError("no such member")
    raise AssertionError("unreachable: the loop ends with its text")


def skip_blanks(text: str, offset: int) -> int:
    """The next offset that has no blank."""
    match = BLANKS.match(text, offset)
    return match.end() if match else offset


def escaped(text: str) -> str:
    """A text of JSON as functions of STRINGs write it: without line ends of Unicode."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def written(value: Any) -> str:
    """A part of a document as the text has it, without blanks."""
    if isinstance(value, WrittenNumber):
        return str(value)
    if isinstance(value, Members):
        pairs = (f"{escaped(k)}:{written(v)}" for k, v in value.pairs)
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return escaped(value) if isinstance(value, str) else json.dumps(value)


def array_text(values: Sequence[object]) -> str:
    """An ARRAY in storage form."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
