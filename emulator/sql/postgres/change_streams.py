"""The read functions of change streams: ``SELECT * FROM spanner.read_json_<stream>(...)``."""

from __future__ import annotations

import re

from emulator import errors
from emulator.sql.change_streams import ARGUMENTS, ReadArgument, ReadCall, wrong_call
from emulator.sql.functions.postgres_casts import parse_bigint
from emulator.sql.postgres.nodes import Node
from emulator.sql.postgres.parser import parse_statement
from emulator.values.types import INT64
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.placements import ReadFunction, list_read_functions

NAMED = re.compile(r"\bread_(json|proto_bytes)_", re.IGNORECASE)
OWNER = "spanner"


def read_call(sql: str, schema: Schema) -> ReadCall | None:
    """The call that a query consists of; None when it calls no read function."""
    if not schema.change_streams or NAMED.search(sql) is None:
        return None
    statement = Node.of(parse_statement(sql))
    sources = statement.nodes("fromClause") if statement.kind == "SelectStmt" else []
    if len(sources) != 1 or sources[0].kind != "RangeFunction":
        return None
    (functions,) = sources[0].nodes("functions")
    called = functions.nodes("items")[0]
    names = called.names("funcname") if called.kind == "FuncCall" else []
    if len(names) != 2 or names[0] != OWNER:
        return None
    function = find_function(names[1], schema)
    if function is None:
        raise errors.invalid_argument(f"function {'.'.join(names)} does not exist")
    expect_whole_query(statement, sources[0], names[1])
    called.ignore("funcformat")
    nodes = called.nodes("args")
    called.finish()
    if len(nodes) != len(ARGUMENTS):
        raise wrong_call(f"it takes {len(ARGUMENTS)} arguments, not {len(nodes)}")
    pairs = zip(ARGUMENTS, nodes, strict=True)
    arguments = {name: read_argument(name, node) for name, node in pairs}
    return ReadCall(function.stream.name, ".".join(names), function.placement, arguments, names[1])


def find_function(name: str, schema: Schema) -> ReadFunction | None:
    """The read function of this name: what the records are in is a part of it."""
    for function in list_read_functions(schema):
        if function.write(Dialect.POSTGRESQL) == f"{OWNER}.{name}":
            return function
    return None


def expect_whole_query(statement: Node, source: Node, name: str) -> None:
    """Raises UNIMPLEMENTED unless a query only selects the one column of a read function."""
    targets = statement.nodes("targetList")
    fields = [each.node("val") for each in targets]
    shown = [each.nodes("fields")[-1] if each.kind == "ColumnRef" else each for each in fields]
    plain = len(shown) == 1 and (shown[0].kind == "A_Star" or shown[0].get("sval") == name)
    if not plain or targets[0].get("name"):
        raise errors.unimplemented(
            "a change stream TVF combined with any other SQL (records are read using"
            f" `SELECT * FROM spanner.{name}(<args>)`)"
        )
    statement.ignore("op", "limitOption")
    statement.finish()
    source.ignore("alias", "is_rowsfrom")
    source.finish()


def read_argument(name: str, node: Node) -> ReadArgument:
    """An argument: a parameter or a literal. Raises INVALID_ARGUMENT for another expression."""
    while node.kind == "TypeCast":
        node = node.node("arg")
    if node.kind == "ParamRef":
        return ReadArgument(parameter=f"p{node.get('number')}")
    if node.kind == "A_Const" and node.get("isnull"):
        return ReadArgument()
    text = literal_text(node, is_integer=ARGUMENTS[name] is INT64)
    if text is None:
        raise wrong_call(f"argument {name} is neither a literal of its type nor a query parameter")
    return ReadArgument(text=text)


def literal_text(node: Node, *, is_integer: bool) -> str | None:
    """The text of a constant; quoted ones have the type that is expected, as in PostgreSQL."""
    if node.kind != "A_Const":
        return None
    if (quoted := node.part("sval")) is not None:
        text = quoted.text("sval")
        return str(parse_bigint(text)) if is_integer else text
    number = node.part("ival") if is_integer else None
    return None if number is None else str(number.get("ival") or 0)
