"""The strict grammar in front of sqlglot's parser, which takes much that is no GoogleSQL."""

from __future__ import annotations

from collections.abc import Collection

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.grammar.features import FEATURES, REFUSED, TYPED_ROWS, refuse_features
from emulator.sql.grammar.hints import check_hints
from emulator.sql.grammar.outline import FeatureError, parse
from emulator.sql.grammar.pipe_parts import PIPED
from emulator.sql.grammar.pipe_parts import WATCHED as PIPES
from emulator.sql.grammar.places import mark_place
from emulator.sql.grammar.rewrites import REWRITTEN, rewrite
from emulator.sql.grammar.rules import RULES, WATCHED
from emulator.sql.grammar.tokens import GrammarError
from emulator.sql.grammar.types import check_types

EVERY_WATCHED = frozenset(
    {*WATCHED, *FEATURES, *REFUSED, *REWRITTEN, TYPED_ROWS, PIPED, "hint_entry", "type"}
)


def read_statement(sql: str, names: Collection[str] = ()) -> str:
    """One query or DML statement, in the words that sqlglot's parser knows.

    ``names`` are the types of the proto bundle.

    Raises INVALID_ARGUMENT ("Syntax error: ... [at line:column]") for what GoogleSQL's parser
    refuses, UNIMPLEMENTED for what it takes and this server lacks.
    """
    return read(sql, "statement", names)


def read_view_query(sql: str, names: Collection[str] = ()) -> str:
    """The query of a view, which locks nothing; as ``read_statement``."""
    return read(sql, "statement", names, locks=False)


def read_expression(sql: str, names: Collection[str] = ()) -> str:
    """A scalar expression of a schema; as ``read_statement``."""
    return read(sql, "expression", names)


def read(sql: str, start: str, names: Collection[str], locks: bool = True) -> str:
    """Parses a text that is what ``start`` names in the grammar; ``locks`` allows FOR UPDATE."""
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
    return rewrite(sql, outline)


def syntax_error(sql: str, error: GrammarError) -> SpannerError:
    """The error with its place."""
    return errors.invalid_argument(f"Syntax error: {error.message} {mark_place(sql, error.offset)}")
