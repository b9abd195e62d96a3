"""Expressions of a schema as trees, in the dialect of the schema."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.grammar.check import read_expression
from emulator.sql.postgres import query_trees
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.dialect import parse_expression
from spanner_schema.syntax.protos import list_bundle_types


def read_schema_expression(sql: str, schema: Schema) -> exp.Expr:
    """The tree of an expression. Raises INVALID_ARGUMENT, UNIMPLEMENTED for an unknown form."""
    if schema.dialect is Dialect.POSTGRESQL:
        return query_trees.read_expression(sql, schema)
    text = read_expression(sql, list_bundle_types(schema))
    try:
        return parse_expression(text)
    except DdlSyntaxError as error:
        raise errors.unimplemented(f"A form of this expression ({sql.strip()[:80]!r})") from error
