"""Numbering and navigation functions: their arguments, types, and names in SQLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require, unify
from emulator.sql.compiler import Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import FLOAT64, INT64

Call = Callable[[Compiler, exp.Anonymous, str, Scope, Context], Typed]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """``call`` is given the OVER clause as SQLite text."""

    call: Call
    needs_order: bool = True
    takes_frame: bool = False


def arguments(node: exp.Anonymous, least: int, most: int) -> list[exp.Expr]:
    """The arguments, if there are as many as there may be."""
    items = list(node.expressions)
    if not least <= len(items) <= most or any(isinstance(each, exp.Distinct) for each in items):
        raise errors.invalid_argument(
            f"No matching signature for analytic function {node.name.upper()}"
        )
    return items


def rank(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """ROW_NUMBER, RANK and DENSE_RANK."""
    arguments(node, 0, 0)
    return Typed(f"{node.name.lower()}(){over}", INT64)


def percent_rank(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """PERCENT_RANK and CUME_DIST."""
    arguments(node, 0, 0)
    return Typed(f"{node.name.lower()}(){over}", FLOAT64)


def ntile(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """NTILE(n); SQLite refuses a number that is not positive."""
    (argument,) = arguments(node, 1, 1)
    count = constant(compiler, argument, context, "The argument of NTILE")
    return Typed(f"ntile({count.sql}){over}", INT64)


def constant(compiler: Compiler, node: exp.Expr, context: Context, where: str) -> Typed:
    """An INT64 that is the same for every row."""
    if not isinstance(node, exp.Literal | exp.Parameter | exp.Cast | exp.Neg):
        raise errors.invalid_argument(f"{where} must be a literal or query parameter")
    return require(compiler.compile(node, Scope(), context), INT64, context, where)


def neighbour(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """LAG and LEAD: (value [, offset [, default]])."""
    name = node.name.upper()
    first, *rest = arguments(node, 1, 3)
    if isinstance(first, exp.IgnoreNulls | exp.RespectNulls):
        raise errors.invalid_argument(f"IGNORE NULLS and RESPECT NULLS are not allowed in {name}")
    item = compiler.compile(first, scope, context)
    if not rest:
        return Typed(f"{name.lower()}({item.sql}){over}", item.type)
    where = f"The offset of {name}"
    steps = constant(compiler, rest[0], context, where)
    taken = [item.sql, f"fn_not_negative({steps.sql}, '{where}')"]
    type_ = item.type
    if len(rest) == 2:
        (value, default), type_ = unify(
            [item, compiler.compile(rest[1], Scope(), context)], context, name
        )
        taken = [value.sql, taken[1], default.sql]
    return Typed(f"{name.lower()}({', '.join(taken)}){over}", type_)


def edge(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """FIRST_VALUE and LAST_VALUE: (value [IGNORE NULLS])."""
    name = node.name.lower()
    (argument,) = arguments(node, 1, 1)
    value, ignoring = nulls_clause(argument)
    item = compiler.compile(value, scope, context)
    function = f"win_{name}_not_null" if ignoring else name
    return Typed(f"{function}({item.sql}){over}", item.type)


def nth_value(
    compiler: Compiler, node: exp.Anonymous, over: str, scope: Scope, context: Context
) -> Typed:
    """NTH_VALUE(value, n [IGNORE NULLS]); a number that is not positive is refused."""
    first, last = arguments(node, 2, 2)
    place, ignoring = nulls_clause(last)
    item = compiler.compile(first, scope, context)
    count = constant(compiler, place, context, "The second argument of NTH_VALUE")
    function = "win_nth_value_not_null" if ignoring else "nth_value"
    return Typed(f"{function}({item.sql}, {count.sql}){over}", item.type)


def nulls_clause(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """An argument without IGNORE NULLS or RESPECT NULLS, and whether it was the former."""
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return node.this, isinstance(node, exp.IgnoreNulls)
    return node, False


WINDOW_FUNCTIONS = {
    "ROW_NUMBER": WindowFunction(rank, needs_order=False),
    "RANK": WindowFunction(rank),
    "DENSE_RANK": WindowFunction(rank),
    "PERCENT_RANK": WindowFunction(percent_rank),
    "CUME_DIST": WindowFunction(percent_rank),
    "NTILE": WindowFunction(ntile),
    "LAG": WindowFunction(neighbour),
    "LEAD": WindowFunction(neighbour),
    "FIRST_VALUE": WindowFunction(edge, takes_frame=True),
    "LAST_VALUE": WindowFunction(edge, takes_frame=True),
    "NTH_VALUE": WindowFunction(nth_value, takes_frame=True),
}
