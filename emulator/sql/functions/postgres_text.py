"""Functions of text and bytea, as the PostgreSQL dialect has them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from emulator.errors import invalid_argument, out_of_range
from emulator.sql.functions.like_patterns import compile_like, ends_in_backslash
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.text_sizes import join_texts, refuse_long, size_in_bytes
from emulator.values.types import (
    BOOL,
    BYTES,
    INT64,
    STRING,
)
from spanner_schema.syntax.postgres.reserved import QUOTED

Text = str | bytes
BLANKS = " "


def substring(value: str | bytes, start: int, length: int | None = None) -> str | bytes:
    """From a place that counts from 1, and may lie before the text."""
    if length is None:
        return value[max(start - 1, 0) :]
    if length < 0:
        raise out_of_range("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def left(value: str, count: int) -> str:
    """The first characters; all but the last ones where the count is negative."""
    return value[:count]


def right(value: str, count: int) -> str:
    """The last characters; all but the first ones where the count is negative."""
    if count == 0:
        return ""
    return value[-count:]


def pad(value: str, length: int, filling: str, *, before: bool) -> str:
    """A text of so many characters."""
    if length <= len(value):
        return value[: max(length, 0)]
    if not filling:
        return value
    missing = length - len(value)
    refuse_long("lpad and rpad", length)
    added = (filling * (missing // len(filling) + 1))[:missing]
    return added + value if before else value + added


def split_part(value: str, delimiter: str, place: int) -> str:
    """The part at a place, from the end where it is negative."""
    if place == 0:
        raise out_of_range("field position must not be zero")
    parts = value.split(delimiter) if delimiter else [value]
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def position(value: str | bytes, wanted: str | bytes) -> int:
    """Where a text begins in another, from 1; 0 where it does not."""
    return value.find(wanted) + 1  # type: ignore[arg-type]


def translate(value: str, old: str, new: str) -> str:
    """Characters for characters; what has none goes."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return value.translate(table)


def replace(value: str, old: str, new: str) -> str:
    """Nothing is replaced for an empty text."""
    if not old:
        return value
    grows = value.count(old) * (len(new) - len(old))
    refuse_long("replace", len(value) + max(grows, 0))
    return value.replace(old, new)


def repeat(value: str, count: int) -> str:
    """Nothing for a count that is not positive."""
    refuse_long("repeat", len(value) * count)
    return value * count


def chr_(code: int) -> str:
    """The character of a code point."""
    if code == 0:
        raise out_of_range("null character not permitted")
    try:
        return chr(code)
    except (ValueError, OverflowError) as error:
        raise out_of_range(f"requested character too large for encoding: {code}") from error


def encode(value: bytes, form: str) -> str:
    """bytea as text."""
    if form == "hex":
        return value.hex()
    if form == "base64":
        text = base64.b64encode(value).decode()
        return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    raise invalid_argument(f'unrecognized encoding: "{form}"')


def decode(text: str, form: str) -> bytes:
    """text as bytea."""
    try:
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise invalid_argument(f"invalid {form} data") from error
    raise invalid_argument(f'unrecognized encoding: "{form}"')


def quote_ident(name: str) -> str:
    """A name in quotes where it must be."""
    plain = re.match(r"[a-z_][a-z0-9_]*\Z", name) and name not in QUOTED
    return name if plain else '"' + name.replace('"', '""') + '"'


def concat_ws(separator: str | None, *values: str | None) -> str | None:
    """All that are not NULL, with a separator between."""
    if separator is None:
        return None
    return join_texts(separator, [value for value in values if value is not None])


def like(value: str, pattern: str) -> int:
    """LIKE: % is any characters, _ one, a backslash quotes the next."""
    if ends_in_backslash(pattern):
        raise invalid_argument("LIKE pattern must not end with escape character")
    return int(compile_like(pattern).matches(value))


def pad_left(value: str, length: int, filling: str = " ") -> str:
    """lpad."""
    return pad(value, length, filling, before=True)


