"""Scalar expressions of the PostgreSQL dialect -> SQLite text with Spanner's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlglot import exp

from emulator import errors
from emulator.sql import constructors, literals, names, operators, subqueries
from emulator.sql.compiler import Compiler, Handler
from emulator.sql.dml import DmlCompiler
from emulator.sql.expressions import Expressions
from emulator.sql.postgres import casts, functions
from emulator.sql.postgres import operators as postgres_operators
from emulator.sql.postgres.aggregates import CALLED, compile_aggregate
from emulator.sql.postgres.type_names import show_type
from emulator.sql.queries import QueryCompiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import BOOL
from spanner_schema.model.schema import Column


def compile_column(compiler: Compiler, node: exp.Column, scope: Scope, context: Context) -> Typed:
    """A column: a name in quotes keeps its case, and case matters."""
    if isinstance(node.this, exp.Star):
        raise errors.invalid_argument("* is not allowed here")
    name, qualifier = node.name, read_qualifier(node, context)
    if not qualifier and isinstance(node.parent, exp.Ordered):
        alias = scope.aliases.get(name.casefold())
        if alias is not None:
            return alias
    relation = scope.relation(qualifier) if qualifier else None
    if qualifier and (relation is None or relation.alias != qualifier):
        raise errors.invalid_argument(f'missing FROM-clause entry for table "{qualifier}"')
    columns = [c for c in scope.list_columns(name, qualifier or None) if c.column == name]
    if len(columns) > 1:
        raise errors.invalid_argument(f'column reference "{name}" is ambiguous')
    if not columns:
        written = f"{qualifier}.{name}" if qualifier else f'"{name}"'
        raise errors.invalid_argument(f"column {written} does not exist")
    (found,) = columns
    if not scope.is_free(found):
        raise errors.invalid_argument(
            f'column "{qualifier or find_owner(found, scope)}.{name}" must appear in the GROUP BY'
            " clause or be used in an aggregate function"
        )
    return found


def find_owner(column: Typed, scope: Scope) -> str:
    """The alias of the relation that has a column."""
    return next((each.alias for each in scope.relations if each.owns(column)), "")


def read_qualifier(node: exp.Column, context: Context) -> str:
    """The alias before a column; schema.table names the table of a FROM clause, too."""
    owner = node.args.get("db")
    if owner is not None and f"{owner.name}.{node.table}" not in context.tables:
        raise errors.invalid_argument(f'missing FROM-clause entry for table "{node.table}"')
    return node.table


def compile_call(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """A function, an aggregate, or an operator."""
    if node.name in CALLED:
        return compile_aggregate(compiler, node, scope, context)
    return functions.compile_call(compiler, node, scope, context)


class PostgresExpressions(Expressions):
    """Compiles expressions; what is not said here is the same in both dialects."""

    columns_before_aliases = True
    handlers: ClassVar[Mapping[type[exp.Expr], Handler]] = {
        exp.Parameter: names.HANDLERS[exp.Parameter],
        exp.Alias: names.HANDLERS[exp.Alias],
        exp.Null: literals.HANDLERS[exp.Null],
        exp.Boolean: literals.HANDLERS[exp.Boolean],
        exp.And: operators.HANDLERS[exp.And],
        exp.Or: operators.HANDLERS[exp.Or],
        exp.Is: operators.HANDLERS[exp.Is],
        exp.Subquery: subqueries.HANDLERS[exp.Subquery],
        exp.Exists: subqueries.HANDLERS[exp.Exists],
        exp.Array: constructors.HANDLERS[exp.Array],
        **postgres_operators.HANDLERS,
        exp.Column: compile_column,
        exp.Anonymous: compile_call,
    }

    def boolean(self, node: exp.Expr, scope: Scope, context: Context, where: str) -> Typed:
        """An expression that must be boolean."""
        item = self.compile(node, scope, context)
        converted = casts.coerce(item, BOOL, context)
        if converted is None:
            raise errors.invalid_argument(
                f"{where} must be type boolean, not type {show_type(item.type)}"
            )
        return converted


class PostgresQueries(QueryCompiler):
    """Compiles queries of the dialect."""

    def __init__(self) -> None:
        super().__init__()
        self.expressions = PostgresExpressions(self.query)


class PostgresDml(DmlCompiler):
    """Compiles INSERT, UPDATE and DELETE of the dialect: columns take more than operators do."""

    def convert(self, item: Typed, column: Column, context: Context, where: str) -> Typed:
        """A value as its column takes it. Raises INVALID_ARGUMENT."""
        converted = casts.assign(item, column.type, context)
        if converted is None:
            raise errors.invalid_argument(
                f'column "{column.name}" is of type {show_type(column.type)} but expression is of'
                f" type {show_type(item.type)}"
            )
        return converted

    def check_count(self, values: int, columns: int) -> None:
        """INVALID_ARGUMENT where there are not as many values as columns."""
        if values > columns:
            raise errors.invalid_argument("INSERT has more expressions than target columns")
        if values < columns:
            raise errors.invalid_argument("INSERT has more target columns than expressions")
