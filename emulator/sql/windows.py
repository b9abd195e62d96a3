"""Window functions: Spanner has none, and neither has this server."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed


def window(compiler: Compiler, node: exp.Window, scope: Scope, context: Context) -> Typed:
    """f(...) OVER (...)."""
    raise errors.unimplemented(f"the window function {node.this.sql('bigquery')[:60]}")
