"""ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.compiler import Compiler
from emulator.sql.literals import number_of_item
from emulator.sql.ordering import collate, order_operand, order_terms
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Columns, Typed, distinct_names
from emulator.values.sqlite_text import quote_name
from emulator.values.types import INT64


def select_tail(
    compiler: Compiler, node: exp.Expr, columns: Columns, scope: Scope, context: Context
) -> str:
    """The clauses of a SELECT whose ORDER BY may use all that is in scope."""
    items = order_keys(compiler, node, columns, scope, context)
    terms = [order_terms(item, each) for item, each in zip(items, order_items(node), strict=True)]
    return order_clause(terms) + limit_clause(compiler, node, context)


def order_keys(
    compiler: Compiler, node: exp.Expr, columns: Columns, scope: Scope, context: Context
) -> list[Typed]:
    """What the ORDER BY of a SELECT sorts by: expressions, aliases and places."""
    scope.aliases = {each.name.casefold(): each.typed for each in columns if each.name}
    items = []
    for each in order_items(node):
        operand, collation = order_operand(each.this)
        refuse_ambiguous(operand, columns)
        place = number_of_item(operand, "ORDER BY", len(columns))
        item = (
            columns[place].typed if place is not None else compiler.compile(operand, scope, context)
        )
        items.append(collate(compiler, item, collation, context))
    scope.aliases = {}
    return items


def refuse_ambiguous(node: exp.Expr, columns: Columns) -> None:
    """INVALID_ARGUMENT for the name of several items."""
    if not isinstance(node, exp.Column) or len(node.parts) > 1:
        return
    if sum(c.name.casefold() == node.name.casefold() for c in columns) > 1:
        raise errors.invalid_argument(f"Column name {node.name} is ambiguous")


def query_tail(
    compiler: Compiler, node: exp.Expr, columns: Columns, outer: Scope | None, context: Context
) -> str:
    """The clauses around a query in parentheses: ORDER BY sees its columns only."""
    names = distinct_names([each.name for each in columns])
    results = [
        Typed(quote_name(name), each.type, column=each.name)
        for name, each in zip(names, columns, strict=True)
    ]
    scope = Scope(parent=outer)
    scope.aliases = {item.column.casefold(): item for item in results if item.column}
    terms = []
    for each in order_items(node):
        operand, collation = order_operand(each.this)
        place = number_of_item(operand, "ORDER BY", len(columns))
        if place is None:
            place = same_expression(compiler, operand, columns, node)
        item = results[place] if place is not None else compiler.compile(operand, scope, context)
        item = collate(compiler, item, collation, context)
        terms.append(order_terms(item, each))
    return order_clause(terms) + limit_clause(compiler, node, context)


def same_expression(
    compiler: Compiler, node: exp.Expr, columns: Columns, query: exp.Expr
) -> int | None:
    """The place of an item of SELECT DISTINCT that ORDER BY repeats: whole, or its column."""
    if not isinstance(query, exp.Select):
        return None
    alone = isinstance(node, exp.Column) and not node.table
    if alone and any(each.name.casefold() == node.name.casefold() for each in columns):
        return None
    items = [each.this if isinstance(each, exp.Alias) else each for each in query.expressions]
    if len(items) == len(columns):
        for number, item in enumerate(items):
            if item == node or (alone and names_column(item, node.name)):
                return number
    if isinstance(node, exp.Column) and node.table:
        places = [
            n for n, c in enumerate(columns) if c.typed.column.casefold() == node.name.casefold()
        ]
        suffix = f"{quote_name(node.table)}.{quote_name(node.name)}".casefold()
        same = [n for n in places if columns[n].typed.sql.casefold() == suffix]
        return same[0] if same else None
    return None


def names_column(item: exp.Expr, name: str) -> bool:
    """Whether an item is the column of this name, of whatever relation."""
    return isinstance(item, exp.Column) and item.name.casefold() == name.casefold()


def order_items(node: exp.Expr) -> list[exp.Ordered]:
    """The keys of ORDER BY."""
    order = node.args.get("order")
    return [] if order is None else list(order.expressions)


def order_clause(terms: list[str]) -> str:
    """ORDER BY, where there are terms."""
    return f" ORDER BY {', '.join(terms)}" if terms else ""


def limit_clause(compiler: Compiler, node: exp.Expr, context: Context) -> str:
    """LIMIT and OFFSET."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    sql = ""
    if limit is not None:
        sql += f" LIMIT {row_count(compiler, limit.expression, context, 'LIMIT')}"
    if offset is not None:
        if limit is None:
            raise errors.invalid_argument("Syntax error: OFFSET needs a LIMIT before it")
        sql += f" OFFSET {row_count(compiler, offset.expression, context, 'OFFSET')}"
    return sql


def row_count(compiler: Compiler, node: exp.Expr, context: Context, where: str) -> str:
    """A number of rows: a literal or a parameter."""
    node = node.unnest()
    if not isinstance(node, exp.Literal | exp.Parameter | exp.Cast):
        raise errors.invalid_argument(f"{where} expects an integer literal or parameter")
    item = require(compiler.compile(node, Scope(), context), INT64, context, where)
    return item.sql if item.literal is not None else f"fn_not_negative({item.sql}, '{where}')"
