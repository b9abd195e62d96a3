"""Which type becomes which other one by itself: the one table, of both dialects.

GoogleSQL's is that of "Conversion rules in GoogleSQL" and of GoogleSQL's reference implementation,
PostgreSQL's that of pg_cast, as far as Spanner has its types. docs/emulator.md shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Dialect


class Reach(Enum):
    """What a coercion reaches."""

    EXPRESSION = "every expression"
    PARAMETER = "a parameter of that type, and a literal"
    LITERAL = "a literal"
    ASSIGNMENT = "every expression that a column takes"


Cells = Mapping[TypeCode, tuple[TypeCode, ...]]

COERCIONS: Mapping[Dialect, Mapping[Reach, Cells]] = {
    Dialect.GOOGLESQL: {
        Reach.EXPRESSION: {
            TypeCode.INT64: (TypeCode.NUMERIC, TypeCode.FLOAT64),
            TypeCode.FLOAT32: (TypeCode.FLOAT64,),
            TypeCode.NUMERIC: (TypeCode.FLOAT64,),
        },
        Reach.PARAMETER: {
            TypeCode.STRING: (
                TypeCode.DATE,
                TypeCode.TIMESTAMP,
                TypeCode.UUID,
                TypeCode.PROTO,
                TypeCode.ENUM,
            ),
            TypeCode.BYTES: (TypeCode.PROTO,),
            TypeCode.INT64: (TypeCode.ENUM,),
        },
        Reach.LITERAL: {
            TypeCode.INT64: (TypeCode.FLOAT32,),
            TypeCode.FLOAT64: (TypeCode.FLOAT32, TypeCode.NUMERIC),
        },
    },
    Dialect.POSTGRESQL: {
        Reach.EXPRESSION: {
            TypeCode.INT64: (
                TypeCode.PG_NUMERIC,
                TypeCode.FLOAT32,
                TypeCode.FLOAT64,
                TypeCode.PG_OID,
            ),
            TypeCode.PG_NUMERIC: (TypeCode.FLOAT32, TypeCode.FLOAT64),
            TypeCode.FLOAT32: (TypeCode.FLOAT64,),
            TypeCode.DATE: (TypeCode.TIMESTAMP,),
        },
        Reach.ASSIGNMENT: {
            TypeCode.PG_NUMERIC: (TypeCode.INT64,),
            TypeCode.FLOAT32: (TypeCode.INT64, TypeCode.PG_NUMERIC),
            TypeCode.FLOAT64: (TypeCode.INT64, TypeCode.PG_NUMERIC, TypeCode.FLOAT32),
            TypeCode.TIMESTAMP: (TypeCode.DATE,),
            TypeCode.PG_OID: (TypeCode.INT64,),
        },
    },
}
"""In PostgreSQL a text in quotes that nothing types becomes of every type, and everything becomes a
text where a column takes it. A parameter without a type becomes of every type in both."""


def becomes(source: TypeCode, target: TypeCode, dialect: Dialect, *reaches: Reach) -> bool:
    """Whether what one of these reaches is becomes of the target type by itself."""
    cells = COERCIONS[dialect]
    return any(target in cells[reach].get(source, ()) for reach in reaches)