def pad_right(value: str, length: int, filling: str = " ") -> str:
    """rpad."""
    return pad(value, length, filling, before=False)


def strip(value: Text, characters: Text = BLANKS) -> Text:
    """btrim, also of bytea."""
    return value.strip(characters) if characters else value  # type: ignore[arg-type]


def strip_left(value: str, characters: str = BLANKS) -> str:
    """ltrim."""
    return value.lstrip(characters) if characters else value


def strip_right(value: str, characters: str = BLANKS) -> str:
    """rtrim."""
    return value.rstrip(characters) if characters else value


def md5(value: Text) -> str:
    """md5, in hexadecimal digits."""
    return hashlib.md5(value.encode() if isinstance(value, str) else value).hexdigest()


def join(first: Text, second: Text) -> Text:
    """|| of two of one type, and textcat."""
    return first + second  # type: ignore[operator]


def add_texts(served: ServedFunctions) -> None:
    """Functions of text."""
    add = served.add
    add("LOWER", [STRING], STRING, str.lower)
    add("UPPER", [STRING], STRING, str.upper)
    add("LENGTH CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, len)
    add("LEFT", [STRING, INT64], STRING, left)
    add("RIGHT", [STRING, INT64], STRING, right)
    add("REPEAT", [STRING, INT64], STRING, repeat)
    add("LPAD", [STRING, INT64, STRING], STRING, pad_left, optional=1)
    add("RPAD", [STRING, INT64, STRING], STRING, pad_right, optional=1)
    add("BTRIM", [STRING, STRING], STRING, strip, optional=1)
    add("LTRIM", [STRING, STRING], STRING, strip_left, optional=1)
    add("RTRIM", [STRING, STRING], STRING, strip_right, optional=1)
    add("REPLACE", [STRING, STRING, STRING], STRING, replace)
    add("TRANSLATE", [STRING, STRING, STRING], STRING, translate)
    add("REVERSE", [STRING], STRING, lambda value: value[::-1])
    add("SPLIT_PART", [STRING, STRING, INT64], STRING, split_part)
    add("STARTS_WITH", [STRING, STRING], BOOL, lambda value, start: int(value.startswith(start)))
    add("LIKE", [STRING, STRING], BOOL, like)
    add("ASCII", [STRING], INT64, lambda value: ord(value[0]) if value else 0)
    add("CHR", [INT64], STRING, chr_)
    add("TO_HEX", [INT64], STRING, lambda value: f"{value & ((1 << 64) - 1):x}")
    add("QUOTE_IDENT", [STRING], STRING, quote_ident)


def add_bytes(served: ServedFunctions) -> None:
    """Functions of bytea, and of text and bytea alike."""
    add = served.add
    add("LENGTH", [BYTES], INT64, len)
    part = "pg_substring"
    for type_ in (STRING, BYTES):
        add("OCTET_LENGTH", [type_], INT64, size_in_bytes)
        add("SUBSTR SUBSTRING", [type_, INT64, INT64], type_, substring, function=part, optional=1)
        add("STRPOS POSITION", [type_, type_], INT64, position)
        add("MD5", [type_], STRING, md5)
    add("SHA256", [BYTES], BYTES, lambda value: hashlib.sha256(value).digest())
    add("SHA512", [BYTES], BYTES, lambda value: hashlib.sha512(value).digest())
    add("ENCODE", [BYTES, STRING], STRING, encode)
    add("DECODE", [STRING, STRING], BYTES, decode)
    add("BTRIM", [BYTES, BYTES], BYTES, strip)
    add("TEXTCAT", [STRING, STRING], STRING, join, function="pg_concat_bytea")


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add_texts(served)
    add_bytes(served)
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_concat": lambda *values: "".join(values),
    "pg_ilike": lambda value, pattern: like(value.lower(), pattern.lower()),
    **SERVED.at_run_time,
}
SEEING_NULL: dict[str, Callable[..., object]] = {
    "pg_concat_ws": concat_ws,
}
