"""Reads a text by the grammar, and by the rules that the grammar cannot say."""

from __future__ import annotations

from collections.abc import Collection

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.grammar.features import refuse_features
from emulator.sql.grammar.hints import check_hints
from emulator.sql.grammar.nodes import Tree
from emulator.sql.grammar.outline import FeatureError, parse
from emulator.sql.grammar.places import mark_place
from emulator.sql.grammar.rules import RULES
from emulator.sql.grammar.tokens import GrammarError
from emulator.sql.grammar.types import check_types


def read(sql: str, start: str, names: Collection[str] = (), locks: bool = True) -> Tree:
    """The tree of a text that is what ``start`` names in the grammar.

    ``names`` are the types of the proto bundle; ``locks`` allows FOR UPDATE.

    Raises INVALID_ARGUMENT ("Syntax error: ... [at line:column]") for what GoogleSQL's parser
    refuses, UNIMPLEMENTED for what it takes and this server lacks.
    """
    try:
        outline = parse(sql, start)
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
    return outline.tree


def syntax_error(sql: str, error: GrammarError) -> SpannerError:
    """The error with its place."""
    return errors.invalid_argument(f"Syntax error: {error.message} {mark_place(sql, error.offset)}")
