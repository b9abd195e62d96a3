"""The common type of operands in the PostgreSQL dialect, and their comparison."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Compiler
from emulator.sql.postgres import casts
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import (
    INTERVAL,
    PG_JSONB,
    PG_NUMERIC,
)
from spanner_schema.model.column_types import Type, TypeCode

NUMBERS = casts.NUMBERS


def no_operator(sign: str, items: list[Typed]) -> errors.SpannerError:
    """PostgreSQL's words for operands that an operator does not take."""
    shown = f" {sign} ".join(
        "unknown" if casts.is_unknown(each) else show_type(each.type) for each in items
    )
    return errors.invalid_argument(f"operator does not exist: {shown}")


def match(items: list[Typed], sign: str, context: Context) -> tuple[list[Typed], Type]:
    """The operands as one type. Raises INVALID_ARGUMENT where they have none."""
    target = casts.operand_type(items)
    converted = casts.coerce_all(items, target, context)
    if converted is None:
        raise no_operator(sign, items)
    return converted, target


def match_type(items: list[Typed], type_: Type, sign: str, context: Context) -> list[str]:
    """The operands as a type. Raises INVALID_ARGUMENT where one is of another."""
    converted = casts.coerce_all(items, type_, context)
    if converted is None:
        raise no_operator(sign, items)
    return [item.sql for item in converted]


def comparable(item: Typed) -> str:
    """What is compared: numerics by their keys, documents without the scale of numbers."""
    if item.type == PG_NUMERIC:
        return f"pg_numeric_key({item.sql})"
    if item.type == PG_JSONB:
        return f"pg_jsonb_key({item.sql})"
    if item.type == INTERVAL:
        return f"fn_interval_order({item.sql})"
    return item.sql


def compare(left: Typed, sign: str, right: Typed, type_: Type) -> str:
    """A comparison of two of one type. NaN, a text in storage, is greater than every number."""
    ordered = sign not in {"=", "<>"}
    if ordered and type_.code in {TypeCode.ARRAY, TypeCode.PG_JSONB}:
        raise errors.unimplemented(f"{sign} of the type {show_type(type_)}")
    if type_.code is TypeCode.ARRAY and type_.element in {PG_NUMERIC, PG_JSONB}:
        raise errors.unimplemented(f"{sign} of the type {show_type(type_)}")
    return f"({comparable(left)} {sign} {comparable(right)})"


def two(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> list[Typed]:
    """The operands."""
    return [compiler.compile(each, scope, context) for each in node.expressions]
