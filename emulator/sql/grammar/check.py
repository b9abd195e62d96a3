"""Reads a text by the grammar, and by the rules that the grammar cannot say."""

from __future__ import annotations

from collections.abc import Collection

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.grammar.features import FEATURES, REFUSED, TYPED_ROWS, refuse_features
from emulator.sql.grammar.hints import HINTS, check_hints
from emulator.sql.grammar.nodes import Tree
from emulator.sql.grammar.outline import FeatureError, Outline, parse
from emulator.sql.grammar.pipe_parts import PIPED
from emulator.sql.grammar.pipe_parts import WATCHED as PIPES
from emulator.sql.grammar.pipes import Writer
from emulator.sql.grammar.places import mark_place
from emulator.sql.grammar.rules import RULES, WATCHED
from emulator.sql.grammar.tokens import GrammarError
from emulator.sql.grammar.types import check_types

EVERY_WATCHED = frozenset(
    {*WATCHED, *FEATURES, *REFUSED, *HINTS, TYPED_ROWS, PIPED, "hint_entry", "type", "lock_mode"}
)


def read(sql: str, start: str, names: Collection[str] = (), locks: bool = True) -> Tree:
    """The tree of a text that is what ``start`` names in the grammar, in standard syntax.

    ``names`` are the types of the proto bundle; ``locks`` allows FOR UPDATE.

    Raises INVALID_ARGUMENT ("Syntax error: ... [at line:column]") for what GoogleSQL's parser
    refuses, UNIMPLEMENTED for what it takes and this server lacks.
    """
    outline = check(sql, start, names, locks)
    if outline.find(PIPED):
        outline = parse(Writer(sql, outline).write(), start, EVERY_WATCHED)
    return outline.tree


def check(sql: str, start: str, names: Collection[str], locks: bool) -> Outline:
    """Parses a text and checks what its grammar does not say; as ``read``."""
    try:
        outline = parse(sql, start, EVERY_WATCHED)
        if outline.find(PIPED):
            outline = parse(sql, start, EVERY_WATCHED | PIPES)
        for rule in RULES:
            rule(outline)
        refuse_features(outline)
    except GrammarError as error:
        raise syntax_error(sql, error) from error
    except FeatureError as error:
        raise errors.unimplemented(error.feature) from error
    if not locks and outline.find("lock_mode"):
        raise errors.invalid_argument("Unexpected lock mode in query")
    check_hints(outline)
    check_types(outline, names)
    return outline


def syntax_error(sql: str, error: GrammarError) -> SpannerError:
    """The error with its place."""
    return errors.invalid_argument(f"Syntax error: {error.message} {mark_place(sql, error.offset)}")
