"""Regular expressions of the PostgreSQL dialect. RE2 runs them: in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from emulator.errors import invalid_argument
from emulator.sql.functions.arrays import array
from emulator.sql.functions.regular_expressions import Expression, compile_expression
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.text_sizes import refuse_long
from emulator.values.types import STRING
from emulator.values.types import array as array_of

FLAGS = {"i": "i", "c": "", "s": "s", "g": "", "n": "", "m": "", "p": "", "w": "", "t": "", "e": ""}
REFERENCE = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = (("\\y", "\\b"), ("\\Z", "\\z"))
"""What PostgreSQL writes otherwise than RE2."""


def expression(pattern: str, flags: str = "") -> Expression:
    """A pattern; a point stands for a line's end, too. Raises for a flag that there is not."""
    inline = "s"
    for flag in flags:
        if flag not in FLAGS:
            raise invalid_argument(f'invalid regular expression option: "{flag}"')
        if flag in {"i", "c"}:
            inline = inline.replace("i", "") + FLAGS[flag]
        if flag in {"n", "m"}:
            inline = inline.replace("s", "") + "m"
    for written, known in ESCAPES:
        pattern = pattern.replace(written, known)
    return compile_expression(f"(?{inline}){pattern}")


def matches(text: str, pattern: str, flags: str = "") -> int:
    """~ and ~*."""
    return int(expression(pattern, flags).search(text.encode()) is not None)


def regexp_match(text: str, pattern: str, flags: str = "") -> str | None:
    """regexp_match: the groups of the first match, or all of it."""
    if "g" in flags:
        raise invalid_argument('regexp_match() does not support the "global" option')
    found = expression(pattern, flags).search(text.encode())
    return None if found is None else array(*groups_of(found))


def groups_of(found: Any) -> list[str | None]:
    """The groups of a match, or all of it."""
    groups = found.groups() or (found.group(0),)
    return [None if group is None else group.decode() for group in groups]


def substring(text: str, pattern: str) -> str | None:
    """substring(text from pattern): the first group, or all of the match."""
    found = expression(pattern).search(text.encode())
    return None if found is None else groups_of(found)[0]


def spans(compiled: Expression, data: bytes) -> Iterator[Any]:
    """The matches one after another; an empty one does not follow another's end."""
    place, last = 0, -1
    while place <= len(data):
        found = compiled.search(data, place)
        if found is None:
            return
        start, end = found.span()
        if start == end == last:
            place = compiled.pass_character(data, place)
            continue
        yield found
        last = end
        place = end if end > start else compiled.pass_character(data, end)


def replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    """regexp_replace: the first match, or with g all of them."""
    compiled, data = expression(pattern, flags), text.encode()
    out, place, size = [], 0, len(data)
    for found in spans(compiled, data):
        start, end = found.span()
        filled = fill(replacement, found)
        size += len(filled)
        refuse_long("regexp_replace", size)
        out += [data[place:start].decode(), filled]
        place = end
        if "g" not in flags:
            break
    return "".join(out) + data[place:].decode()


def fill(replacement: str, found: Any) -> str:
    """A replacement with the groups of a match: backslash and a digit, or & for all of it."""

    def group(match: re.Match[str]) -> str:
        sign = match[1]
        if sign == "&":
            return str(found.group(0).decode())
        if sign.isdigit():
            number = int(sign)
            part = found.group(number) if number <= len(found.groups()) else None
            return "" if part is None else str(part.decode())
        return "\\" if sign == "\\" else f"\\{sign}"

    return REFERENCE.sub(group, replacement)


def split(text: str, pattern: str, flags: str = "") -> str:
    """regexp_split_to_array."""
    if "g" in flags:
        raise invalid_argument('regexp_split_to_array() does not support the "global" option')
    compiled, data = expression(pattern, flags), text.encode()
    parts, place = [], 0
    for found in spans(compiled, data):
        start, end = found.span()
        # An empty match divides characters, and not the ends of the text.
        if start == end and start in (place, len(data)):
            continue
        parts.append(data[place:start].decode())
        place = end
    return array(*parts, data[place:].decode())


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("pg_")
    add = served.add

    texts = [STRING, STRING, STRING]
    add("REGEXP_MATCH", texts, array_of(STRING), regexp_match, optional=1)
    add("REGEXP_SPLIT_TO_ARRAY", texts, array_of(STRING), split, optional=1)
    add("REGEXP_REPLACE", [*texts, STRING], STRING, replace, optional=1)
    add("SUBSTRING", [STRING, STRING], STRING, substring, function="pg_regexp_substring")
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "pg_regexp_matches": matches,
    **SERVED.at_run_time,
}
