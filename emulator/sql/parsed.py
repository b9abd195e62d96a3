"""A statement as a tree, whichever dialect it was written in, and the names that its nodes use."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

HINTS = "spanner_hints"
"""Key in ``Table.meta``: a dict of table hints, names in capitals, values as written."""
TYPED_LITERAL = "spanner_literal"
"""Key in ``Cast.meta``: what is cast is a literal with its type before it, as DATE '...'."""
TYPED_CONSTRUCTOR = "spanner_constructor"
"""Key in ``Cast.meta``: it is ARRAY<T>[...] or STRUCT<T>(...)."""
PLUS_FUNCTION = "$PLUS"
"""The function that stands for + before an operand: no statement can name it otherwise."""
WITH_FUNCTION = "$WITH"
"""The function that stands for WITH(name AS value, ..., result)."""
NEW_FUNCTION = "$NEW"
"""The function that stands for NEW; its first argument is the name of the type."""

Hints = dict[str, str]


@dataclass(frozen=True, slots=True)
class ConflictClause:
    """ON CONFLICT: ``columns`` or a ``constraint`` say which one; ``update`` is an UPDATE of a
    table without a name, or None where nothing is done."""

    columns: tuple[str, ...] = ()
    constraint: str = ""
    update: exp.Update | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and the clauses that its tree has no place for.

    ``conflict`` is "" (plain INSERT), "update" or "ignore". ``returning`` is None where THEN RETURN
    is missing; ``action`` is the name of its column WITH ACTION. ``keyword_hints`` are those behind
    a keyword or a call, which stands with them. ``asserted_rows`` is the number of
    ASSERT_ROWS_MODIFIED.
    """

    tree: exp.Expr
    conflict: str = ""
    returning: tuple[exp.Expr, ...] | None = None
    hints: Hints = field(default_factory=dict)
    action: str | None = None
    on_conflict: ConflictClause | None = None
    keyword_hints: list[tuple[str, Hints]] = field(default_factory=list)
    asserted_rows: int | None = None
