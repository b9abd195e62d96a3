"""Queries inside expressions: scalar, ARRAY, EXISTS, IN."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from emulator import errors
from emulator.limits import IN_ITEMS_MAX
from emulator.sql.coerce import coerce, require, unify
from emulator.sql.comparison import test_membership, test_row_membership
from emulator.sql.compiler import Compiler, Handler, refuse_other_clauses
from emulator.sql.composites import elements, refuse_array_of_arrays, wrap_one_column
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Columns, Typed, name_of
from emulator.values.types import BOOL, INT64, NUMBERS, array
from spanner_schema.model.column_types import Type, TypeCode


class Subquery(Protocol):
    """Compiles a query inside an expression (given by the module of queries, which is above)."""

    def __call__(
        self, node: exp.Expr, outer: Scope | None, context: Context, /
    ) -> tuple[str, Columns]:
        """SQLite text and the columns."""
        ...


def scalar(compiler: Compiler, node: exp.Subquery, scope: Scope, context: Context) -> Typed:
    """(SELECT x ...): NULL of no row, an error of several."""
    sql, columns = compiler.subquery(node, scope, context)
    text, column = wrap_one_column(sql, columns, "Scalar subquery")
    sql = f'(SELECT agg_single("v") FROM ({text}))'
    return Typed(sql, column.type, may_be_null=columns[0].typed.may_be_null)


def exists(compiler: Compiler, node: exp.Exists, scope: Scope, context: Context) -> Typed:
    """EXISTS (SELECT ...)."""
    sql, _ = compiler.subquery(node.this, scope, context)
    return Typed(f"EXISTS ({sql})", BOOL)


def array_subquery(compiler: Compiler, node: exp.Expr, scope: Scope, context: Context) -> Typed:
    """ARRAY(SELECT x ...): in the order of the query, NULLs too."""
    sql, columns = compiler.subquery(node, scope, context)
    text, column = wrap_one_column(sql, columns, "ARRAY subquery")
    refuse_array_of_arrays(column.type)
    return Typed(f'(SELECT agg_array("v") FROM ({text}))', array(columns[0].type))


def in_(compiler: Compiler, node: exp.In, scope: Scope, context: Context) -> Typed:
    """x IN (a, b), IN (SELECT ...), IN UNNEST(array)."""
    refuse_other_clauses(node, "this", "expressions", "query", "unnest")
    item = compiler.compile(node.this, scope, context)
    if node.args.get("unnest"):
        return in_unnest(compiler, item, node.args["unnest"], scope, context)
    if node.args.get("query"):
        return in_query(compiler, item, node.args["query"], scope, context)
    if not node.expressions:
        raise errors.invalid_argument("Syntax error: IN () needs a value")
    if len(node.expressions) > IN_ITEMS_MAX:
        raise errors.invalid_argument(
            f"An IN list exceeds the maximum allowed length of {IN_ITEMS_MAX}."
        )
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    unified, type_ = unify([item, *items], context, "operator IN")
    return Typed(test_membership(unified[0], unified[1:], type_), BOOL)


def in_query(
    compiler: Compiler, item: Typed, query: exp.Expr, scope: Scope, context: Context
) -> Typed:
    """item IN (SELECT ...)."""
    sql, columns = compiler.subquery(query, scope, context)
    text, column = wrap_one_column(sql, columns, "Subquery of type IN")
    (left, right), type_ = unify([item, column], context, "operator IN")
    source = f'(SELECT {right.sql} AS "v" FROM ({text}))'
    return Typed(test_row_membership(left, '"v"', source, type_), BOOL)


def in_unnest(
    compiler: Compiler, item: Typed, node: exp.Unnest, scope: Scope, context: Context
) -> Typed:
    """item IN UNNEST(array): FALSE for a NULL array."""
    values = compiler.compile(node.expressions[0], scope, context)
    if values.parameter is not None and values.type is None and item.type is not None:
        values = require(values, array(item.type), context, "IN UNNEST")
    if values.type is None or values.type.element is None:
        raise errors.invalid_argument(
            f"Second argument of IN UNNEST must be an array but was {name_of(values.type)}"
        )
    widened = coerce(item, values.type.element, context)
    is_literal = item.literal is not None and widened is not None
    if not (is_literal or isinstance(node.expressions[0], exp.Parameter)):
        # A long list of items is an array of a parameter, too.
        refuse_other_number(item, values.type.element)
    left, right = widened, Typed('"value"', values.type.element)
    if left is None:
        (left, right), _ = unify([item, right], context, "operator IN")
    assert right.type is not None
    source = elements(values)
    if right.sql != '"value"':
        source = f'(SELECT {right.sql} AS "value" FROM {source})'
    return Typed(test_row_membership(left, '"value"', source, right.type), BOOL)


def refuse_other_number(item: Typed, element: Type) -> None:
    """A number is looked for among those of its type; an INT64 also where it fits in exactly."""
    known = item.type is None or item.type.code is element.code
    numbers = item.type is not None and {item.type.code, element.code} <= NUMBERS
    fits = item.type == INT64 and element.code in {TypeCode.NUMERIC, TypeCode.FLOAT64}
    if numbers and not known and not fits:
        raise errors.invalid_argument(
            "No matching signature for operator IN UNNEST for argument types:"
            f" {name_of(item.type)}, ARRAY<{name_of(element)}>"
        )


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Subquery: scalar,
    exp.Exists: exists,
    exp.In: in_,
}
