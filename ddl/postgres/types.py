"""The types of Spanner's PostgreSQL dialect, and their names there."""

from __future__ import annotations

from dataclasses import replace

from ddl.reader import TokenReader
from ddl.schema import Type, TypeCode

COMMIT_TIMESTAMP = "spanner.commit_timestamp"

# The words of each type, longest first.
WORDS: tuple[tuple[tuple[str, ...], TypeCode], ...] = (
    (("TIMESTAMP", "WITH", "TIME", "ZONE"), TypeCode.TIMESTAMP),
    (("DOUBLE", "PRECISION"), TypeCode.FLOAT64),
    (("CHARACTER", "VARYING"), TypeCode.STRING),
    (("VARCHAR",), TypeCode.STRING),
    (("TEXT",), TypeCode.STRING),
    (("BOOLEAN",), TypeCode.BOOL),
    (("BOOL",), TypeCode.BOOL),
    (("BIGINT",), TypeCode.INT64),
    (("INT8",), TypeCode.INT64),
    (("INTEGER",), TypeCode.INT64),
    (("INT",), TypeCode.INT64),
    (("REAL",), TypeCode.FLOAT32),
    (("FLOAT4",), TypeCode.FLOAT32),
    (("FLOAT8",), TypeCode.FLOAT64),
    (("FLOAT",), TypeCode.FLOAT64),
    (("NUMERIC",), TypeCode.PG_NUMERIC),
    (("DECIMAL",), TypeCode.PG_NUMERIC),
    (("BYTEA",), TypeCode.BYTES),
    (("DATE",), TypeCode.DATE),
    (("TIMESTAMPTZ",), TypeCode.TIMESTAMP),
    (("JSONB",), TypeCode.PG_JSONB),
    (("UUID",), TypeCode.UUID),
    (("INTERVAL",), TypeCode.INTERVAL),
    (("SPANNER", ".", "TOKENLIST"), TypeCode.TOKENLIST),
)

NAMES = {
    TypeCode.STRING: "character varying",
    TypeCode.BOOL: "boolean",
    TypeCode.INT64: "bigint",
    TypeCode.FLOAT32: "real",
    TypeCode.FLOAT64: "double precision",
    TypeCode.PG_NUMERIC: "numeric",
    TypeCode.BYTES: "bytea",
    TypeCode.DATE: "date",
    TypeCode.TIMESTAMP: "timestamp with time zone",
    TypeCode.PG_JSONB: "jsonb",
    TypeCode.UUID: "uuid",
    TypeCode.INTERVAL: "interval",
    TypeCode.TOKENLIST: "spanner.tokenlist",
}


def read_type(reader: TokenReader) -> tuple[Type, bool]:
    """A type of a column, and whether it is SPANNER.COMMIT_TIMESTAMP."""
    if reader.accept("SPANNER", ".", "COMMIT_TIMESTAMP"):
        return Type(TypeCode.TIMESTAMP), True
    for words, code in WORDS:
        if reader.accept(*words):
            type_ = Type(code, length=read_length(reader))
            while reader.accept("["):
                reader.expect("]")
                type_ = Type(TypeCode.ARRAY, element=type_)
            if type_.element is not None and reader.accept("VECTOR", "LENGTH"):
                type_ = replace(type_, vector_length=reader.read_number())
            return type_, False
    return reader.fail("a type")


def read_length(reader: TokenReader) -> int | None:
    """(n); None where it is missing."""
    if not reader.accept("("):
        return None
    length = reader.read_number()
    reader.expect(")")
    return length
