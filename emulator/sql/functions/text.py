"""Functions of STRING, BYTES and JSON. Positions count characters (STRING) or bytes (BYTES)."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import json
import re
import uuid
from collections.abc import Callable

import farmhash

from emulator.errors import out_of_range, unimplemented
from emulator.storage import forms

Text = str | bytes
RANDOM = {"fn_generate_uuid"}


def farm_fingerprint(value: Text) -> int:
    """FarmHash Fingerprint64, read as a signed number."""
    unsigned: int = farmhash.fingerprint64(value)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def empty(like: Text) -> Text:
    """The empty value of the same type."""
    return like[:0]


def substr(value: Text, position: int, length: int | None = None) -> Text:
    """SUBSTR: from 1; a negative position counts from the end."""
    if length is not None and length < 0:
        raise out_of_range("Third argument in SUBSTR() cannot be negative")
    start = position - 1 if position > 0 else max(len(value) + position, 0) if position else 0
    if position < 0 and -position > len(value):
        start = 0
    return value[start:] if length is None else value[start : start + length]


def trim(sides: str) -> Callable[..., Text]:
    """TRIM, LTRIM, RTRIM: of blanks, or of the characters of the second argument."""

    def call(value: Text, characters: Text | None = None) -> Text:
        chosen = characters if characters is not None else None
        if isinstance(value, str):
            strip = {"both": value.strip, "left": value.lstrip, "right": value.rstrip}[sides]
            return strip(chosen if isinstance(chosen, str) else None)
        cut = {"both": value.strip, "left": value.lstrip, "right": value.rstrip}[sides]
        return cut(chosen if isinstance(chosen, bytes) else None)

    return call


def pad(left: bool) -> Callable[..., Text]:
    """LPAD, RPAD: to a length, with blanks or a pattern."""

    def call(value: Text, length: int, pattern: Text | None = None) -> Text:
        if length < 0:
            raise out_of_range("The length of LPAD and RPAD cannot be negative")
        if pattern is None:
            pattern = " " if isinstance(value, str) else b" "
        if not pattern:
            raise out_of_range("The pattern of LPAD and RPAD cannot be empty")
        missing = max(length - len(value), 0)
        filling = (pattern * (missing // len(pattern) + 1))[:missing]
        cut = value[:length]
        return filling + cut if left else cut + filling  # type: ignore[operator]

    return call


def replace(value: Text, old: Text, new: Text) -> Text:
    """REPLACE: nothing is replaced for an empty pattern."""
    return value.replace(old, new) if old else value  # type: ignore[arg-type]


def repeat(value: Text, count: int) -> Text:
    """REPEAT."""
    if count < 0:
        raise out_of_range("Second argument in REPEAT() cannot be negative")
    return value * count


def split(value: Text, delimiter: Text | None = None) -> str:
    """SPLIT: an array; an empty delimiter gives the characters."""
    if delimiter is None:
        delimiter = "," if isinstance(value, str) else b","
    if not delimiter:
        parts: list[Text] = [value[i : i + 1] for i in range(len(value))]
    else:
        parts = list(value.split(delimiter))  # type: ignore[arg-type]
    texts = [p if isinstance(p, str) else base64.b64encode(p).decode() for p in parts or [value]]
    return json.dumps(texts, ensure_ascii=False)


@functools.lru_cache(maxsize=1024)
def like_pattern(pattern: Text) -> re.Pattern[str] | re.Pattern[bytes]:
    """LIKE: % any characters, _ one, backslash quotes."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    if re.search(r"(?<!\\)(?:\\\\)*\\\Z", text):
        raise out_of_range("LIKE pattern ends with a backslash")
    pieces = re.split(r"(\\.|%|_)", text, flags=re.DOTALL)
    written = {"%": ".*", "_": "."}
    expression = "".join(
        written.get(piece) or re.escape(piece[1:] if piece.startswith("\\") else piece)
        for piece in pieces
        if piece
    )
    if isinstance(pattern, str):
        return re.compile(expression, re.DOTALL)
    return re.compile(expression.encode("latin-1"), re.DOTALL)


def like(value: Text, pattern: Text) -> int:
    """value LIKE pattern."""
    return int(like_pattern(pattern).fullmatch(value) is not None)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=1024)
def regular_expression(pattern: str) -> re.Pattern[str]:
    """A regular expression; what only Python's engine knows is refused."""
    if re.search(r"\(\?[=!<]|\\[1-9]", pattern.replace("(?P<", "")):
        raise unimplemented("look-around or a back-reference in a regular expression")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise out_of_range(f"Cannot parse regular expression: {error}") from error


def extract(value: str, pattern: str) -> str | None:
    """REGEXP_EXTRACT: the first match, or its only group."""
    match = regular_expression(pattern).search(value)
    if match is None:
        return None
    return match.group(1) if match.re.groups else match.group()


