"""WITH expressions: WITH(a AS 1, b AS a + 1, a + b)."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator.sql.compiler import Call, Compiler
from emulator.sql.parsed import WITH_FUNCTION
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed


def with_expression(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """The last argument, in which the names of those before it stand for their expressions."""
    outer_locals, outer_aliases = scope.locals, scope.aliases
    scope.locals, scope.aliases = dict(outer_locals), dict(outer_aliases)
    try:
        for each in node.expressions[:-1]:
            value = compiler.compile(each.expression, scope, context)
            name = each.this.name.casefold()
            scope.aliases.pop(name, None)
            scope.locals[name] = replace(value, literal=None, parts=None, column=each.this.name)
        result = compiler.compile(node.expressions[-1], scope, context)
    finally:
        scope.locals, scope.aliases = outer_locals, outer_aliases
    return replace(result, column="")


CALLS: dict[str, Call] = {WITH_FUNCTION: with_expression}
