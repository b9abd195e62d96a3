"""Spanner's types in the compiler: their names, and which of them convert to which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from emulator import errors
from emulator.values.protos import ProtoTypes
from emulator.values.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT64,
    INTERVAL,
    JSON,
    NUMBERS,
    NUMERIC,
    STRING,
    TIMESTAMP,
    UUID,
    array,
)
from spanner_schema.model.column_types import StructField, Type, TypeCode

BY_DTYPE = {
    "BIGINT": INT64,
    "INT": INT64,
    "DOUBLE": FLOAT64,
    "FLOAT": FLOAT32,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "BINARY": BYTES,
    "VARBINARY": BYTES,
    "BOOLEAN": BOOL,
    "DATE": DATE,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP": TIMESTAMP,
    "DECIMAL": NUMERIC,
    "JSON": JSON,
    "UUID": UUID,
    "INTERVAL": INTERVAL,
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A compiled expression. ``type`` None is not known yet: NULL, or a parameter without a type.

    ``literal`` holds a literal's own value, for coercion; ``parameter`` the name of a parameter;
    ``column`` the name that a result column takes from it; ``parts`` the elements or fields of an
    array or struct that is written out. ``may_be_null`` is true of NULL, of a parameter, of an
    aggregate of what may be no rows, and of what is made of them.
    """

    sql: str
    type: Type | None
    literal: str | None = None
    parameter: str | None = None
    column: str = ""
    parts: tuple[Typed, ...] | None = None
    may_be_null: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a query: its name ("" for none) and the expression that gives it."""

    name: str
    typed: Typed
    null_type: Type = INT64

    @property
    def type(self) -> Type:
        """NULL counts as INT64 (in PostgreSQL as a text), an untyped parameter as STRING."""
        return drop_length(self.typed.type or (STRING if self.typed.parameter else self.null_type))


Columns = tuple[Output, ...]


def drop_length(type_: Type) -> Type:
    """A type without its length: what expressions have."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return array(drop_length(type_.element))
    if type_.code is TypeCode.STRUCT:
        fields = tuple(StructField(f.name, drop_length(f.type)) for f in type_.fields)
        return Type(TypeCode.STRUCT, fields=fields)
    if type_.length is not None:
        return Type(type_.code)
    return type_


def name_of(type_: Type | None) -> str:
    """A type as messages write it."""
    if type_ is None:
        return "NULL"
    if type_.code is TypeCode.ARRAY:
        return f"ARRAY<{name_of(type_.element)}>"
    if type_.code is TypeCode.STRUCT:
        return f"STRUCT<{', '.join(f'{f.name} {name_of(f.type)}'.strip() for f in type_.fields)}>"
    return type_.proto_name or str(type_.code.value)


def read_datatype(node: exp.DataType, types: ProtoTypes) -> Type:
    """The type that a CAST names; ``types`` are those of the proto bundle."""
    kind = str(getattr(node.this, "name", node.this))
    if kind == "ARRAY" and node.expressions:
        return array(read_datatype(node.expressions[0], types))
    if kind == "STRUCT":
        return Type(
            TypeCode.STRUCT, fields=tuple(struct_field(each, types) for each in node.expressions)
        )
    if kind == "USERDEFINED":
        return read_type_name(str(node.args.get("kind")), types)
    if kind in BY_DTYPE and node.expressions:
        raise errors.invalid_argument("Parameterized types are not supported")
    if kind in BY_DTYPE:
        return BY_DTYPE[kind]
    raise errors.unimplemented(f"the type {node.sql('bigquery')}")


def read_type_name(name: str, types: ProtoTypes) -> Type:
    """A message or an enum by its full name. Raises INVALID_ARGUMENT."""
    type_ = types.type(name)
    if type_ is None:
        raise errors.invalid_argument(f"Type not found: {name}")
    return type_


def struct_field(node: exp.Expr, types: ProtoTypes) -> StructField:
    """A field of STRUCT<...>."""
    if isinstance(node, exp.ColumnDef) and isinstance(node.kind, exp.DataType):
        return StructField(node.name, read_datatype(node.kind, types))
    if isinstance(node, exp.DataType):
        return StructField("", read_datatype(node, types))
    raise errors.unimplemented(f"the field {node.sql('bigquery')}")


def common_type(types: list[Type]) -> Type | None:
    """The type that all can be widened to; None when there is none."""
    if not types:
        return None
    first = types[0]
    if all(t == first for t in types):
        return first
    codes = {t.code for t in types}
    if codes == {TypeCode.STRUCT} and len({len(t.fields) for t in types}) == 1:
        return common_struct(types)
    if codes == {TypeCode.ARRAY}:
        same = all(differ_in_names_only(first, type_) for type_ in types)
        return first if same else None
    if codes <= NUMBERS:
        if codes & FLOATS:
            return FLOAT64
        return NUMERIC
    return None


def differ_in_names_only(mine: Type | None, theirs: Type | None) -> bool:
    """Whether two types are one, or differ in the names of struct fields only."""
    if mine is None or theirs is None or mine.code is not theirs.code:
        return mine is theirs
    if mine.proto_name != theirs.proto_name:
        return False
    if mine.code is TypeCode.ARRAY:
        return differ_in_names_only(mine.element, theirs.element)
    if len(mine.fields) != len(theirs.fields):
        return False
    pairs = zip(mine.fields, theirs.fields, strict=True)
    return all(differ_in_names_only(first.type, other.type) for first, other in pairs)


def common_struct(types: list[Type]) -> Type | None:
    """As ``common_type``, field by field; the names are those of the first."""
    fields = []
    for place, first in enumerate(types[0].fields):
        shared = common_type([type_.fields[place].type for type_ in types])
        if shared is None:
            return None
        fields.append(StructField(first.name, shared))
    return Type(TypeCode.STRUCT, fields=tuple(fields))


def refuse_interval(type_: Type | None, where: str) -> None:
    """INTERVAL where equal ones (a month, 30 days) would have to be found to be the same."""
    if type_ is not None and type_.code is TypeCode.INTERVAL:
        raise errors.unimplemented(f"INTERVAL in {where}")


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names without repetitions: unnamed and repeated columns get a number."""
    seen: set[str] = set()
    result = []
    for number, name in enumerate(names):
        unique = name if name and name.casefold() not in seen else f"${number}"
        seen.add(unique.casefold())
        result.append(unique)
    return result
