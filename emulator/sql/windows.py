"""OVER: partitions, order and frames of window functions, and named windows."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import AGGREGATE_CALLS, UNGROUPABLE, aggregate_call
from emulator.sql.coerce import require
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import Compiler, refuse_other_clauses
from emulator.sql.ordering import order_terms
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.sql.window_functions import WINDOW_FUNCTIONS, WindowFunction
from emulator.values.types import FLOATS, INT64, NUMBERS
from spanner_schema.model.column_types import TypeCode


def window(compiler: Compiler, node: exp.Window, scope: Scope, context: Context) -> Typed:
    """f(...) OVER window."""
    called = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this
    if not isinstance(called, exp.Anonymous):
        raise errors.unimplemented(f"the window function {node.this.sql('bigquery')[:60]}")
    name = called.name.upper()
    if called is not node.this:
        raise errors.invalid_argument(f"{name}: IGNORE NULLS stands inside the parentheses")
    if name in {"PERCENTILE_CONT", "PERCENTILE_DISC", "IS_FIRST", "IS_LAST"}:
        raise errors.unimplemented(f"the window function {name}")
    function = WINDOW_FUNCTIONS.get(name)
    if function is None and name not in AGGREGATE_CALLS:
        raise errors.invalid_argument(f"Function {name} does not support an OVER clause")
    if not scope.windows_allowed or scope.in_aggregate:
        raise errors.invalid_argument(f"Analytic function {name} not allowed here")
    scope.windows_allowed = False
    try:
        over = over_clause(compiler, node, function, name, scope, context)
        if function is None:
            return aggregate_call(compiler, called, scope, context, over)
        return function.call(compiler, called, over, scope, context)
    finally:
        scope.windows_allowed = True


def over_clause(
    compiler: Compiler,
    node: exp.Window,
    function: WindowFunction | None,
    name: str,
    scope: Scope,
    context: Context,
) -> str:
    """OVER (...) as SQLite text."""
    refuse_other_clauses(node, "this", "partition_by", "order", "spec", "alias", "over")
    merged = resolve_window(node, scope)
    order = merged.args.get("order")
    keys = order.expressions if order is not None else []
    if function is not None and function.needs_order and not keys:
        raise errors.invalid_argument(f"Window ORDER BY is required for analytic function {name}")
    spec = merged.args.get("spec")
    if spec is not None and function is not None and not function.takes_frame:
        raise errors.invalid_argument(
            f"Window framing clause is not allowed for analytic function {name}"
        )
    pieces = []
    parts = [
        partition_key(compiler, each, scope, context) for each in partition_expressions(merged)
    ]
    if parts:
        pieces.append(f"PARTITION BY {', '.join(parts)}")
    items = [order_item(compiler, each, scope, context) for each in keys]
    if items:
        terms = (order_terms(item, each) for item, each in zip(items, keys, strict=True))
        pieces.append(f"ORDER BY {', '.join(terms)}")
    if spec is not None:
        pieces.append(frame_clause(compiler, spec, items, context))
    return f" OVER ({' '.join(pieces)})"


def partition_expressions(node: exp.Window) -> list[exp.Expr]:
    """The expressions of PARTITION BY."""
    return list(node.args.get("partition_by") or [])


def resolve_window(node: exp.Window, scope: Scope) -> exp.Window:
    """A window with the clauses of the named window that it refers to."""
    alias = node.args.get("alias")
    if alias is None:
        return node
    base = scope.windows.get(alias.name.casefold())
    if base is None:
        raise errors.invalid_argument(f"Unrecognized window alias {alias.name}")
    own = {word for word in ("partition_by", "order", "spec") if node.args.get(word)}
    if "partition_by" in own:
        raise errors.invalid_argument(
            f"PARTITION BY is not allowed in a window that refers to {alias.name}"
        )
    if "order" in own and base.args.get("order"):
        raise errors.invalid_argument(f"The window {alias.name} has an ORDER BY already")
    if own and base.args.get("spec"):
        raise errors.invalid_argument(f"The window {alias.name} has a frame and cannot be extended")
    inherited = {word: node.args.get(word) or base.args.get(word) for word in ("order", "spec")}
    return exp.Window(partition_by=partition_expressions(base), **inherited)


def add_named_windows(node: exp.Select, scope: Scope) -> None:
    """Puts the windows of a WINDOW clause in scope; each may refer to those before it."""
    for each in node.args.get("windows") or []:
        name = each.this.name
        if name.casefold() in scope.windows:
            raise errors.invalid_argument(f"Duplicate window alias {name}")
        refuse_other_clauses(each, "this", "partition_by", "order", "spec", "alias")
        scope.windows[name.casefold()] = resolve_window(each, scope)


def partition_key(compiler: Compiler, node: exp.Expr, scope: Scope, context: Context) -> str:
    """One expression of PARTITION BY."""
    item = compiler.compile(node, scope, context)
    if item.type is not None and item.type.code in UNGROUPABLE | FLOATS:
        raise errors.invalid_argument(
            f"PARTITION BY expression of type {name_of(item.type)} does not support partitioning"
        )
    return to_comparable(item).sql


def order_item(compiler: Compiler, node: exp.Expr, scope: Scope, context: Context) -> Typed:
    """One expression of a window's ORDER BY."""
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        raise errors.invalid_argument("Window ORDER BY expressions cannot be integer literals")
    return compiler.compile(node.this, scope, context)


