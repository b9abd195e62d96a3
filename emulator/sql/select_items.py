"""The items of a SELECT list -> columns, with what stars expand to."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.composites import field_of
from emulator.sql.expressions import Expressions
from emulator.sql.protos import readable_fields
from emulator.sql.relations import relation_columns
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Columns, Output, Typed, distinct_names, name_of
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import TypeCode

PATH_PARTS = ("this", "table", "db")
"""The parts of a name in a tree, the last first."""


def compile_items(
    expressions: Expressions, node: exp.Select, scope: Scope, context: Context
) -> Columns:
    """The columns of a SELECT list."""
    outputs: list[Output] = []
    for each in node.expressions:
        columns = expand_star(expressions, each, scope, context)
        if columns is None:
            typed = scope.keyed.get(id(each)) or expressions.compile(each, scope, context)
            name = each.alias if isinstance(each, exp.Alias) else typed.column
            columns = [Output(name, typed, context.null_type)]
        outputs += columns
    return tuple(outputs)


def expand_star(
    expressions: Expressions, node: exp.Expr, scope: Scope, context: Context
) -> list[Output] | None:
    """The columns that *, alias.* and struct.* expand to; None for another item."""
    if isinstance(node, exp.Star):
        items = [check_grouped(item, scope) for item in scope.star]
        return apply_star_clauses(expressions, node, items, scope, context)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        relation = scope.relation(node.table)
        path = ".".join(part.name for part in node.parts[:-1])
        named = context.conversions is not None and path in context.tables
        if relation is not None and (named or len(node.parts) == 2):
            items = [check_grouped(i, scope) for i in relation_columns(relation)]
        else:
            owner = exp.Column(**dict(zip(PATH_PARTS, node.parts[-2::-1], strict=False)))
            items = fields_of_value(expressions.compile(owner, scope, context), context)
        return apply_star_clauses(expressions, node.this, items, scope, context)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
        items = fields_of_value(expressions.compile(node.this, scope, context), context)
        return apply_star_clauses(expressions, node.expression, items, scope, context)
    return None


def check_grouped(item: Typed, scope: Scope) -> Typed:
    """A column of a star, which must be grouped where there is a GROUP BY."""
    if scope.grouped is not None and item.sql not in scope.grouped:
        raise errors.invalid_argument(
            f"Star expansion expression references column {item.column} which is neither"
            " grouped nor aggregated"
        )
    return item


def apply_star_clauses(
    expressions: Expressions, node: exp.Star, items: list[Typed], scope: Scope, context: Context
) -> list[Output]:
    """The columns of a star after EXCEPT, REPLACE, and RENAME, which pipe syntax becomes."""
    dropped = node.args.get("except_") or node.args.get("except") or []
    excluded = {each.name.casefold() for each in dropped}
    replaced = {
        each.alias.casefold(): expressions.compile(each.this, scope, context)
        for each in node.args.get("replace") or []
    }
    renamed = {each.this.name.casefold(): each.alias for each in node.args.get("rename") or []}
    names = {item.column.casefold() for item in items}
    missing = sorted((excluded | replaced.keys() | renamed.keys()) - names)
    if missing:
        raise errors.invalid_argument(f"Column {missing[0]} of * EXCEPT or REPLACE not found")
    kept = [item for item in items if item.column.casefold() not in excluded]
    if not kept:
        raise errors.invalid_argument("SELECT * expands to zero columns")
    return [
        Output(
            renamed.get(item.column.casefold(), item.column),
            replaced.get(item.column.casefold(), item),
            context.null_type,
        )
        for item in kept
    ]


def fields_of_value(owner: Typed, context: Context) -> list[Typed]:
    """The fields of a struct or a message, for value.*."""
    if owner.type is not None and owner.type.code is TypeCode.PROTO:
        return list(readable_fields(owner, context.protos))
    if owner.type is None or owner.type.code is not TypeCode.STRUCT:
        raise errors.invalid_argument(f"Dot-star is not supported for type {name_of(owner.type)}")
    return [
        replace(field_of(owner, number), column=field.name)
        for number, field in enumerate(owner.type.fields)
    ]


def write_items(outputs: Columns) -> list[str]:
    """The items of a SELECT list as SQLite text."""
    names = distinct_names([each.name for each in outputs])
    return [
        f"{each.typed.sql} AS {quote_name(name)}" for each, name in zip(outputs, names, strict=True)
    ]
