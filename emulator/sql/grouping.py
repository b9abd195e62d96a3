"""GROUP BY: its keys, and whether a SELECT aggregates."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import UNGROUPABLE, has_aggregate
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import Compiler, refuse_other_clauses
from emulator.sql.literals import number_of_item
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of

FORMS = {"rollup": "ROLLUP", "cube": "CUBE", "groupingsets": "GROUPING SETS", "totals": "TOTALS"}
"""What the tree calls a form of GROUP BY that is not served, and SQL's words for it."""


def is_aggregating(node: exp.Select) -> bool:
    """Whether a SELECT returns one row for each group."""
    if node.args.get("group") is not None:
        return True
    order, having = node.args.get("order"), node.args.get("having")
    parts = [*node.expressions, *(order.expressions if order is not None else ())]
    parts += [having.this] if having is not None else []
    return any(map(has_aggregate, parts))


def group_keys(compiler: Compiler, node: exp.Select, scope: Scope, context: Context) -> list[Typed]:
    """The expressions to group by."""
    group = node.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        raise errors.unimplemented("GROUP BY ALL")
    for each in [*group.expressions, *(n for n in group.args if group.args[n])]:
        word = each if isinstance(each, str) else type(each).__name__
        form = FORMS.get(word.lower().replace("_", ""))
        if form is not None:
            raise errors.unimplemented(f"GROUP BY {form}")
    refuse_other_clauses(group, "expressions", "all")
    return [group_key(compiler, each, node, scope, context) for each in group.expressions]


def group_key(
    compiler: Compiler, node: exp.Expr, query: exp.Select, scope: Scope, context: Context
) -> Typed:
    """An expression, the number of an item, or the alias of one, before a column of that name."""
    number = number_of_item(node, "GROUP BY", len(query.expressions))
    target = node if number is None else query.expressions[number]
    if isinstance(target, exp.Star):
        raise errors.unimplemented("GROUP BY with the number of a *")
    if isinstance(node, exp.Column) and not node.table:
        match = [
            each
            for each in query.expressions
            if isinstance(each, exp.Alias) and each.alias.casefold() == node.name.casefold()
        ]
        hidden = compiler.columns_before_aliases and scope.find(node.name, None) is not None
        if match and not hidden:
            target = match[0]
    inner = target.this if isinstance(target, exp.Alias) else target
    if has_aggregate(inner):
        raise errors.invalid_argument("Aggregate functions are not allowed in GROUP BY")
    key = compiler.compile(inner, scope, context)
    if key.type is not None and key.type.code in UNGROUPABLE:
        raise errors.invalid_argument(
            f"Grouping by expressions of type {name_of(key.type)} is not allowed"
        )
    if target is not node:
        scope.keyed[id(target)] = key
    return key


def group_clause(keys: list[Typed]) -> str:
    """GROUP BY as SQLite text; SQLite would take a plain number for a place."""
    if not keys:
        return ""
    return " GROUP BY " + ", ".join(
        f"coalesce({k.sql}, NULL)" if k.literal else to_comparable(k).sql for k in keys
    )