def frame_clause(
    compiler: Compiler, spec: exp.WindowSpec, order: list[Typed], context: Context
) -> str:
    """ROWS or RANGE, with both bounds."""
    refuse_other_clauses(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args["kind"]).upper()
    if kind not in {"ROWS", "RANGE"}:
        raise errors.invalid_argument(f"Syntax error: unexpected {kind} in a window frame")
    bounds = [
        frame_bound(compiler, spec, "start", kind, order, context),
        frame_bound(compiler, spec, "end", kind, order, context),
    ]
    ranks = [RANKS.get(each, RANKS.get(each.rpartition(" ")[2], 0)) for each in bounds]
    if ranks[0] > ranks[1] or ranks[0] == RANKS["UNBOUNDED FOLLOWING"]:
        raise errors.invalid_argument(f"Window frame cannot go from {bounds[0]} to {bounds[1]}")
    if ranks[1] == RANKS["UNBOUNDED PRECEDING"]:
        raise errors.invalid_argument("Window frame cannot end at UNBOUNDED PRECEDING")
    return f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"


RANKS = {
    "UNBOUNDED PRECEDING": 0,
    "PRECEDING": 1,
    "CURRENT ROW": 2,
    "FOLLOWING": 3,
    "UNBOUNDED FOLLOWING": 4,
}


def frame_bound(
    compiler: Compiler,
    spec: exp.WindowSpec,
    which: str,
    kind: str,
    order: list[Typed],
    context: Context,
) -> str:
    """One end of a frame; a frame without an end goes to the current row."""
    value = spec.args.get(which)
    side = str(spec.args.get(f"{which}_side") or "").upper()
    if value is None or value == "CURRENT ROW":
        return "CURRENT ROW"
    if not side:
        raise errors.invalid_argument(
            "Syntax error: a bound of a window frame needs PRECEDING or FOLLOWING"
        )
    if value == "UNBOUNDED":
        return f"UNBOUNDED {side}"
    return f"{frame_offset(compiler, value, kind, order, context)} {side}"


def frame_offset(
    compiler: Compiler, node: exp.Expr, kind: str, order: list[Typed], context: Context
) -> str:
    """How far a frame reaches: a literal or a parameter; SQLite refuses NULL and less than 0."""
    if not isinstance(node, exp.Literal | exp.Parameter | exp.Cast):
        raise errors.invalid_argument(
            "Window framing expression must be a literal or parameter that is not negative"
        )
    if kind == "RANGE":
        if len(order) != 1 or (order[0].type or INT64).code not in NUMBERS:
            raise errors.invalid_argument(
                "A RANGE window with an offset needs exactly one numeric ORDER BY key"
            )
        if (order[0].type or INT64).code is not TypeCode.INT64:
            raise errors.unimplemented(
                f"a RANGE window with an offset over {name_of(order[0].type)}"
            )
    where = "Window framing expression"
    return require(compiler.compile(node, Scope(), context), INT64, context, where).sql
