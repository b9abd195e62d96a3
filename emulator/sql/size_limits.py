"""How large a statement may be: what Spanner counts in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp

from emulator import errors
from emulator.limits import (
    CHILD_SUBQUERIES_MAX,
    FUNCTION_CALLS_MAX,
    FUNCTION_DEPTH_MAX,
    GROUP_DEPTH_MAX,
    GROUPING_COLUMNS_MAX,
    STRUCT_DEPTH_MAX,
    STRUCT_FIELDS_MAX,
    SUBQUERY_DEPTH_MAX,
    SUBSELECT_DEPTH_MAX,
    UNIONS_MAX,
)
from emulator.sql.aggregates import AGGREGATE_CALLS

CALLS = (exp.Func, exp.Binary, exp.Not, exp.Neg, exp.BitwiseNot, exp.In, exp.Between, exp.Bracket)
NO_CALLS = (
    *(exp.Cast, exp.Struct, exp.Dot, exp.PropertyEQ, exp.Kwarg, exp.Alias, exp.Exists),
    *(exp.IgnoreNulls, exp.RespectNulls, exp.SetOperation),
)
"""Nodes that are of these kinds for sqlglot, and no function calls for Spanner."""
CHAINS = (exp.And, exp.Or)
NO_EXPRESSIONS = (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.DML)
"""Where a query is no expression."""


def check_size(nodes: Sequence[exp.Expr]) -> None:
    """Raises INVALID_ARGUMENT for a tree that is too large; ``nodes`` are those of it."""
    for node in nodes:
        if isinstance(node, exp.Struct):
            check_struct(node)
        elif isinstance(node, exp.Group) and len(node.expressions) > GROUPING_COLUMNS_MAX:
            raise too_many("grouping columns", GROUPING_COLUMNS_MAX)
    if len(nodes) > FUNCTION_CALLS_MAX and sum(map(is_call, nodes)) > FUNCTION_CALLS_MAX:
        raise too_many("functions", FUNCTION_CALLS_MAX)
    if len(nodes) > UNIONS_MAX and sum(isinstance(n, exp.Union) for n in nodes) >= UNIONS_MAX:
        raise too_many("UNION operations", UNIONS_MAX)
    if len(nodes) > CHILD_SUBQUERIES_MAX:
        check_children(nodes)
    check_depths(nodes)


def check_children(nodes: Sequence[exp.Expr]) -> None:
    """How many subqueries the list of one SELECT has."""
    counts: Counter[int] = Counter()
    for node in filter(is_subquery_expression, nodes):
        inner: exp.Expr = node
        while inner.parent is not None and not isinstance(inner.parent, exp.Select):
            inner = inner.parent
        if inner.parent is not None and inner.arg_key == "expressions":
            counts[id(inner.parent)] += 1
    if any(count > CHILD_SUBQUERIES_MAX for count in counts.values()):
        raise too_many("child subqueries", CHILD_SUBQUERIES_MAX)


def check_depths(nodes: Sequence[exp.Expr]) -> None:
    """How many nodes of one kind stand in each other; those above a node come before it."""
    for what, limit, is_counted in DEPTHS:
        if len(nodes) <= limit or sum(map(is_counted, nodes)) <= limit:
            continue
        depths: dict[int, int] = {}
        for node in nodes:
            depth = depths.get(id(node.parent), 0) + is_counted(node)
            if depth > limit:
                raise too_many(what, limit)
            depths[id(node)] = depth


def check_struct(node: exp.Struct) -> None:
    """The fields of a STRUCT, and how deep it stands in others."""
    if len(node.expressions) > STRUCT_FIELDS_MAX:
        raise too_many("struct fields", STRUCT_FIELDS_MAX)
    depth, outer = 1, node.parent
    while outer is not None and depth <= STRUCT_DEPTH_MAX:
        depth += isinstance(outer, exp.Struct)
        outer = outer.parent
    if depth > STRUCT_DEPTH_MAX:
        raise too_many("nested struct types", STRUCT_DEPTH_MAX)


def is_call(node: exp.Expr) -> bool:
    """Whether a node is a call of a function or an operator; a AND b AND c is one."""
    if not isinstance(node, CALLS) or isinstance(node, NO_CALLS):
        return False
    if isinstance(node, exp.Anonymous):
        return node.name.upper() not in AGGREGATE_CALLS
    if isinstance(node, exp.Neg):
        return not isinstance(node.this, exp.Literal)
    if isinstance(node, exp.If):
        return not isinstance(node.parent, exp.Case)
    return not (isinstance(node, CHAINS) and type(node.parent) is type(node))


def is_subselect(node: exp.Expr) -> bool:
    """Whether a node is a SELECT."""
    return isinstance(node, exp.Select)


def is_grouped(node: exp.Expr) -> bool:
    """Whether a node is a SELECT with GROUP BY."""
    return isinstance(node, exp.Select) and node.args.get("group") is not None


def is_subquery_expression(node: exp.Expr) -> bool:
    """Whether a node is a query that is an expression: not one in FROM, WITH or UNION."""
    if not isinstance(node, exp.Select | exp.SetOperation):
        return False
    around = node.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    return around is not None and not isinstance(around, NO_EXPRESSIONS)


DEPTHS = (
    ("nested boolean predicates", FUNCTION_DEPTH_MAX, is_call),
    ("nested subqueries", SUBQUERY_DEPTH_MAX, is_subquery_expression),
    ("nested subselects", SUBSELECT_DEPTH_MAX, is_subselect),
    ("nested aggregations", GROUP_DEPTH_MAX, is_grouped),
)
"""What is counted in depth, by the name that Google's emulator gives it, and its limit."""


def too_many(what: str, limit: int) -> errors.SpannerError:
    """The refusal of a statement that has more of something than Spanner takes."""
    return errors.invalid_argument(
        f"Number of {what} exceeds the maximum allowed limit of {limit}."
    )
