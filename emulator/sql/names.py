"""Names in expressions: columns, paths into structs, parameters, aliases."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Compiler, Handler
from emulator.sql.composites import struct_field, struct_of
from emulator.sql.protos import proto_field
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.sql.user_functions import call_function
from spanner_schema.model.column_types import TypeCode


def column(compiler: Compiler, node: exp.Column, scope: Scope, context: Context) -> Typed:
    """A name or a path: ``c``, ``t.c``, ``t.c.field``, ``c.field.field``."""
    if isinstance(node.this, exp.Star):
        raise errors.invalid_argument("* is not allowed here")
    first, *rest = [part.name for part in node.parts]
    item = scope.aliases.get(first.casefold())
    if item is not None:
        refuse_aggregated(item, scope)
        return resolve_path(item, rest, context)
    if rest and scope.relation(first) is not None and scope.find(rest[0], first) is not None:
        resolved = scope.resolve(rest[0], first)
        return resolve_path(replace(resolved, column=rest[0]), rest[1:], context)
    if not rest and scope.names_row(first):
        return whole_row(scope, first)
    if not rest and first.upper() in BARE_CALLS and scope.find(first, None) is None:
        return compiler.compile(exp.Anonymous(this=first), scope, context)
    resolved = scope.resolve(first, None) if not rest else path_owner(scope, first, rest)
    return resolve_path(replace(resolved, column=first), rest, context)


def refuse_aggregated(alias: Typed, scope: Scope) -> None:
    """INVALID_ARGUMENT for an aggregate of an item that is one itself."""
    if scope.in_aggregate and scope.grouped is not None and alias.sql not in scope.grouped:
        raise errors.invalid_argument("Aggregations of aggregations are not allowed")


def path_owner(scope: Scope, first: str, rest: list[str]) -> Typed:
    """The value to which the fields of a path belong."""
    relation = scope.relation(first)
    if relation is not None and relation.value is None:
        raise errors.invalid_argument(f"Name {rest[0]} not found inside {first}")
    return scope.resolve(first, None)


def resolve_path(value: Typed, fields: list[str], context: Context) -> Typed:
    """A value, or the field of a field of it; JSON and messages are entered by names too."""
    for name in fields:
        code = value.type.code if value.type is not None else None
        if code is TypeCode.JSON:
            value = replace(json_member(value, name), column=name)
        elif code is TypeCode.PROTO:
            value = proto_field(value, name, context.protos)
        else:
            value = struct_field(value, name)
    return value


def json_member(owner_: Typed, name: str) -> Typed:
    """document.name: JSON, NULL if the member is missing."""
    quoted = name.replace("'", "''")
    return Typed(f"fn_json_member({owner_.sql}, '{quoted}')", owner_.type)


def whole_row(scope: Scope, alias: str) -> Typed:
    """The alias of a table as a value: a STRUCT of its columns."""
    relation = scope.relation(alias)
    assert relation is not None
    columns = [c for c in relation.columns if c.column.casefold() not in relation.hidden]
    if scope.grouped is not None and not scope.in_aggregate:
        raise errors.invalid_argument(
            f"SELECT list expression references table alias {alias} which is neither grouped"
            " nor aggregated"
        )
    return replace(struct_of(columns, [c.column for c in columns]), column=alias)


def identifier(compiler: Compiler, node: exp.Identifier, scope: Scope, context: Context) -> Typed:
    """A bare name, as lambdas have them."""
    return scope.resolve(node.name, None)


def dot(compiler: Compiler, node: exp.Dot, scope: Scope, context: Context) -> Typed:
    """(expression).field."""
    if isinstance(node.expression, exp.Anonymous):
        if node.this.name.upper() in {"ML", "AI"}:
            raise errors.unimplemented(f"the function {node.sql('bigquery')[:40]}")
        name = f"{node.this.name}.{node.expression.name}"
        called = call_function(compiler, name, node.expression, scope, context)
        if called is not None:
            return called
        raise errors.invalid_argument(f"Function not found: {node.sql('bigquery')[:60]}")
    value = compiler.compile(node.this, scope, context)
    return resolve_path(value, [node.expression.name], context)


def parameter(compiler: Compiler, node: exp.Parameter, scope: Scope, context: Context) -> Typed:
    """@name."""
    if isinstance(node.this, exp.Parameter):
        raise errors.unimplemented(f"the system variable @@{node.this.name}")
    return context.parameter(node.this.name)


def paren(compiler: Compiler, node: exp.Paren, scope: Scope, context: Context) -> Typed:
    """(expression)."""
    inner = compiler.compile(node.this, scope, context)
    return replace(inner, sql=f"({inner.sql})")


def alias(compiler: Compiler, node: exp.Alias, scope: Scope, context: Context) -> Typed:
    """expression AS name."""
    return replace(compiler.compile(node.this, scope, context), column=node.alias)


BARE_CALLS = {"CURRENT_TIMESTAMP", "CURRENT_DATE"}
"""Functions that need no parentheses."""

HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: column,
    exp.Identifier: identifier,
    exp.Dot: dot,
    exp.Parameter: parameter,
    exp.Paren: paren,
    exp.Alias: alias,
}
