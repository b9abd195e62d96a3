"""Scalar expressions of GoogleSQL -> SQLite text with Spanner's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlglot import exp

from emulator import errors
from emulator.sql import calls, constructors, literals, names, operators, subqueries
from emulator.sql.aggregates import has_aggregate
from emulator.sql.coerce import require
from emulator.sql.compiler import Handler
from emulator.sql.scope import Context, Scope
from emulator.sql.subqueries import Subquery
from emulator.sql.types import Columns, Typed
from emulator.values.types import BOOL

HANDLERS: dict[type[exp.Expr], Handler] = {
    **names.HANDLERS,
    **literals.HANDLERS,
    **operators.HANDLERS,
    **subqueries.HANDLERS,
    **constructors.HANDLERS,
    **calls.HANDLERS,
}
CONSTANTS = (exp.Literal, exp.Parameter, exp.Null, exp.Boolean)


class Expressions:
    """Compiles expressions; ``query`` is how queries inside them are compiled.

    ``columns_before_aliases``: a name in GROUP BY is a column first, then an item's alias.
    """

    columns_before_aliases = False
    handlers: ClassVar[Mapping[type[exp.Expr], Handler]] = HANDLERS

    def __init__(self, query: Subquery) -> None:
        self._query = query

    def compile(self, node: exp.Expr, scope: Scope, context: Context) -> Typed:
        """One expression. Raises INVALID_ARGUMENT, or UNIMPLEMENTED for an unsupported one."""
        if scope.grouped is not None and not scope.in_aggregate:
            grouped = self._find_group_key(node, scope, context)
            if grouped is not None:
                return grouped
        handler = self.handlers.get(type(node))
        if node is None:  # what the parser makes of some broken lists
            raise errors.invalid_argument("Syntax error: an expression is missing")
        if handler is None:
            raise errors.unimplemented(f"the expression {node.sql('bigquery')[:60]}")
        return handler(self, node, scope, context)

    def boolean(self, node: exp.Expr, scope: Scope, context: Context, where: str) -> Typed:
        """An expression that must be BOOL."""
        return require(self.compile(node, scope, context), BOOL, context, where)

    def subquery(
        self, node: exp.Expr, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        """A query inside an expression."""
        return self._query(node, outer, context)

    def _find_group_key(self, node: exp.Expr, scope: Scope, context: Context) -> Typed | None:
        """The expression as a key of GROUP BY, where it is one."""
        assert scope.grouped is not None
        if not scope.grouped or isinstance(node, CONSTANTS) or has_aggregate(node):
            return None
        if node.find(exp.Window):
            return None
        columns = list(node.find_all(exp.Column))
        if any(each.name.casefold() in scope.aliases for each in columns):
            return None
        if any(not each.table and scope.names_row(each.name) for each in columns):
            return None  # GoogleSQL finds no expression again that has a row in it
        scope.in_aggregate = True
        try:
            whole = self.compile(node, scope, context)
        finally:
            scope.in_aggregate = False
        return whole if whole.sql in scope.grouped else None
