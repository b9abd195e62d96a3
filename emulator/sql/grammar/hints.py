"""Which hints Spanner knows in which place of a statement."""

from __future__ import annotations

from emulator import errors
from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.parser import Reduction

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
    entries = outline.find("hint_entry")
    for part in outline.find(*HINTS):
        if "hint" not in part.rule.symbols:
            continue
        place = part.rule.symbols.index("hint")
        start = part.starts[place]
        end = part.starts[place + 1] if place + 1 < len(part.starts) else part.end
        for entry in entries:
            if start <= entry.starts[0] < end:
                check_entry(outline, entry, HINTS[part.rule.origin])


def check_entry(outline: Outline, entry: Reduction, known: set[str]) -> None:
    """Checks one hint; those of other engines are passed over."""
    names = [
        outline.tokens[start].text.strip("`").upper()
        for start, symbol in zip(entry.starts, entry.rule.symbols, strict=True)
        if symbol == "hint_name"
    ]
    if (len(names) == 1 or names[0] == ENGINE) and names[-1] not in known:
        raise errors.invalid_argument(f"Unsupported hint: {names[-1]}.")
