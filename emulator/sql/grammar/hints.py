"""Which hints Spanner knows in which place of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from emulator import errors
from emulator.sql.grammar.nodes import Node, leaves, spell_path
from emulator.sql.grammar.outline import Outline

JOIN_HINTS = {
    *("FORCE_JOIN_ORDER", "JOIN_METHOD", "JOIN_TYPE", "HASH_JOIN_BUILD_SIDE", "BATCH_MODE"),
    *("HASH_JOIN_EXECUTION", "FACTORIZED_MODE"),
}
HINTS = {
    "aggregate_group": {"GROUP_METHOD", "GROUP_TYPE"},
    "call": {"DISABLE_INLINE"},
    "exists": JOIN_HINTS,
    "from_items": JOIN_HINTS,
    "group_by": {"GROUP_METHOD", "GROUP_TYPE"},
    "in": JOIN_HINTS,
    "join": JOIN_HINTS,
    "order_by": set[str](),
    "partition_by": set[str](),
    "pipe_group": {"GROUP_METHOD", "GROUP_TYPE"},
    "pipe_join": JOIN_HINTS,
    "pipe_select": set[str](),
    "select": set[str](),
    "set_operator": set[str](),
    "table_function": set[str](),
}
"""https://cloud.google.com/spanner/docs/reference/standard-sql/query-syntax; those of statements
and tables are checked where they are read."""

ENGINE = "SPANNER"


def check_hints(outline: Outline) -> None:
    """Raises INVALID_ARGUMENT for a hint for Spanner that Spanner does not know."""
    for node in outline.find(*HINTS):
        for hint in node.nodes("hint"):
            for names, _ in read_entries(hint):
                if names[-1] not in HINTS[node.rule]:
                    raise errors.invalid_argument(f"Unsupported hint: {names[-1]}.")


def read_entries(hint: Node) -> Iterator[tuple[list[str], str]]:
    """The hints for Spanner: the parts of their names, in capitals, and their values as written.

    Those for other engines are passed over.
    """
    body = hint.node("hint_body")
    for entry in body.nodes("hint_entry") if body is not None else ():
        names = [spell_path(each).upper() for each in entry.trees("hint_name")]
        if len(names) == 1 or names[0] == ENGINE:
            yield names, "".join(leaf.text for leaf in leaves(entry.get("expression")))
