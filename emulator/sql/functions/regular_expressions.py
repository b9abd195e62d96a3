"""REGEXP_CONTAINS, REGEXP_EXTRACT, REGEXP_EXTRACT_ALL and REGEXP_REPLACE of STRING and BYTES."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from emulator.errors import out_of_range
from emulator.limits import TEXT_FUNCTION_BYTES_MAX
from emulator.sql.functions.re2_syntax import Translator, refuse
from emulator.values import forms

Text = str | bytes
GROUPS = re.compile(r"\\(.?)", re.DOTALL)


@functools.lru_cache(maxsize=1024)
def regular_expression(pattern: Text) -> re.Pattern[Any]:
    """A regular expression of RE2; of BYTES, a character is a byte."""
    octets = isinstance(pattern, bytes)
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    try:
        translated = Translator(text, octets=octets).translate()
        return re.compile(translated.encode("latin-1") if octets else translated)
    except RecursionError as error:
        raise refuse(str(text), "expression nests too deeply") from error
    except (re.error, OverflowError) as error:
        raise out_of_range(f"Cannot parse regular expression: {error}") from error


def extraction_pattern(pattern: Text) -> re.Pattern[Any]:
    """A regular expression with at most one group."""
    compiled = regular_expression(pattern)
    if compiled.groups > 1:
        raise out_of_range(
            "Regular expressions passed into extraction functions must not have more"
            " than 1 capturing group"
        )
    return compiled


def extract_each(value: Text, compiled: re.Pattern[Any]) -> Iterator[Text | None]:
    """The matches, or their only group, in order; none at the end of the text after another."""
    start = 0
    group = 1 if compiled.groups else 0
    while (match := compiled.search(value, start)) is not None:
        yield match.group(group)
        start = match.end() + (match.end() == match.start())
        if start >= len(value):
            return


def regexp_extract(value: Text, pattern: Text) -> Text | None:
    """REGEXP_EXTRACT: the first match, or its only group."""
    return next(extract_each(value, extraction_pattern(pattern)), None)


def regexp_extract_all(value: Text, pattern: Text) -> str:
    """REGEXP_EXTRACT_ALL: a group that takes no part is an empty text."""
    empty = value[:0]
    texts = [
        forms.base64_text(m or empty) for m in extract_each(value, extraction_pattern(pattern))
    ]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def regexp_replace(value: Text, pattern: Text, replacement: Text) -> Text:
    """REGEXP_REPLACE: \\1 names a group, \\0 the match."""
    compiled = regular_expression(pattern)
    text = replacement if isinstance(replacement, str) else replacement.decode("latin-1")
    check_replacement(text, compiled.groups)

    def expand(match: re.Match[Any]) -> Text:
        def put(name: re.Match[str]) -> str:
            group = "\\" if name[1] == "\\" else match.group(int(name[1])) or ""
            return group if isinstance(group, str) else group.decode("latin-1")

        whole = GROUPS.sub(put, text)
        return whole if isinstance(value, str) else whole.encode("latin-1")

    result: Text = replace_matches(value, compiled, expand)
    if len(result) > TEXT_FUNCTION_BYTES_MAX:
        raise out_of_range("REGEXP_REPLACE: exceeded maximum output length")
    return result


def check_replacement(text: str, groups: int) -> None:
    """Raises OUT_OF_RANGE unless every backslash names a group, or another backslash."""
    for name in GROUPS.findall(text):
        if name != "\\" and not (name.isascii() and name.isdigit() and int(name) <= groups):
            raise out_of_range(f"Invalid REGEXP_REPLACE pattern: {text[:100]}")


def replace_matches(
    value: Any, compiled: re.Pattern[Any], expand: Callable[[re.Match[Any]], Text]
) -> Any:
    """The text with every match replaced; an empty match just behind another is none."""
    pieces, place, last = [], 0, -1
    while (match := compiled.search(value, place)) is not None:
        pieces.append(value[place : match.start()])
        place = match.end()
        if match.end() > match.start():
            pieces.append(expand(match))
        else:
            if match.start() != last:
                pieces.append(expand(match))
            pieces.append(value[place : place + 1])
            place += 1
        last = match.end()
        if place > len(value):
            break
    pieces.append(value[place:])
    return value[:0].join(pieces)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_regexp_contains": lambda v, p: int(regular_expression(p).search(v) is not None),
    "fn_regexp_extract": regexp_extract,
    "fn_regexp_extract_all": regexp_extract_all,
    "fn_regexp_replace": regexp_replace,
}
