"""The strict grammar in front of sqlglot's parser, which takes much that is no GoogleSQL."""

from __future__ import annotations

from emulator import errors
from emulator.errors import SpannerError
from emulator.sql.grammar.features import FEATURES, refuse_features
from emulator.sql.grammar.outline import FeatureError, Outline, parse
from emulator.sql.grammar.places import mark_place
from emulator.sql.grammar.rules import RULES, WATCHED
from emulator.sql.grammar.tokens import GrammarError

EVERY_WATCHED = WATCHED | FEATURES.keys()


def check_statement(sql: str) -> Outline:
    """Parses one query or DML statement.

    Raises INVALID_ARGUMENT ("Syntax error: ... [at line:column]") for what GoogleSQL's parser
    refuses, UNIMPLEMENTED for what it takes and this server lacks.
    """
    return check(sql, "statement")


def check_expression(sql: str) -> Outline:
    """Parses a scalar expression of a schema; as ``check_statement``."""
    return check(sql, "expression")


def check(sql: str, start: str) -> Outline:
    """Parses a text that is what ``start`` names in the grammar."""
    try:
        outline = parse(sql, start, EVERY_WATCHED)
        for rule in RULES:
            rule(outline)
        refuse_features(outline)
    except GrammarError as error:
        raise syntax_error(sql, error) from error
    except FeatureError as error:
        raise errors.unimplemented(error.feature) from error
    return outline


def syntax_error(sql: str, error: GrammarError) -> SpannerError:
    """The error with its place."""
    return errors.invalid_argument(f"Syntax error: {error.message} {mark_place(sql, error.offset)}")
