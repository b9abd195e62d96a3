"""The query of a view: parsed once, and judged by Spanner's rules for views."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql import statement_trees as googlesql
from emulator.sql.postgres.parser import parse_statement
from emulator.sql.postgres.query_trees import read_statement
from emulator.sql.sequences import FUNCTIONS
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.views import read_view


@lru_cache(maxsize=1_000)
def view_query(
    text: str, type_names: tuple[str, ...], dialect: Dialect = Dialect.GOOGLESQL
) -> exp.Query:
    """The query of a CREATE VIEW statement; ``type_names`` are the types of the proto bundle.

    Raises INVALID_ARGUMENT for an invalid view.
    """
    query = read_view(text, dialect).query
    if dialect is Dialect.POSTGRESQL:
        return read_postgres_query(query)
    tree = googlesql.read_statement(query, type_names, locks=False).tree
    if not isinstance(tree, exp.Query):
        raise errors.invalid_argument("A view is defined by a query")
    check_view_query(tree)
    if kind_of_rows(tree) == "STRUCT":
        # The fields of such rows are the columns of the view.
        innermost_query(tree).set("kind", None)
    return tree


def read_postgres_query(query: str) -> exp.Query:
    """The query of a view of the PostgreSQL dialect, which locks nothing."""
    if "lockingClause" in parse_statement(query).get("SelectStmt", {}):
        raise errors.invalid_argument("Unexpected lock mode in query")
    tree = read_statement(query, Schema(Dialect.POSTGRESQL)).tree
    if not isinstance(tree, exp.Query):
        raise errors.invalid_argument("A view is defined by a query")
    check_view_query(tree)
    return tree


def has_value_rows(text: str, type_names: tuple[str, ...]) -> bool:
    """Whether a view's rows are values: its one column needs no name."""
    return kind_of_rows(view_query(text, type_names)) == "VALUE"


def kind_of_rows(tree: exp.Query) -> str:
    """STRUCT or VALUE for SELECT AS STRUCT or VALUE, else nothing."""
    return str(innermost_query(tree).args.get("kind") or "").upper()


def innermost_query(tree: exp.Query) -> exp.Expr:
    """A query without the parentheses around it."""
    inner: exp.Expr = tree
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return inner


def check_view_query(tree: exp.Expr) -> None:
    """No parameters, no WITH, no stars."""
    if tree.find(exp.Parameter) is not None:
        raise errors.invalid_argument("Query parameters cannot be used inside SQL view bodies")
    if tree.find(exp.With) is not None:
        raise errors.invalid_argument("WITH clauses are unsupported in view definitions.")
    for select in tree.find_all(exp.Select):
        if any(is_star(each) for each in select.expressions):
            raise errors.invalid_argument(
                "SELECT * is not allowed in strict name resolution mode; name the columns"
            )


def check_strict_names(text: str, type_names: tuple[str, ...]) -> None:
    """Every column in a view is named with its table. Raises INVALID_ARGUMENT."""
    for column in view_query(text, type_names).find_all(exp.Column):
        if not column.table and not is_alias(column) and not is_sequence(column):
            raise errors.invalid_argument(
                f"Column name {column.name} cannot be used without a qualifier in strict name"
                " resolution mode"
            )


def is_sequence(column: exp.Column) -> bool:
    """Whether a name follows the word SEQUENCE in a call."""
    call = column.parent
    return isinstance(call, exp.Anonymous) and call.name.upper() in FUNCTIONS


def is_star(node: exp.Expr) -> bool:
    """* or alias.*"""
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def names_of_source(source: exp.Expr) -> Iterator[str]:
    """What something in FROM is called: a table, an array, its offset, columns with an alias."""
    yield source.alias_or_name.casefold()
    yield from (name.casefold() for name in source.alias_column_names)
    if isinstance(source, exp.Unnest) and isinstance(source.args.get("offset"), exp.Identifier):
        yield source.args["offset"].name.casefold()
    if isinstance(source, exp.Subquery):
        inner = innermost_query(source)
        yield from (
            each.alias.casefold() for each in inner.expressions if isinstance(each, exp.Alias)
        )


def is_alias(column: exp.Column) -> bool:
    """Whether a bare name is an alias: of the SELECT list, or of something in FROM."""
    name = column.name.casefold()
    node: exp.Expr | None = column.parent_select
    while node is not None:
        if isinstance(node, exp.Select):
            aliases = {each.alias.casefold() for each in node.expressions if each.alias}
            for source in node.find_all(exp.Unnest, exp.Table, exp.Subquery):
                aliases.update(names_of_source(source))
            if name in aliases:
                return True
        elif isinstance(node, exp.SetOperation):
            return True
        node = node.parent_select
    return isinstance(column.find_ancestor(exp.Order), exp.Order) and bool(
        column.find_ancestor(exp.SetOperation)
    )