def substitute(value: str, pattern: str, replacement: str) -> str:
    """REGEXP_REPLACE: \\1 names a group."""
    return regular_expression(pattern).sub(replacement.replace("\\0", "\\g<0>"), value)


def from_hex(text: str) -> bytes:
    """FROM_HEX: an odd number of digits gets a zero in front."""
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError as error:
        raise out_of_range(f"Failed to decode invalid hexadecimal string: {text!r}") from error


def from_base64(text: str) -> bytes:
    """FROM_BASE64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise out_of_range(f"Failed to decode invalid base64 string: {text!r}") from error


def hash_with(name: str) -> Callable[[Text], bytes]:
    """A digest of BYTES or of the UTF-8 of a STRING."""

    def call(value: Text) -> bytes:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(name, data, usedforsecurity=False).digest()

    return call


def concatenate_bytes(*values: bytes) -> bytes:
    """CONCAT of BYTES."""
    return b"".join(values)


def parse_json(text: str) -> str:
    """PARSE_JSON."""
    try:
        return forms.json_form(text)
    except ValueError as error:
        raise out_of_range(f"Invalid input to PARSE_JSON: {error}") from error


@functools.lru_cache(maxsize=1024)
def json_path(path: str) -> tuple[str | int, ...]:
    """$.a.b[0]['c'] as keys and positions."""
    if not path.startswith("$"):
        raise out_of_range(f"JSONPath must start with '$': {path}")
    pattern = re.compile(
        r"\.([A-Za-z_][\w-]*)|\.\"([^\"]*)\"|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]"
    )
    steps: list[str | int] = []
    offset = 1
    while offset < len(path):
        match = pattern.match(path, offset)
        if match is None:
            raise out_of_range(f"Unsupported operator in JSONPath: {path}")
        number = match.group(3)
        text = next((g for g in match.groups() if g is not None), "")
        steps.append(int(number) if number is not None else text)
        offset = match.end()
    return tuple(steps)


def follow(document: str, path: str) -> object:
    """The value at a path, or None; ``KeyError`` never leaves."""
    value: object = json.loads(document)
    for step in json_path(path):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def json_value(document: str, path: str = "$") -> str | None:
    """JSON_VALUE: a scalar as a STRING, else NULL."""
    value = follow(document, path)
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def json_query(document: str, path: str = "$") -> str | None:
    """JSON_QUERY: a part of the document."""
    value = follow(document, path)
    return None if value is None else forms.json_form(json.dumps(value))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "farm_fingerprint": farm_fingerprint,
    "fn_length": len,
    "fn_length_bytes": len,
    "fn_byte_length": lambda v: len(v.encode() if isinstance(v, str) else v),
    "fn_lower": lambda v: v.lower(),
    "fn_upper": lambda v: v.upper(),
    "fn_reverse": lambda v: v[::-1],
    "fn_trim": trim("both"),
    "fn_ltrim": trim("left"),
    "fn_rtrim": trim("right"),
    "fn_substr": substr,
    "fn_left": lambda v, n: v[: max(n, 0)],
    "fn_right": lambda v, n: v[max(len(v) - n, 0) :] if n > 0 else empty(v),
    "fn_starts_with": lambda v, p: int(v.startswith(p)),
    "fn_ends_with": lambda v, p: int(v.endswith(p)),
    "fn_strpos": lambda v, p: v.find(p) + 1,
    "fn_replace": replace,
    "fn_repeat": repeat,
    "fn_lpad": pad(left=True),
    "fn_rpad": pad(left=False),
    "fn_split": split,
    "fn_concat": lambda *values: "".join(values),
    "fn_concat_bytes": concatenate_bytes,
    "fn_initcap": lambda v: re.sub(r"[^\W_]+", lambda m: m.group().capitalize(), v),
    "fn_like": like,
    "fn_regexp_contains": lambda v, p: int(regular_expression(p).search(v) is not None),
    "fn_regexp_extract": extract,
    "fn_regexp_replace": substitute,
    "fn_to_hex": lambda v: v.hex(),
    "fn_from_hex": from_hex,
    "fn_to_base64": lambda v: base64.b64encode(v).decode(),
    "fn_from_base64": from_base64,
    "fn_sha1": hash_with("sha1"),
    "fn_sha256": hash_with("sha256"),
    "fn_sha512": hash_with("sha512"),
    "fn_md5": hash_with("md5"),
    "fn_safe_convert_bytes_to_string": lambda v: v.decode(errors="replace"),
    "fn_generate_uuid": lambda: str(uuid.uuid4()),
    "fn_parse_json": parse_json,
    "fn_to_json_string": lambda v: v,
    "fn_json_value": json_value,
    "fn_json_query": json_query,
}
