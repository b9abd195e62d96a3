"""The columns of system tables, from short texts."""

from __future__ import annotations

from ddl.schema import Type, TypeCode
from emulator.values.types import BOOL, DATE, FLOAT64, INT64, JSON, STRING, TIMESTAMP

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
}


def parse_columns(text: str) -> View:
    """Columns of a view from 'NAME TYPE, ...'; S is STRING, I INT64, B BOOL, and so on."""
    pairs = (each.split() for each in text.split(","))
    return tuple((name, TYPES[code]) for name, code in pairs)
