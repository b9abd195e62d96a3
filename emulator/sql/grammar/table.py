"""The parse table of the grammar, read once from the file that generate.py makes."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

GRAMMAR_PATH = Path(__file__).with_name("googlesql.lark")
TABLE_PATH = Path(__file__).with_name("googlesql.table.gz")
STARTS = ("statement", "expression")
END = "$END"
"""The terminal after the last token."""
PASSED = frozenset({"expression", "identifier", "path"})
"""What is no node of its own where it has one part."""
NODES = frozenset(
    {
        *(
            "_or",
            "_and",
            "_not",
            "_comparison",
            "_bit_or",
            "_bit_xor",
            "_bit_and",
            "_shift",
            "_sum",
        ),
        *("_concatenation", "_product", "_unary", "_subquery", "_table", "_value_operand"),
    }
)
"""What is a node where it has several parts, although its name begins with an underscore."""


class Form(Enum):
    """What a reduction makes of its parts: a node, parts of the node around it, or, where there is
    one part, that part, under the name of the rule or under its own."""

    NODE = 1
    SPLICED = 2
    RENAMED = 3
    PASSED = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """``length`` is the number of ``symbols``; a reduction replaces them by ``origin``."""

    origin: str
    symbols: tuple[str, ...]
    length: int
    form: Form


def make_rule(origin: str, symbols: list[str]) -> Rule:
    """A rule as the table's file has it."""
    hidden = origin.startswith("_")
    if len(symbols) == 1 and (hidden or origin in PASSED):
        form = Form.PASSED if hidden else Form.RENAMED
    else:
        form = Form.SPLICED if hidden and origin not in NODES else Form.NODE
    return Rule(origin, tuple(symbols), len(symbols), form)


Climb = tuple[int, str]
"""The state after reductions of one part to one part, and the new name of the part, if any."""


@dataclass(frozen=True, slots=True)
class Table:
    """An LALR(1) table.

    ``states`` gives for each state what a terminal or the origin of a rule leads to: the number of
    the next state, or -1 minus the number of a rule to reduce. ``names`` are the terminals of
    keywords and symbols by their text, ``texts`` the other way round.
    """

    states: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    starts: dict[str, int]
    ends: dict[str, int]
    names: dict[str, str]
    texts: dict[str, str]
    terminals: frozenset[str]
    climbs: dict[tuple[int, int, str], Climb] = field(default_factory=dict)
    """What the parser has worked out of the table: by the state below, its own, and a terminal."""


def hash_grammar(text: str) -> str:
    """The digest by which a table says which grammar it is of."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_table_file() -> dict[str, Any]:
    """The table as plain values, as generate.py makes them."""
    data: dict[str, Any] = json.loads(gzip.decompress(TABLE_PATH.read_bytes()))
    return data


@lru_cache(maxsize=1)
def read_table() -> Table:
    """The table of the package."""
    data = read_table_file()
    rules = tuple(make_rule(origin, symbols) for origin, symbols in data["rules"])
    symbols = {symbol for state in data["states"] for symbol in state}
    return Table(
        tuple(data["states"]),
        rules,
        data["starts"],
        data["ends"],
        {text: name for name, text in data["texts"].items()},
        data["texts"],
        frozenset(symbols - {rule.origin for rule in rules}),
    )
