"""The types of Spanner, and what DDL knows of each: one entry a type, and no rule for the rest.

``watcher.model.value_types`` has what becomes of the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class TypeCode(Enum):
    """The types of Spanner, by their GoogleSQL names.

    PG_NUMERIC and PG_JSONB are types of the PostgreSQL dialect with values of their own, and PG_OID
    is one of its queries.
    """

    BOOL = "BOOL"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    NUMERIC = "NUMERIC"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    JSON = "JSON"
    UUID = "UUID"
    INTERVAL = "INTERVAL"
    TOKENLIST = "TOKENLIST"
    PROTO = "PROTO"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"
    PG_NUMERIC = "PG_NUMERIC"
    PG_JSONB = "PG_JSONB"

    PG_OID = "PG_OID"

    @property
    def is_json(self) -> bool:
        """Whether values are JSON texts."""
        return self in (TypeCode.JSON, TypeCode.PG_JSONB)

    # A member is one object: its identity tells it, faster than the hash of its name.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a STRUCT type; an empty name is allowed in query results."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Type:
    """A type of a column or of an expression.

    ``length`` is in characters (STRING) or bytes (BYTES); None is MAX. ``element`` is set for
    ARRAY, ``fields`` for STRUCT, ``proto_name`` for PROTO and ENUM, ``vector_length`` for an ARRAY
    that holds vectors of one length.
    """

    code: TypeCode
    length: int | None = None
    element: Type | None = None
    fields: tuple[StructField, ...] = ()
    proto_name: str | None = None
    vector_length: int | None = None


class TypeSyntax(Enum):
    """How GoogleSQL writes a type."""

    PLAIN = "INT64"
    SIZED = "STRING(length)"
    COMPOSED = "ARRAY<element>, STRUCT<fields>, or the name of a message or an enum"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What DDL knows of a type.

    ``googlesql`` is None, and ``postgresql`` empty, where a dialect does not have the type; of the
    names in the PostgreSQL dialect the first is written, all are read. ``key``: primary keys,
    indexes and foreign keys may have it. ``text`` and ``postgresql_text`` make a STRING of a value
    ``{0}``, injectively and without regard to time zones: what a computed shard hashes. None where
    the type has no such text, or no immutable one.
    """

    googlesql: TypeSyntax | None
    postgresql: tuple[str, ...] = ()
    key: bool = True
    text: str | None = None
    postgresql_text: str | None = None


AS_TEXT, PG_AS_TEXT = "CAST({0} AS STRING)", "{0}::text"

COLUMN_TYPES: Mapping[TypeCode, ColumnType] = {
    TypeCode.BOOL: ColumnType(
        TypeSyntax.PLAIN, ("boolean", "bool"), text=AS_TEXT, postgresql_text=PG_AS_TEXT
    ),
    TypeCode.INT64: ColumnType(
        TypeSyntax.PLAIN,
        ("bigint", "int8", "integer", "int"),
        text=AS_TEXT,
        postgresql_text=PG_AS_TEXT,
    ),
    TypeCode.FLOAT32: ColumnType(
        TypeSyntax.PLAIN, ("real", "float4"), key=False, text=AS_TEXT, postgresql_text=PG_AS_TEXT
    ),
    TypeCode.FLOAT64: ColumnType(
        TypeSyntax.PLAIN,
        ("double precision", "float8", "float"),
        text=AS_TEXT,
        postgresql_text=PG_AS_TEXT,
    ),
    TypeCode.NUMERIC: ColumnType(TypeSyntax.PLAIN, text=AS_TEXT),
    TypeCode.STRING: ColumnType(
        TypeSyntax.SIZED,
        ("character varying", "varchar", "text"),
        text="{0}",
        postgresql_text="{0}",
    ),
    # A bytea is hashed as it is, and cannot be a part of several.
    TypeCode.BYTES: ColumnType(TypeSyntax.SIZED, ("bytea",), text="TO_HEX({0})"),
    TypeCode.DATE: ColumnType(
        TypeSyntax.PLAIN, ("date",), text=AS_TEXT, postgresql_text=PG_AS_TEXT
    ),
    TypeCode.TIMESTAMP: ColumnType(
        TypeSyntax.PLAIN,
        ("timestamp with time zone", "timestamptz"),
        text="CAST(UNIX_MICROS({0}) AS STRING)",
    ),
    TypeCode.JSON: ColumnType(TypeSyntax.PLAIN, key=False),
    TypeCode.UUID: ColumnType(
        TypeSyntax.PLAIN, ("uuid",), text=AS_TEXT, postgresql_text=PG_AS_TEXT
    ),
    TypeCode.INTERVAL: ColumnType(TypeSyntax.PLAIN, ("interval",)),
    TypeCode.TOKENLIST: ColumnType(TypeSyntax.PLAIN, ("spanner.tokenlist",), key=False),
    # DDL names an ENUM, which may be a key, as it names a PROTO, which may not: only the server
    # can tell.
    TypeCode.PROTO: ColumnType(TypeSyntax.COMPOSED),
    TypeCode.ENUM: ColumnType(TypeSyntax.COMPOSED, text="CAST(CAST({0} AS INT64) AS STRING)"),
    TypeCode.ARRAY: ColumnType(TypeSyntax.COMPOSED, key=False),
    TypeCode.STRUCT: ColumnType(TypeSyntax.COMPOSED, key=False),
    TypeCode.PG_NUMERIC: ColumnType(
        None, ("numeric", "decimal"), key=False, postgresql_text=PG_AS_TEXT
    ),
    TypeCode.PG_JSONB: ColumnType(None, ("jsonb",), key=False),
    TypeCode.PG_OID: ColumnType(None),
}
"""The PostgreSQL dialect has no names for what only GoogleSQL has, and PG_OID is never a column's
type."""
