"""The canonical text of a row, in GoogleSQL; ``row_hashes`` makes the same text of Arrow columns.

A row is the parts of its columns, in the order of their names. The part of NULL is ``-``; that of
another value is its length in bytes, ``:``, and its text. So different rows have different texts.

| type | text |
|---|---|
| BOOL | ``true``, ``false`` |
| INT64 | decimal |
| FLOAT32, FLOAT64 | ``%.16e`` of the FLOAT64 (exact; -0.0 is 0.0); ``nan``, ``inf``, ``-inf`` |
| NUMERIC | decimal, without trailing zeros |
| STRING, UUID | itself |
| BYTES | hexadecimal, lower case |
| DATE | ISO 8601 |
| TIMESTAMP | microseconds since 1970, rounded down; where the copy keeps text, also ``.`` and the
  nanoseconds of the microsecond |
| JSON | as Spanner writes it |
| ARRAY | the parts of its elements |

The hash of a row is the first 15 hexadecimal digits (60 bits) of the SHA-256 of its text, as a
number; that of a range is the XOR of its rows, whose keys differ, beside their count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ddl.schema import Type, TypeCode
from watcher.spanner.sql import quote_name

HASH_DIGITS = 15
FLOAT_FORMAT = "%.16e"
NULL_PART = "-"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that is compared. ``exact``: the copy keeps its TIMESTAMPs as text."""

    name: str
    type: Type
    exact: bool = False


def render_text(value: str, type_: Type, exact: bool) -> str:
    """The expression of the text of a value that is not NULL."""
    code = type_.code
    if code is TypeCode.ARRAY and type_.element is not None:
        element = render_part("e", type_.element, exact)
        rows = f"SELECT {element} FROM UNNEST({value}) AS e WITH OFFSET AS o ORDER BY o"  # noqa: S608
        return f"ARRAY_TO_STRING(ARRAY({rows}), '')"
    if code in (TypeCode.FLOAT32, TypeCode.FLOAT64):
        return f"FORMAT('{FLOAT_FORMAT}', CAST({value} AS FLOAT64))"
    if code is TypeCode.BYTES:
        return f"TO_HEX({value})"
    if code is TypeCode.JSON:
        return f"TO_JSON_STRING({value})"
    if code is TypeCode.STRING:
        return value
    if code is not TypeCode.TIMESTAMP:
        return f"CAST({value} AS STRING)"
    micros = f"CAST(UNIX_MICROS({value}) AS STRING)"
    if not exact:
        return micros
    # In the default zone the year 1 would begin in the year 0, which there is none of.
    nanos = f"MOD(EXTRACT(NANOSECOND FROM {value} AT TIME ZONE 'UTC'), 1000)"
    return f"CONCAT({micros}, '.', CAST({nanos} AS STRING))"


def render_part(value: str, type_: Type, exact: bool) -> str:
    """The expression of the part of a value."""
    text = render_text(value, type_, exact)
    length = f"CAST(BYTE_LENGTH({text}) AS STRING)"
    return f"IF({value} IS NULL, '{NULL_PART}', CONCAT({length}, ':', {text}))"


def render_hash(columns: Iterable[ComparedColumn]) -> str:
    """The expression of the hash of a row, an INT64."""
    parts = [render_part(quote_name(each.name), each.type, each.exact) for each in columns]
    digest = f"TO_HEX(SHA256(CONCAT({', '.join(parts)})))"
    return f"CAST(CONCAT('0x', SUBSTR({digest}, 1, {HASH_DIGITS})) AS INT64)"
