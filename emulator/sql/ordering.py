"""ORDER BY keys as SQLite text: NULL is least, then NaN."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.types import BOOL, FLOATS, STRING
from spanner_schema.model.column_types import TypeCode

NAN_GREATEST = "nan_is_greatest"
"""Key in ``Ordered.meta``: NaN sorts after every number, as its stored form does."""


def order_operand(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """What a key of ORDER BY is of, and its collation."""
    return (node.this, node.expression) if isinstance(node, exp.Collate) else (node, None)


def collate(compiler: Compiler, item: Typed, name: exp.Expr | None, context: Context) -> Typed:
    """A key with COLLATE: a text that sorts as the collation says."""
    if name is None:
        return item
    if item.type not in {STRING, None}:
        raise errors.invalid_argument(
            "COLLATE can only be applied to expressions of type STRING, but was applied to"
            f" {name_of(item.type)}"
        )
    while isinstance(name, exp.Paren):
        name = name.this
    literal = isinstance(name, exp.Literal) and name.is_string
    if not literal and not isinstance(name, exp.Parameter):
        raise errors.invalid_argument("COLLATE must be followed by a string literal or parameter")
    collation = require(compiler.compile(name, Scope(), context), STRING, context, "COLLATE")
    return Typed(f"fn_collation_key({item.sql}, {collation.sql})", STRING)


def order_terms(item: Typed, ordered: exp.Ordered) -> str:
    """The terms that sort by a value."""
    if item.type is not None and item.type.code in {
        TypeCode.ARRAY,
        TypeCode.STRUCT,
        TypeCode.JSON,
        TypeCode.PROTO,
    }:
        raise errors.invalid_argument(
            f"ORDER BY does not support expressions of type {name_of(item.type)}"
        )
    if ordered.args.get("with_fill"):
        raise errors.unimplemented("ORDER BY ... WITH FILL")
    item = to_comparable(item)
    if item.type is not None and item.type.code is TypeCode.PG_JSONB:
        raise errors.unimplemented("ORDER BY of jsonb")
    # SQLite takes a plain number for the place of a column, and makes one of FALSE AND x.
    plain = item.literal is not None or (
        item.type == BOOL and not isinstance(ordered.this, exp.Column | exp.Literal)
    )
    sql = f"coalesce({item.sql}, NULL)" if plain else item.sql
    down = " DESC" if ordered.args.get("desc") else ""
    # Without the words, NULLs come first upwards and last downwards, as in SQLite.
    nulls = ""
    if bool(ordered.args.get("nulls_first")) == bool(down):
        nulls = " NULLS FIRST" if down else " NULLS LAST"
    if item.type is not None and item.type.code in FLOATS and not ordered.meta.get(NAN_GREATEST):
        number = f"({sql} <> 'NaN')"
        return f"{number}{down}{nulls}, {sql}{down}{nulls}"
    return f"{sql}{down}{nulls}"
