"""Every type of Spanner as the server keeps and sends its values: one entry a type, plain values.

What SQL can do with the values is in ``emulator/sql``: casts, coercions, functions. How values come
in is in ``emulator.wire.values``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from emulator.limits import CELL_BYTES_MAX, STRING_CHARACTERS_MAX
from emulator.values.forms import base64_text, numeric_to_text, timestamp_to_text
from emulator.values.pg_numeric import text_of_form
from spanner_schema.model.column_types import TypeCode


class Sent(Enum):
    """How a value is sent, apart from what a function makes a text of."""

    BOOL = "a boolean"
    FLOAT = "a number, or a text where JSON has none"
    ASCII = "the stored text, in which every character is ASCII"
    TEXT = "the stored text"
    PARTS = "a list of its parts"


@dataclass(frozen=True, slots=True)
class PgType:
    """A type in the catalogs of PostgreSQL: the number of the type and that of its arrays, its
    size and its category. ``shown`` is its name in messages, and ``column`` that of a column that
    is a constant of it, where they are others than ``name``; ``aliases`` are read, too."""

    oid: int
    name: str
    size: int
    category: str
    arrays: int
    shown: str = ""
    column: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedType:
    """What the server knows of a type.

    ``number`` is that of google.spanner.v1.TypeCode, and ``annotation`` that of TypeAnnotationCode,
    if it has one. ``sent``: how a value is sent, or what makes the text that is sent. ``storage``
    is SQLite's storage class; None for what no column holds. ``length_max`` is what MAX means:
    characters of a STRING, bytes of others. ``ordered``: Python compares stored forms as SQLite
    does. ``postgresql``: None where the dialect does not have it.
    """

    number: int
    sent: Sent | Callable[[Any], str]
    storage: str | None
    postgresql: PgType | None = None
    annotation: int = 0
    length_max: int | None = None
    ordered: bool = False


SERVED_TYPES: Mapping[TypeCode, ServedType] = {
    TypeCode.BOOL: ServedType(
        1,
        Sent.BOOL,
        "INTEGER",
        PgType(16, "bool", 1, "B", 1000, shown="boolean"),
        ordered=True,
    ),
    TypeCode.INT64: ServedType(
        2,
        str,
        "INTEGER",
        # int, of four bytes in PostgreSQL, is an alias of bigint in Spanner.
        PgType(20, "int8", 8, "N", 1016, shown="bigint", aliases=("bigint", "int4")),
        ordered=True,
    ),
    TypeCode.FLOAT32: ServedType(
        15, Sent.FLOAT, "ANY", PgType(700, "float4", 4, "N", 1021, shown="real")
    ),
    TypeCode.FLOAT64: ServedType(
        3, Sent.FLOAT, "ANY", PgType(701, "float8", 8, "N", 1022, shown="double precision")
    ),
    TypeCode.NUMERIC: ServedType(10, numeric_to_text, "TEXT"),
    TypeCode.STRING: ServedType(
        6,
        Sent.TEXT,
        "TEXT",
        PgType(1043, "varchar", -1, "S", 1015, shown="text", column="text", aliases=("text",)),
        length_max=STRING_CHARACTERS_MAX,
        ordered=True,
    ),
    TypeCode.BYTES: ServedType(
        7,
        base64_text,
        "BLOB",
        PgType(17, "bytea", -1, "U", 1001),
        length_max=CELL_BYTES_MAX,
        ordered=True,
    ),
    TypeCode.DATE: ServedType(
        5, Sent.ASCII, "TEXT", PgType(1082, "date", 4, "D", 1182), ordered=True
    ),
    TypeCode.TIMESTAMP: ServedType(
        4,
        timestamp_to_text,
        "TEXT",
        PgType(1184, "timestamptz", 8, "D", 1185, shown="timestamp with time zone"),
        ordered=True,
    ),
    TypeCode.JSON: ServedType(11, Sent.TEXT, "TEXT", length_max=CELL_BYTES_MAX),
    TypeCode.UUID: ServedType(
        17, Sent.ASCII, "TEXT", PgType(2950, "uuid", 16, "U", 2951), ordered=True
    ),
    TypeCode.INTERVAL: ServedType(16, Sent.TEXT, "TEXT", PgType(1186, "interval", 16, "T", 1187)),
    TypeCode.PROTO: ServedType(13, base64_text, "BLOB", length_max=CELL_BYTES_MAX),
    TypeCode.ENUM: ServedType(14, str, "INTEGER"),
    TypeCode.ARRAY: ServedType(8, Sent.PARTS, "TEXT"),
    TypeCode.STRUCT: ServedType(9, Sent.PARTS, None),
    TypeCode.PG_NUMERIC: ServedType(
        10, text_of_form, "TEXT", PgType(1700, "numeric", -1, "N", 1231), annotation=2
    ),
    TypeCode.PG_JSONB: ServedType(
        11,
        Sent.TEXT,
        "TEXT",
        PgType(3802, "jsonb", -1, "U", 3807),
        annotation=3,
        length_max=CELL_BYTES_MAX,
    ),
    TypeCode.PG_OID: ServedType(2, str, None, PgType(26, "oid", 4, "N", 1028), annotation=4),
}
"""All but TOKENLIST, whose values never leave the server, and which no parameter has."""
LENGTHS_MAX = {
    code: served.length_max
    for code, served in SERVED_TYPES.items()
    if served.length_max is not None
}
