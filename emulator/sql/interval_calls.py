"""INTERVAL values: literals, MAKE_INTERVAL, arithmetic with times and numbers."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce, require
from emulator.sql.compiler import Call, Compiler, refuse_other_clauses
from emulator.sql.functions.intervals import (
    PARTS,
    interval_of_seconds,
    interval_of_unit,
    parse_range,
)
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import DATE, INT64, INTERVAL, STRING, TIMESTAMP


def interval(compiler: Compiler, node: exp.Interval, scope: Scope, context: Context) -> Typed:
    """INTERVAL n unit, INTERVAL 'text' unit TO unit."""
    refuse_other_clauses(node, "this", "unit")
    if isinstance(node.unit, exp.IntervalSpan):
        if not isinstance(node.this, exp.Literal):
            raise errors.invalid_argument("INTERVAL ... TO ... needs a string literal")
        parts = (part_name(node.unit.args[k]) for k in ("this", "expression"))
        return read_literal(parse_range, node.this.name, *parts)
    unit = part_name(node.unit)
    interval_of_unit(0, unit)
    if isinstance(node.this, exp.Literal):
        if unit == "SECOND" and "." in node.this.name:
            return read_literal(interval_of_seconds, node.this.name)
        try:
            amount = str(int(node.this.name))
        except ValueError as error:
            raise errors.invalid_argument(
                f"Invalid amount of an INTERVAL: {node.this.name!r}"
            ) from error
        if not INT64_MIN <= int(amount) <= INT64_MAX:
            raise errors.invalid_argument(f"Invalid integer literal: {amount}")
    else:
        item = compiler.compile(node.this, scope, context)
        amount = require(item, INT64, context, "The amount of the INTERVAL").sql
    # Computed with its row: a branch that is not taken may be out of range.
    return Typed(f"fn_interval({amount}, '{unit}')", INTERVAL)


def read_literal(read: Callable[..., str], *texts: str) -> Typed:
    """A literal with its value. Raises INVALID_ARGUMENT also for one that is out of range."""
    try:
        return Typed(quote_text(read(*texts)), INTERVAL)
    except errors.SpannerError as error:
        raise errors.invalid_argument(error.message) from error


def part_name(node: exp.Expr | None) -> str:
    """The name of a date part."""
    if not isinstance(node, exp.Var) or not node.name.isidentifier():
        raise errors.invalid_argument("An INTERVAL needs a date part")
    return node.name.upper()


def make_interval(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """MAKE_INTERVAL([year,] [month,] ...): by place and by name; missing parts are 0."""
    values: dict[str, str] = {}
    for place, each in enumerate(node.expressions):
        named = isinstance(each, exp.Kwarg)
        name = each.this.name.upper() if named else PARTS[place] if place < len(PARTS) else ""
        if name not in PARTS or name in values or (not named and len(values) != place):
            raise errors.invalid_argument("No matching signature for function MAKE_INTERVAL")
        value = compiler.compile(each.expression if named else each, scope, context)
        values[name] = require(value, INT64, context, f"The {name} of MAKE_INTERVAL").sql
    listed = ", ".join(values.get(part, "0") for part in PARTS)
    return Typed(f"fn_make_interval({listed})", INTERVAL)


def justify(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """JUSTIFY_HOURS, JUSTIFY_DAYS, JUSTIFY_INTERVAL."""
    name = node.name.upper()
    if len(node.expressions) != 1:
        raise errors.invalid_argument(f"Number of arguments does not match for function {name}")
    item = compiler.compile(node.expressions[0], scope, context)
    item = require(item, INTERVAL, context, f"The argument of {name}")
    return Typed(f"fn_{name.lower()}({item.sql})", INTERVAL)


def arithmetic(name: str, items: list[Typed], context: Context) -> Typed | None:
    """+ - * / where an INTERVAL takes part or comes out; None for others."""
    left, right = items
    types = (left.type, right.type)
    if name == "sub" and INTERVAL not in types and types in {(DATE, DATE), (TIMESTAMP, TIMESTAMP)}:
        kind = "date" if left.type == DATE else "timestamp"
        return Typed(f"fn_{kind}_between({left.sql}, {right.sql})", INTERVAL)
    if INTERVAL not in types:
        return None
    if name in {"mul", "div"} and left.type == INTERVAL:
        number = coerce(right, INT64, context)
        if number is not None:
            return Typed(f"fn_interval_{name}({left.sql}, {number.sql})", INTERVAL)
    if name == "mul" and right.type == INTERVAL:
        return arithmetic(name, [right, left], context)
    if name in {"add", "sub"}:
        return sum_of(name, left, right, context)
    return None


def sum_of(name: str, left: Typed, right: Typed, context: Context) -> Typed | None:
    """timestamp + interval, interval + timestamp, timestamp - interval, interval + interval."""
    if left.type == INTERVAL and right.type == TIMESTAMP and name == "add":
        left, right = right, left
    if left.type == TIMESTAMP and right.type == INTERVAL:
        word = "plus" if name == "add" else "minus"
        return Typed(f"fn_timestamp_{word}({left.sql}, {right.sql})", TIMESTAMP)
    first, other = coerce(left, INTERVAL, context), coerce(right, INTERVAL, context)
    if first is None or other is None or STRING in {left.type, right.type}:
        return None
    return Typed(f"fn_interval_{name}({first.sql}, {other.sql})", INTERVAL)


CALLS: dict[str, Call] = {
    "MAKE_INTERVAL": make_interval,
    "JUSTIFY_HOURS": justify,
    "JUSTIFY_DAYS": justify,
    "JUSTIFY_INTERVAL": justify,
}
