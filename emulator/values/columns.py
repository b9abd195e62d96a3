"""The columns of system tables, from short texts."""

from __future__ import annotations

from emulator.values.types import (
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    JSON,
    PG_OID,
    STRING,
    TIMESTAMP,
    array,
)
from spanner_schema.model.column_types import Type, TypeCode

View = tuple[tuple[str, Type], ...]
TYPES = {
    "S": STRING,
    "I": INT64,
    "B": BOOL,
    "Y": Type(TypeCode.BYTES),
    "F": FLOAT64,
    "T": TIMESTAMP,
    "D": DATE,
    "J": JSON,
    "O": PG_OID,
    "SS": array(STRING),
    "II": array(INT64),
    "OO": array(PG_OID),
}


def parse_columns(text: str) -> View:
    """Columns of a view from 'NAME TYPE, ...'; S is STRING, I INT64, B BOOL, and so on.

    O is the oid of the PostgreSQL dialect; two letters are an array.
    """
    pairs = (each.split() for each in text.split(","))
    return tuple((name, TYPES[code]) for name, code in pairs)
