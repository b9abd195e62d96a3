"""The types that CAST, ARRAY<...> and STRUCT<...> name."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.trees import identifier
from emulator.sql.grammar.nodes import Node, spell_path

KINDS = {
    "BOOL": "BOOLEAN",
    "BOOLEAN": "BOOLEAN",
    "BYTES": "BINARY",
    "DATE": "DATE",
    "DECIMAL": "DECIMAL",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "INT64": "BIGINT",
    "INTERVAL": "INTERVAL",
    "JSON": "JSON",
    "NUMERIC": "DECIMAL",
    "STRING": "TEXT",
    "TIMESTAMP": "TIMESTAMPTZ",
    "UUID": "UUID",
}
"""The names that the trees have for Spanner's types."""


def data_type(node: Node) -> exp.DataType:
    """A type; what is no type of Spanner's own is one of the proto bundle."""
    if node.has("collate"):
        raise errors.unimplemented("COLLATE in a type")
    name, inner = node.parts[0]
    if name in {"array_type", "struct_type"}:
        type_ = (array_type if name == "array_type" else struct_type)(node.inner(name))
    elif name == "range_type":
        raise errors.unimplemented("the type RANGE")
    else:
        type_ = named_type("INTERVAL" if name == "INTERVAL" else spell_path(inner))
    if node.has("type_parameters"):
        type_.set("expressions", [exp.DataTypeParam()])
    return type_


def named_type(name: str) -> exp.DataType:
    """A type by its name."""
    if name.upper() == "TOKENLIST":
        raise errors.unimplemented("a value of type TOKENLIST")
    kind = KINDS.get(name.upper()) if "." not in name else None
    if kind is None:
        return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)
    return exp.DataType(this=exp.DataType.Type[kind])


def array_type(node: Node) -> exp.DataType:
    """ARRAY<T>"""
    element = data_type(node.inner("type"))
    return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[element], nested=True)


def struct_type(node: Node) -> exp.DataType:
    """STRUCT<a T, U>"""
    fields = [struct_field(each) for each in node.nodes("struct_field")]
    return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=fields, nested=True)


def struct_field(node: Node) -> exp.Expr:
    """A field, with a name or without."""
    type_ = data_type(node.inner("type"))
    name = node.find("identifier")
    return type_ if name is None else exp.ColumnDef(this=identifier(name), kind=type_)
