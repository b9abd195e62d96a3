"""Long lists of literals, as in ``k IN (1, 2, ... 10000)``: taken out of a statement as values.

A list is the same as an array that is one value, and a statement with a value in its place is
parsed and compiled in no time. Each list becomes a parameter that no statement can name otherwise;
what is left in its place is as long as the list, so that lines and columns stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from emulator.limits import IN_ITEMS_MAX
from emulator.values.types import INT64, STRING
from spanner_schema.model.column_types import Type

LENGTH_MIN = 100
NAME = "long_list_"
"""How the parameters are called, with a number behind."""

INTEGER = r"[+-]?[0-9]{1,18}"
TEXT = r"'[^'\\\n\0]*'"


def listed(item: str) -> str:
    """The pattern of a long list of items."""
    return rf"\s*{item}(?:\s*+,\s*+{item}){{{LENGTH_MIN - 1},}}+\s*+"


PIECES = re.compile(
    rf"(?P<in>\bIN\s*)\((?:(?P<ints>{listed(INTEGER)})|(?P<texts>{listed(TEXT)}))\)"
    rf"|(?P<array>[(,]\s*)\[(?:(?P<items>{listed(INTEGER)})|(?P<words>{listed(TEXT)}))\]"
    r"|'''(?:.*?'''|.*)|\"\"\"(?:.*?\"\"\"|.*)|'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?"
    r"|`[^`]*+`?|--[^\n]*|#[^\n]*|/\*(?:.*?\*/|.*)|\w+|.",
    re.IGNORECASE | re.DOTALL,
)
"""A long list, or what is passed over as a whole: quoted text, comments, words. What has no end
takes all that is left: it is a syntax error."""


@dataclass(frozen=True, slots=True)
class FoldedStatement:
    """A statement, and its long lists by the names of the parameters that stand for them.

    Each list is the JSON of an array, with the type of its elements.
    """

    text: str
    lists: Mapping[str, tuple[str, Type]] = field(default_factory=dict)


def fold_long_lists(sql: str) -> FoldedStatement:
    """Takes the long lists of integers and of simple strings out of a statement."""
    if sql.count(",") < LENGTH_MIN or NAME in sql:
        return FoldedStatement(sql)
    lists: dict[str, tuple[str, Type]] = {}
    parts: list[str] = []
    for match in PIECES.finditer(sql):
        kept = match["in"] or match["array"]
        if kept is None or (match["in"] and match[0].count(",") >= IN_ITEMS_MAX):
            parts.append(match[0])
            continue
        name = f"{NAME}{len(lists)}"
        lists[name] = read_list(match)
        shown = f"UNNEST(@{name})" if match["in"] else f"@{name}"
        parts.append(kept + pad(shown, match[0][len(kept) :]))
    return FoldedStatement("".join(parts), lists)


def read_list(match: re.Match[str]) -> tuple[str, Type]:
    """The items of a list as JSON, and their type."""
    integers = match["ints"] or match["items"]
    if integers is not None:
        return json.dumps([int(item) for item in integers.split(",")]), INT64
    texts = re.findall(TEXT, match["texts"] or match["words"])
    return json.dumps([text[1:-1] for text in texts], ensure_ascii=False), STRING


def pad(shown: str, replaced: str) -> str:
    """A text with blanks behind, so that what follows keeps its line and column."""
    lines = replaced.split("\n")
    if len(lines) == 1:
        return shown.ljust(len(replaced))
    return shown + "\n" * (len(lines) - 1) + " " * len(lines[-1])
