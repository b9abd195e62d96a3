"""LIKE of both dialects, in time that is linear in the text: % any characters, _ one, a backslash
quotes the next character."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from emulator.errors import out_of_range
from emulator.limits import LIKE_WORK_MAX
from emulator.sql.functions.regular_expressions import Expression

Text = str | bytes
TOKEN = re.compile(r"\\(.)|([%_])|([^%_\\]+)", re.DOTALL)
WRITTEN = {"%": ".*", "_": "."}


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern: the literal texts between its %, or with _ a regular expression of RE2's."""

    parts: tuple[Text, ...]
    size: int
    expression: Expression | None = None

    def matches(self, value: Text) -> bool:
        """Whether a whole value fits. Raises OUT_OF_RANGE where that would take too long."""
        if self.expression is None:
            return fits_parts(value, self.parts)
        if len(value) * self.size > LIKE_WORK_MAX:
            raise out_of_range(
                f"LIKE of a value of {len(value)} characters and a pattern with _ of {self.size} is"
                " too large for this server"
            )
        return self.expression.search(self.expression.encode(value)) is not None


def fits_parts(value: Text, parts: tuple[Text, ...]) -> bool:
    """Whether a value is the parts, with anything between them: each where it comes first."""
    first, *others = parts
    if not others:
        return value == first
    *middle, last = others
    if not value.startswith(first) or not value.endswith(last):  # type: ignore[arg-type]
        return False
    place, end = len(first), len(value) - len(last)
    for part in middle:
        found = value.find(part, place, end)  # type: ignore[arg-type]
        if found < 0:
            return False
        place = found + len(part)
    return place <= end


def ends_in_backslash(pattern: str) -> bool:
    """Whether a backslash at the end quotes nothing."""
    return bool((len(pattern) - len(pattern.rstrip("\\"))) % 2)


@functools.lru_cache(maxsize=1024)
def compile_like(pattern: Text) -> LikePattern:
    """A pattern that does not end in a backslash that quotes nothing. Raises OUT_OF_RANGE for one
    that is too large."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    tokens = [(sign, quoted or plain or "") for quoted, sign, plain in TOKEN.findall(text)]
    if any(sign == "_" for sign, _ in tokens):
        written = "".join(WRITTEN.get(sign) or re.escape(literal) for sign, literal in tokens)
        expression = rf"(?s)\A(?:{written})\z"
        encoded = expression if isinstance(pattern, str) else expression.encode("latin-1")
        return LikePattern((), len(text), Expression(encoded))
    parts = [""]
    for sign, literal in tokens:
        if sign:
            parts.append("")
        else:
            parts[-1] += literal
    typed = parts if isinstance(pattern, str) else [part.encode("latin-1") for part in parts]
    return LikePattern(tuple(typed), len(text))
