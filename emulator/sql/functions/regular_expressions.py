"""REGEXP_CONTAINS, REGEXP_EXTRACT, REGEXP_EXTRACT_ALL and REGEXP_REPLACE of STRING and BYTES.

RE2 itself reads and runs them, as in Spanner: in time that is linear in the text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import re2

from emulator.errors import out_of_range
from emulator.limits import REGULAR_EXPRESSION_WORK_MAX, TEXT_FUNCTION_BYTES_MAX
from emulator.sql.functions.callers import check_caller
from emulator.sql.functions.served import ServedFunctions
from emulator.values import forms
from emulator.values.types import BOOL, BYTES, STRING, array

Text = str | bytes
GROUPS = re.compile(r"\\(.?)", re.DOTALL)
CONTINUATION = range(0x80, 0xC0)
"""The bytes of a character in UTF-8 behind its first."""


class Expression:
    """A regular expression. It reads bytes: those of UTF-8, or in BYTES each a character."""

    def __init__(self, pattern: Text) -> None:
        self._is_text = isinstance(pattern, str)
        options = re2.Options()
        options.log_errors = False
        if not self._is_text:
            options.encoding = re2.Options.Encoding.LATIN1
        try:
            self._compiled = re2.compile(self.encode(pattern), options)
        except re2.error as error:
            problem = error.args[0].decode(errors="replace")[:200]
            raise out_of_range(f"Cannot parse regular expression: {problem}") from error

    @property
    def groups(self) -> int:
        """How many groups capture."""
        count: int = self._compiled.groups
        return count

    def encode(self, value: Text) -> bytes:
        """The bytes of a value."""
        return value.encode() if isinstance(value, str) else value

    def decode(self, data: bytes) -> Text:
        """The value that bytes are."""
        return data.decode(errors="replace") if self._is_text else data

    def search(self, data: bytes, offset: int = 0) -> Any:
        """The first match at or behind an offset; None where there is none. Raises OUT_OF_RANGE
        where that would take too long, and once the caller has gone: many searches in one text may
        each read all that is left of it."""
        if (len(data) - offset) * self._compiled.programsize > REGULAR_EXPRESSION_WORK_MAX:
            raise out_of_range(
                f"A regular expression of {self._compiled.programsize} instructions is too large"
                f" for a value of {len(data)} bytes on this server"
            )
        check_caller()
        return self._compiled.search(data, offset)

    def pass_character(self, data: bytes, offset: int) -> int:
        """The offset behind the character at ``offset``."""
        offset += 1
        while self._is_text and offset < len(data) and data[offset] in CONTINUATION:
            offset += 1
        return offset


@functools.lru_cache(maxsize=1024)
def compile_expression(pattern: Text) -> Expression:
    """A pattern as RE2 reads it. Raises OUT_OF_RANGE."""
    return Expression(pattern)


def regexp_contains(value: Text, pattern: Text) -> int:
    """REGEXP_CONTAINS."""
    expression = compile_expression(pattern)
    return int(expression.search(expression.encode(value)) is not None)


def compile_extraction(pattern: Text) -> Expression:
    """A regular expression with at most one group."""
    expression = compile_expression(pattern)
    if expression.groups > 1:
        raise out_of_range(
            "Regular expressions passed into extraction functions must not have more"
            " than 1 capturing group"
        )
    return expression


def extract_each(value: Text, expression: Expression) -> Iterator[Text | None]:
    """The matches, or their only group, in order; none at the end of the text after another."""
    data, start = expression.encode(value), 0
    group = min(expression.groups, 1)
    while (match := expression.search(data, start)) is not None:
        part = match.group(group)
        yield None if part is None else expression.decode(part)
        start = match.end()
        if match.start() == start:
            start = expression.pass_character(data, start)
        if start >= len(data):
            return


def regexp_extract(value: Text, pattern: Text) -> Text | None:
    """REGEXP_EXTRACT: the first match, or its only group."""
    return next(extract_each(value, compile_extraction(pattern)), None)


def regexp_extract_all(value: Text, pattern: Text) -> str:
    """REGEXP_EXTRACT_ALL: a group that takes no part is an empty text."""
    empty = value[:0]
    texts = [
        forms.base64_text(m or empty) for m in extract_each(value, compile_extraction(pattern))
    ]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def regexp_replace(value: Text, pattern: Text, replacement: Text) -> Text:
    """REGEXP_REPLACE: \\1 names a group, \\0 the match."""
    expression = compile_expression(pattern)
    # In LATIN-1 each byte is a character, so that the bytes of any encoding stay as they are.
    text = expression.encode(replacement).decode("latin-1")
    check_replacement(text, expression.groups)

    def expand(match: Any) -> bytes:
        def put(name: re.Match[str]) -> str:
            part: bytes = b"\\" if name[1] == "\\" else match.group(int(name[1])) or b""
            return part.decode("latin-1")

        return GROUPS.sub(put, text).encode("latin-1")

    result = expression.decode(replace_matches(expression.encode(value), expression, expand))
    if len(result) > TEXT_FUNCTION_BYTES_MAX:
        raise out_of_range("REGEXP_REPLACE: exceeded maximum output length")
    return result


def check_replacement(text: str, groups: int) -> None:
    """Raises OUT_OF_RANGE unless every backslash names a group, or another backslash. A character
    of the text is a byte."""
    for name in GROUPS.findall(text):
        if name != "\\" and not (name.isascii() and name.isdigit() and int(name) <= groups):
            shown = text.encode("latin-1").decode(errors="replace")[:100]
            raise out_of_range(f"Invalid REGEXP_REPLACE pattern: {shown}")


def replace_matches(data: bytes, expression: Expression, expand: Callable[[Any], bytes]) -> bytes:
    """The text with every match replaced; an empty match just behind another is none."""
    pieces, offset, last = [], 0, -1
    while (match := expression.search(data, offset)) is not None:
        pieces.append(data[offset : match.start()])
        offset = match.end()
        if match.end() > match.start() or match.start() != last:
            pieces.append(expand(match))
        last = match.end()
        if match.end() == match.start():
            after = expression.pass_character(data, offset)
            pieces.append(data[offset:after])
            offset = after
        if offset > len(data):
            break
    pieces.append(data[offset:])
    return b"".join(pieces)


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    for text in (STRING, BYTES):
        add("REGEXP_CONTAINS", [text, text], BOOL, regexp_contains)
        add("REGEXP_EXTRACT REGEXP_SUBSTR", [text, text], text, regexp_extract)
        add("REGEXP_EXTRACT_ALL", [text, text], array(text), regexp_extract_all)
        add("REGEXP_REPLACE", [text, text, text], text, regexp_replace)
    return served


SERVED = build_served()
FUNCTIONS = SERVED.at_run_time
