"""What the handlers of expressions are given: the compiler itself, seen from below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from emulator import errors
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Columns, Typed


class Compiler(Protocol):
    """Compiles expressions, and the queries inside them."""

    columns_before_aliases: bool

    def compile(self, node: exp.Expr, scope: Scope, context: Context) -> Typed:
        """One expression. Raises INVALID_ARGUMENT, or UNIMPLEMENTED for an unsupported one."""
        ...

    def boolean(self, node: exp.Expr, scope: Scope, context: Context, where: str) -> Typed:
        """An expression that must be BOOL."""
        ...

    def subquery(
        self, node: exp.Expr, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        """A query inside an expression: SQLite text and its columns."""
        ...


# The node is of the type under which the handler is registered.
Handler = Callable[[Compiler, Any, Scope, Context], Typed]
Call = Callable[[Compiler, exp.Anonymous, Scope, Context], Typed]


def refuse_other_clauses(node: exp.Expr, *accepted: str) -> None:
    """UNIMPLEMENTED when the parser found a clause that the caller does not look at."""
    for name, value in node.args.items():
        if name not in accepted and value not in (None, False, [], ""):
            word = name.strip("_").replace("_", " ").upper()
            raise errors.unimplemented(f"{word} in {node.sql('bigquery')[:80]!r}")
