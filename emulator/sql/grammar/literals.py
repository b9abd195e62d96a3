"""String literals, bytes literals and quoted names: their escapes, and what they mean."""

from __future__ import annotations

import re

ESCAPES = re.compile(
    r"\\(?:[abfnrtv\\?\"'`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
PREFIX = re.compile(r"(?i)[rb]{0,2}")
SURROGATES = range(0xD800, 0xE000)
LAST_CHARACTER = 0x10FFFF
SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def find_wrong_escape(text: str) -> tuple[int, str] | None:
    """The place and the sentence of the first escape that a literal cannot hold; None if all can.

    ``text`` is a literal or a quoted name as written.
    """
    match = PREFIX.match(text)
    prefix = match.group().lower() if match else ""
    if "r" in prefix or "\\" not in text:
        return None
    offset = text.find("\\")
    while offset >= 0:
        escape = ESCAPES.match(text, offset)
        if escape is None:
            return offset, describe_wrong_escape(text, offset)
        code = escape["short"] or escape["long"]
        if code and ("b" in prefix or not is_character(int(code, 16))):
            return offset, describe_code(escape.group(), "b" in prefix)
        offset = text.find("\\", escape.end())
    return None


def is_character(code: int) -> bool:
    """Whether a number is a code point that UTF-8 can hold."""
    return code <= LAST_CHARACTER and code not in SURROGATES


def describe_code(escape: str, in_bytes: bool) -> str:
    """Why a \\u or \\U is refused."""
    if in_bytes:
        return f"Illegal escape sequence: Unicode escape sequence {escape} cannot be used in bytes"
    return f"Illegal escape sequence: Unicode value of {escape} is invalid"


def describe_wrong_escape(text: str, offset: int) -> str:
    """Why an escape is refused, in GoogleSQL's words."""
    letter = text[offset + 1 : offset + 2]
    if letter in {"\n", "\r"}:
        return "Illegal escaped newline"
    if letter in {"x", "X"}:
        return "Illegal escape sequence: hex escape must be followed by 2 hex digits"
    if letter in {"u", "U"}:
        digits = 4 if letter == "u" else 8
        return f"Illegal escape sequence: \\{letter} must be followed by {digits} hex digits"
    if letter.isdigit():
        return "Illegal escape sequence: octal escape must be followed by 3 octal digits"
    return f"Illegal escape sequence: \\{letter}"


def read_text(written: str) -> str:
    """The value of a string literal, whose escapes are right."""
    prefix, inside = split_literal(written)
    return inside if "r" in prefix else ESCAPES.sub(lambda each: undo_escape(each[0]), inside)


def read_bytes(written: str) -> bytes:
    """The value of a bytes literal; characters that are no escapes are their UTF-8."""
    prefix, inside = split_literal(written)
    if "r" in prefix:
        return inside.encode()
    parts, end = bytearray(), 0
    for each in ESCAPES.finditer(inside):
        parts += inside[end : each.start()].encode()
        parts.append(ord(undo_escape(each[0])))
        end = each.end()
    return bytes(parts + inside[end:].encode())


def read_name(written: str) -> str:
    """A name without its backquotes."""
    if not written.startswith("`"):
        return written
    return ESCAPES.sub(lambda each: undo_escape(each[0]), written[1:-1])


def split_literal(written: str) -> tuple[str, str]:
    """The letters before the quotes, and what is between these. Line ends are \\n."""
    match = PREFIX.match(written)
    prefix = match.group() if match else ""
    quoted = written[len(prefix) :]
    width = 3 if quoted[:3] in {"'''", '"""'} else 1
    inside = quoted[width:-width]
    if width == 3:
        inside = inside.replace("\r\n", "\n").replace("\r", "\n")
    return prefix.lower(), inside


def undo_escape(escape: str) -> str:
    """The character of an escape."""
    letter = escape[1]
    if letter in "xXuU":
        return chr(int(escape[2:], 16))
    if letter.isdigit():
        return chr(int(escape[1:], 8))
    return SIMPLE_ESCAPES.get(letter, letter)
