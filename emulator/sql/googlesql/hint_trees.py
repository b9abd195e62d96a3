"""Hints of statements and of tables: those of other places are checked, and change nothing here."""

from __future__ import annotations

from emulator.sql.googlesql.trees import unread
from emulator.sql.grammar.hints import read_entries
from emulator.sql.grammar.nodes import Node
from emulator.sql.parsed import Hints


def read_hints(node: Node) -> Hints:
    """The hints of a node but those for other engines: names in capitals, values as written."""
    hint = node.node("hint")
    if hint is None:
        return {}
    if hint.has("INTEGER"):
        raise unread("A hint that is a number")
    return {".".join(names): value for names, value in read_entries(hint)}
