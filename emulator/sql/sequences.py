"""GET_NEXT_SEQUENCE_VALUE and the functions that return a counter."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Call, Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import INT64
from spanner_schema.syntax import sequences

NEXT_VALUE = "GET_NEXT_SEQUENCE_VALUE"


def identity_counter(table: str, column: str) -> str:
    """How the counter of an IDENTITY column is called."""
    return f"{table}.{column}".casefold()


def sequence_counter(name: str) -> str:
    """How the counter of a sequence is called; no table can have this name."""
    return f"sequence {name}".casefold()


def next_value(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """GET_NEXT_SEQUENCE_VALUE(SEQUENCE s): drawn anew for each row."""
    context.draws = True
    return Typed(f"next_value_({quote_text(counter_name(node, context))})", INT64)


def internal_state(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GET_INTERNAL_SEQUENCE_STATE(SEQUENCE s): NULL before the first value."""
    return counter_state(counter_name(node, context))


def identity_state(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GET_TABLE_COLUMN_IDENTITY_STATE('table.column')."""
    item = compiler.compile(node.expressions[0], scope, context)
    table_name, _, column_name = (item.literal or "").rpartition(".")
    table = context.schema.table(table_name)
    if table is None:
        raise errors.invalid_argument(
            f"Table not found for the {node.name.upper()} function: {table_name}"
        )
    column = table.column(column_name)
    if column is None or column.identity is None:
        raise errors.invalid_argument(
            f"Identity column not found in table {table_name}: {column_name}"
        )
    return counter_state(identity_counter(table.name, column.name))


def counter_state(counter: str) -> Typed:
    """The counter as it is stored; the writing connection knows what it drew since."""
    text = quote_text(counter)
    kept = f'(SELECT counter FROM "$sequences" WHERE name = {text})'
    return Typed(f"sequence_state_({text}, {kept})", INT64)


def counter_name(node: exp.Anonymous, context: Context) -> str:
    """The counter of the sequence that is the one argument."""
    argument = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(argument, exp.Column):
        raise errors.invalid_argument(f"{node.name.upper()} takes one argument: SEQUENCE name")
    name = ".".join(part.name for part in argument.parts)
    sequence = sequences.find_sequence(context.schema, name)
    if sequence is None:
        raise errors.invalid_argument(f"Sequence not found: {name}")
    return sequence_counter(sequence.name)


def refuse_in_conditions(tree: exp.Expr) -> None:
    """Spanner: no value is drawn in a WHERE clause."""
    for where in tree.find_all(exp.Where):
        if any(call.name.upper() == NEXT_VALUE for call in where.find_all(exp.Anonymous)):
            raise errors.invalid_argument(f"{NEXT_VALUE} is not supported in a WHERE clause.")


FUNCTIONS: dict[str, Call] = {
    NEXT_VALUE: next_value,
    "GET_INTERNAL_SEQUENCE_STATE": internal_state,
    "GET_TABLE_COLUMN_IDENTITY_STATE": identity_state,
}
