"""Does a query prove that the key parts of a null-filtered index are not NULL?

Spanner refuses to force a null-filtered index otherwise, because rows could be missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from emulator import errors
from spanner_schema.model.schema import Index, Table

PROVING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Like)


def check_null_filtered(index: Index, table: Table, alias: str, query: exp.Expr) -> None:
    """INVALID_ARGUMENT unless each nullable key part is compared, or IS NOT NULL, in the WHERE."""
    filtered = (
        [part.column for part in index.parts] if index.null_filtered else list(index.where_not_null)
    )
    proven = set(not_null_columns(query, alias))
    for name in filtered:
        column = table.column(name)
        if column is not None and not column.not_null and name.casefold() not in proven:
            raise errors.invalid_argument(
                f"The hint specifies index {index.name} that could not be used to execute the"
                f" query: it is NULL_FILTERED and the query does not ensure {name} IS NOT NULL"
            )


def not_null_columns(query: exp.Expr, alias: str) -> Iterator[str]:
    """Columns of the alias (names folded) that the AND-ed conditions keep from being NULL."""
    conditions = []
    where = query.args.get("where")
    if where is not None:
        conditions.append(where.this)
    for join in query.args.get("joins") or ():
        if join.args.get("on") is not None and not join.side:
            conditions.append(join.args["on"])
    for condition in conditions:
        for conjunct in conjuncts(condition):
            yield from columns_proven_by(conjunct, alias)


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a chain of ANDs."""
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    else:
        yield node


def columns_proven_by(node: exp.Expr, alias: str) -> Iterator[str]:
    """Columns that a single condition keeps from being NULL."""
    if isinstance(node, exp.Not):
        if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            yield from alias_column(node.this.this, alias)
        elif isinstance(node.this, PROVING):
            yield from columns_proven_by(node.this, alias)
    elif isinstance(node, PROVING):
        for side in (node.this, node.args.get("expression")):
            if side is not None:
                yield from alias_column(side, alias)
    elif isinstance(node, exp.Column):
        yield from alias_column(node, alias)


def alias_column(node: exp.Expr, alias: str) -> Iterator[str]:
    """The column itself, when it is one of the alias."""
    if isinstance(node, exp.Paren):
        yield from alias_column(node.this, alias)
    elif isinstance(node, exp.Column) and node.table.casefold() in {"", alias.casefold()}:
        yield node.name.casefold()
