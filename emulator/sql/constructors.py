"""Arrays and structs in expressions: literals, subqueries and access to their parts."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce, require, unify
from emulator.sql.compiler import Compiler, Handler, refuse_other_clauses
from emulator.sql.composites import (
    array_of,
    element_value,
    refuse_array_of_arrays,
    struct_of,
)
from emulator.sql.scope import Context, Scope
from emulator.sql.subqueries import array_subquery
from emulator.sql.types import Typed, name_of
from emulator.values.types import INT64, STRING, array
from spanner_schema.model.column_types import Type, TypeCode


def array_literal(compiler: Compiler, node: exp.Array, scope: Scope, context: Context) -> Typed:
    """[a, b], ARRAY[a, b], ARRAY(SELECT ...)."""
    inside = node.expressions
    if len(inside) == 1 and isinstance(inside[0], exp.Query) and not has_brackets(node):
        return array_subquery(compiler, inside[0], scope, context)
    items = [compiler.compile(each, scope, context) for each in inside]
    if not items:
        return Typed("'[]'", array(INT64), literal="[]", parts=())
    unified, type_ = unify(items, context, "ARRAY")
    refuse_array_of_arrays(type_)
    values = array_of(unified, type_)
    # NULL itself can still become of another type.
    nulls = [item.type is None and item.parameter is None for item in items]
    parts = [
        replace(part, type=None) if null else part
        for part, null in zip(unified, nulls, strict=True)
    ]
    return replace(values, parts=tuple(parts))


def has_brackets(node: exp.Array) -> bool:
    """Whether it is [(SELECT ...)], an array of a scalar subquery, not ARRAY(SELECT ...)."""
    return isinstance(node.expressions[0], exp.Subquery)


def struct_literal(compiler: Compiler, node: exp.Struct, scope: Scope, context: Context) -> Typed:
    """STRUCT(a AS x, b)."""
    items, names = [], []
    for each in node.expressions:
        named = isinstance(each, exp.PropertyEQ)
        item = compiler.compile(each.expression if named else each, scope, context)
        items.append(item)
        names.append(each.this.name if named else item.column)
    return struct_of(items, names)


def typed_constructor(
    compiler: Compiler, node: exp.Array | exp.Struct, target: Type, scope: Scope, context: Context
) -> Typed:
    """ARRAY<T>[a, ...], STRUCT<T, ...>(a, ...): each part becomes of its type by itself."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    if target.element is not None:
        refuse_array_of_arrays(target.element)
        element = target.element
        return array_of([require_part(i, element, context) for i in items], element)
    if len(items) != len(target.fields):
        raise errors.invalid_argument(
            f"STRUCT type has {len(target.fields)} fields but constructor call has"
            f" {len(items)} fields"
        )
    pairs = zip(items, target.fields, strict=True)
    fields = [require_part(item, field.type, context) for item, field in pairs]
    return struct_of(fields, [field.name for field in target.fields])


def require_part(item: Typed, target: Type, context: Context) -> Typed:
    """An element or a field in its type."""
    converted = coerce(item, target, context)
    if converted is None:
        raise errors.invalid_argument(
            f"A value of type {name_of(item.type)} does not coerce to {name_of(target)}"
        )
    return converted


def tuple_literal(compiler: Compiler, node: exp.Tuple, scope: Scope, context: Context) -> Typed:
    """(a, b): a struct whose fields have no names."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    return struct_of(items, [""] * len(items))


def subscript(compiler: Compiler, node: exp.Bracket, scope: Scope, context: Context) -> Typed:
    """array[OFFSET(n)], [ORDINAL(n)], [SAFE_...]; document[n], document['name']."""
    refuse_other_clauses(node, "this", "expressions", "offset", "safe")
    values = compiler.compile(node.this, scope, context)
    position = compiler.compile(node.expressions[0], scope, context)
    if values.type is not None and values.type.code is TypeCode.JSON:
        if node.args.get("offset") is not None:
            raise errors.invalid_argument(
                "Subscript access using [OFFSET(INT64)] is not supported on values of type JSON"
            )
        return json_subscript(values, position, context)
    if values.type is None or values.type.element is None:
        raise errors.invalid_argument(
            f"Subscript access is not supported on {name_of(values.type)}"
        )
    if node.args.get("offset") is None:
        raise errors.invalid_argument(
            "Array elements are accessed as array[OFFSET(n)] or array[ORDINAL(n)]"
        )
    position = require(position, INT64, context, "An array position")
    safe = 1 if node.args.get("safe") else 0
    sql = f"fn_element({values.sql}, {position.sql} - {node.args['offset']}, {safe})"
    return element_value(sql, values.type.element)


def json_subscript(document: Typed, position: Typed, context: Context) -> Typed:
    """A member by its name, an element by its place."""
    key = coerce(position, INT64, context) if position.type == INT64 else None
    if key is None:
        key = require(position, STRING, context, "A JSON subscript")
        return Typed(f"fn_json_member({document.sql}, {key.sql})", document.type)
    return Typed(f"fn_json_item({document.sql}, {key.sql})", document.type)


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Array: array_literal,
    exp.Struct: struct_literal,
    exp.Tuple: tuple_literal,
    exp.Bracket: subscript,
}
