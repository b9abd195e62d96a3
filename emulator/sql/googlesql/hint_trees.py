"""Hints of statements and of tables: those of other places are checked, and change nothing here."""

from __future__ import annotations

from emulator.sql.googlesql.trees import unread
from emulator.sql.grammar.hints import ENGINE
from emulator.sql.grammar.literals import read_name
from emulator.sql.grammar.nodes import Node, Tree, leaves
from emulator.sql.parsed import Hints


def read_hints(node: Node) -> Hints:
    """The hints of a node but those for other engines: names in capitals, values as written."""
    hint = node.node("hint")
    if hint is None:
        return {}
    body = hint.node("hint_body")
    if body is None or hint.has("INTEGER"):
        raise unread("A hint that is a number")
    hints: Hints = {}
    for entry in body.list("hint_entry"):
        assert isinstance(entry, Node)
        names = [spell_hint(each) for each in entry.list("hint_name")]
        if len(names) == 2 and names[0] != ENGINE:
            continue
        value = entry.get("expression")
        hints[".".join(names)] = "".join(leaf.text for leaf in leaves(value))
    return hints


def spell_hint(name: Tree) -> str:
    """The name of a hint, which may be a reserved word, in capitals."""
    return "".join(read_name(leaf.text) for leaf in leaves(name)).upper()
