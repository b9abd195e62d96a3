"""The names of types: of casts, and as messages and columns write them."""

from __future__ import annotations

from emulator import errors
from emulator.sql.postgres.nodes import Node
from emulator.values.served_types import SERVED_TYPES
from emulator.values.types import (
    INTERVAL,
    PG_NUMERIC,
    STRING,
    array,
)
from spanner_schema.model.column_types import Type

BY_NAME = {
    name: Type(code)
    for code, served in SERVED_TYPES.items()
    if (known := served.postgresql) is not None
    for name in (known.name, *known.aliases)
}


MISSING = {
    **{name: name for name in ("bit", "box", "cidr", "circle", "inet", "json", "line", "lseg")},
    **{name: name for name in ("macaddr", "macaddr8", "money", "path", "pg_lsn", "point")},
    **{name: name for name in ("polygon", "tsquery", "tsvector", "xml")},
    "bpchar": "character",
    "char": '"char"',
    "int2": "smallint",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timetz": "time with time zone",
    "varbit": "bit varying",
}
"""The types of PostgreSQL that Spanner has not, with the names by which PostgreSQL shows them."""


def read_type(node: Node) -> tuple[Type, tuple[int, ...]]:
    """A type as a cast names it, and its modifiers. Raises UNIMPLEMENTED for another one."""
    parts = node.names("names")
    if len(parts) > 1 and parts[0] in {"pg_catalog", "spanner"}:
        owner, *parts = parts
        parts = parts if owner == "pg_catalog" else [owner, *parts]
    name = ".".join(parts)
    type_ = BY_NAME.get(name)
    if name in MISSING:
        raise errors.unsupported(f"The Postgres Type is not supported: {MISSING[name]}")
    if type_ is None:
        raise errors.unimplemented(f"the type {name}")
    modifiers = tuple(integer_of(each) for each in node.nodes("typmods"))
    if modifiers and type_ not in {STRING, PG_NUMERIC, INTERVAL}:
        raise errors.unimplemented(f"the type {name} with a modifier")
    bounds = node.nodes("arrayBounds")
    if len(bounds) > 1:
        raise errors.invalid_argument("Multi-dimensional arrays are not supported.")
    node.ignore("typemod")
    node.finish()
    if bounds:
        if modifiers:
            raise errors.unimplemented(f"an array of {name} with a modifier")
        return array(type_), ()
    return type_, modifiers


def integer_of(node: Node) -> int:
    """The number that a constant is."""
    value = node.get("ival")
    if node.kind != "A_Const" or value is None:
        raise errors.invalid_argument("Type modifiers must be simple constants")
    return int(value.get("ival", 0))


def show_type(type_: Type | None) -> str:
    """A type as messages write it."""
    if type_ is None:
        return "unknown"
    if type_.element is not None:
        return f"{show_type(type_.element)}[]"
    known = SERVED_TYPES[type_.code].postgresql
    return (known.shown or known.name) if known is not None else type_.code.value.lower()


def name_column(type_: Type) -> str:
    """The name of a column that is a constant, cast to a type."""
    if type_.element is not None:
        return name_column(type_.element)
    known = SERVED_TYPES[type_.code].postgresql
    return (known.column or known.name) if known is not None else show_type(type_)
