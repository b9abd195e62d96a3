"""The read functions of change streams: ``SELECT ChangeRecord FROM READ_<stream>(...)``.

``SELECT *`` is the same, as in Spanner: the function has one column. Debezium's connector sends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from emulator.errors import SpannerError, invalid_argument, unimplemented
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.googlesql.statement_trees import read_statement
from emulator.values.types import BOOL, INT64, STRING
from spanner_schema.model.column_types import StructField, Type, TypeCode
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.placements import ReadFunction, list_read_functions
from spanner_schema.syntax.protos import list_bundle_types

NAMED = re.compile(r"\bREAD_\w++\s*+`?\s*+\(", re.IGNORECASE)
FUNCTION = "READ_"
COLUMN = "ChangeRecord"
TIMESTAMP = Type(TypeCode.TIMESTAMP)
JSON = Type(TypeCode.JSON)
ARGUMENTS = {
    "start_timestamp": TIMESTAMP,
    "end_timestamp": TIMESTAMP,
    "partition_token": STRING,
    "heartbeat_milliseconds": INT64,
    "read_options": Type(TypeCode.ARRAY, element=STRING),
}
"""The arguments of a read function, in order, and their types."""


def array_of_structs(**fields: Type) -> Type:
    """ARRAY<STRUCT<...>>, the form of everything in a change record."""
    members = tuple(StructField(name, type_) for name, type_ in fields.items())
    return Type(TypeCode.ARRAY, element=Type(TypeCode.STRUCT, fields=members))


CHANGE_RECORD = array_of_structs(
    data_change_record=array_of_structs(
        commit_timestamp=TIMESTAMP,
        record_sequence=STRING,
        server_transaction_id=STRING,
        is_last_record_in_transaction_in_partition=BOOL,
        table_name=STRING,
        column_types=array_of_structs(
            name=STRING, type=JSON, is_primary_key=BOOL, ordinal_position=INT64
        ),
        mods=array_of_structs(keys=JSON, new_values=JSON, old_values=JSON),
        mod_type=STRING,
        value_capture_type=STRING,
        number_of_records_in_transaction=INT64,
        number_of_partitions_in_transaction=INT64,
        transaction_tag=STRING,
        is_system_transaction=BOOL,
    ),
    heartbeat_record=array_of_structs(timestamp=TIMESTAMP),
    child_partitions_record=array_of_structs(
        start_timestamp=TIMESTAMP,
        record_sequence=STRING,
        child_partitions=array_of_structs(
            token=STRING, parent_partition_tokens=Type(TypeCode.ARRAY, element=STRING)
        ),
    ),
)
"""The type of the one column of a read function."""


@dataclass(frozen=True, slots=True)
class ReadArgument:
    """The value of an argument: a parameter, or a text (None is NULL)."""

    parameter: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A query of a change stream; an empty ``placement`` is all of them.

    ``function`` is the name of the read function as GRANT writes it, ``column`` that of the
    result's one column.
    """

    stream: str
    function: str
    placement: str
    arguments: Mapping[str, ReadArgument]
    column: str = COLUMN


def read_call(sql: str, schema: Schema) -> ReadCall | None:
    """The call that a query consists of; None when it calls no read function.

    A query has the form ``SELECT ChangeRecord | * FROM READ_<stream>(...)``. Raises UNIMPLEMENTED
    when the call is a part of something else, as Spanner does.
    """
    if not schema.change_streams or NAMED.search(sql) is None:
        return None
    tree = read_statement(sql, list_bundle_types(schema)).tree
    for call in tree.find_all(exp.Anonymous):
        function = called_function(call, schema)
        if function is not None:
            expect_whole_query(tree, call, function)
            arguments = read_arguments(call.expressions)
            return ReadCall(function.stream.name, call.name, function.placement, arguments)
    return None


def called_function(call: exp.Anonymous, schema: Schema) -> ReadFunction | None:
    """The read function that a FROM clause calls."""
    if not isinstance(call.parent, exp.Table) or not call.name.upper().startswith(FUNCTION):
        return None
    name = call.name[len(FUNCTION) :].casefold()
    functions = list_read_functions(schema)
    return next((each for each in functions if each.name.casefold() == name), None)


def expect_whole_query(tree: exp.Expr, call: exp.Anonymous, function: ReadFunction) -> None:
    """Raises UNIMPLEMENTED unless a query only selects the one column of a read function."""
    table = call.parent
    clauses = {name for name, value in tree.args.items() if value not in (None, False, [], "")}
    if (
        not isinstance(tree, exp.Select)
        or clauses != {"expressions", "from_"}
        or table is None
        or table.parent is not tree.args["from_"]
        or not {name for name, value in table.args.items() if value} <= {"this", "alias"}
        or [selects_record(each, table.alias) for each in tree.expressions] != [True]
    ):
        raise unimplemented(
            "a change stream TVF combined with any other SQL (records are read using "
            f"`SELECT ChangeRecord FROM READ_{function.name}(<args>)`)"
        )


def selects_record(item: exp.Expr, alias: str) -> bool:
    """Whether an item of a SELECT list gives the record, under its own name."""
    if isinstance(item, exp.Star):
        return not any(item.args.values())
    if not isinstance(item, exp.Column):
        return False
    if item.table and item.table.casefold() != alias.casefold():
        return False
    inner = item.this
    if isinstance(inner, exp.Star):
        return not any(inner.args.values())
    return bool(inner.name.casefold() == COLUMN.casefold())


def read_arguments(nodes: Sequence[exp.Expr]) -> dict[str, ReadArgument]:
    """Arguments by position or by name."""
    arguments: dict[str, ReadArgument] = {}
    named = False
    for place, node in enumerate(nodes):
        if isinstance(node, exp.Kwarg):
            named, name, value = True, node.this.name.casefold(), node.expression
        elif named or place >= len(ARGUMENTS):
            raise wrong_call(f"argument {place + 1} stands after a named one or is one too many")
        else:
            name, value = tuple(ARGUMENTS)[place], node
        if name not in ARGUMENTS or name in arguments:
            raise wrong_call(f"argument {name} is unknown or given twice")
        arguments[name] = read_argument(name, value)
    missing = [n for n in ("start_timestamp", "heartbeat_milliseconds") if n not in arguments]
    if missing:
        raise wrong_call(f"argument {missing[0]} is missing")
    return arguments


def read_argument(name: str, node: exp.Expr) -> ReadArgument:
    """An argument: a parameter or a literal of its type. Raises INVALID_ARGUMENT for all else."""
    if isinstance(node, exp.Parameter):
        return ReadArgument(parameter=node.name)
    if isinstance(node, exp.Null):
        return ReadArgument()
    text = literal_text(node, ARGUMENTS[name])
    if text is None:
        raise wrong_call(
            f"argument {name} is neither a literal of its type nor a query parameter:"
            f" {node.sql()[:40]!r}"
        )
    return ReadArgument(text=text)


def literal_text(node: exp.Expr, type_: Type) -> str | None:
    """The text of a literal that coerces to a type, as strings do to TIMESTAMP; else None."""
    if type_ is INT64:
        sign, number = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
        fits = number.is_int and int(number.name) <= INT64_MAX
        return f"{sign}{number.name}" if fits else None
    if type_ is TIMESTAMP and isinstance(node, exp.Cast):
        node = node.this if node.to.this is exp.DType.TIMESTAMPTZ else node
    return node.name if node.is_string and type_ in {STRING, TIMESTAMP} else None


def wrong_call(why: str) -> SpannerError:
    """A call that does not fit the function."""
    return invalid_argument(f"No matching signature for the read function: {why}.")
