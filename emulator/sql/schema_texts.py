"""Expressions of a schema as trees, in the dialect of the schema."""

from __future__ import annotations

from sqlglot import exp

from emulator.sql.googlesql.statement_trees import read_expression
from emulator.sql.postgres import query_trees
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.protos import list_bundle_types


def read_schema_expression(sql: str, schema: Schema) -> exp.Expr:
    """The tree of an expression. Raises INVALID_ARGUMENT, UNIMPLEMENTED for an unknown form."""
    if schema.dialect is Dialect.POSTGRESQL:
        return query_trees.read_expression(sql, schema)
    return read_expression(sql, list_bundle_types(schema))
