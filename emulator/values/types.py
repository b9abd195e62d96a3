"""Spanner's types without a length, as the whole server names them."""

from __future__ import annotations

from spanner_schema.model.column_types import Type, TypeCode

BOOL = Type(TypeCode.BOOL)
INT64 = Type(TypeCode.INT64)
FLOAT32 = Type(TypeCode.FLOAT32)
FLOAT64 = Type(TypeCode.FLOAT64)
NUMERIC = Type(TypeCode.NUMERIC)
STRING = Type(TypeCode.STRING)
BYTES = Type(TypeCode.BYTES)
DATE = Type(TypeCode.DATE)
TIMESTAMP = Type(TypeCode.TIMESTAMP)
JSON = Type(TypeCode.JSON)
UUID = Type(TypeCode.UUID)
INTERVAL = Type(TypeCode.INTERVAL)
TOKENLIST = Type(TypeCode.TOKENLIST)
PG_NUMERIC = Type(TypeCode.PG_NUMERIC)
PG_JSONB = Type(TypeCode.PG_JSONB)
PG_OID = Type(TypeCode.PG_OID)

NUMBERS = {TypeCode.INT64, TypeCode.FLOAT32, TypeCode.FLOAT64, TypeCode.NUMERIC}
FLOATS = {TypeCode.FLOAT32, TypeCode.FLOAT64}


def array(element: Type) -> Type:
    """ARRAY<element>."""
    return Type(TypeCode.ARRAY, element=element)
