"""Which types of Spanner can be decoded, and how TIMESTAMPs are: plain values, without Arrow."""

from __future__ import annotations

from enum import StrEnum

from ddl.schema import Type, TypeCode

SUPPORTED = frozenset(
    {
        TypeCode.BOOL,
        TypeCode.INT64,
        TypeCode.FLOAT32,
        TypeCode.FLOAT64,
        TypeCode.NUMERIC,
        TypeCode.STRING,
        TypeCode.BYTES,
        TypeCode.DATE,
        TypeCode.TIMESTAMP,
        TypeCode.JSON,
        TypeCode.UUID,
        TypeCode.INTERVAL,
        TypeCode.PG_NUMERIC,
        TypeCode.PG_JSONB,
        TypeCode.PROTO,
        TypeCode.ENUM,
    }
)
"""Those of ``columns.ARROW``; arrays of them, too."""


def is_supported(type_: Type) -> bool:
    """True for a type that can be decoded: not TOKENLIST, or an unknown type."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return is_supported(type_.element)
    return type_.code in SUPPORTED


class Nanoseconds(StrEnum):
    """How a TIMESTAMP is converted: Arrow and Spark keep microseconds.

    A TIMESTAMP in a primary key is never truncated: two rows would have one key.
    """

    TRUNCATE = "truncate"
    REFUSE = "refuse"
    """A value that is finer than microseconds is an error."""
    STRING = "string"
    """Every TIMESTAMP is text, as Spanner wrote it."""
