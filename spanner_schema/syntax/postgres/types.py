"""The types of Spanner's PostgreSQL dialect, and their names there."""

from __future__ import annotations

import re
from dataclasses import replace

from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode
from spanner_schema.syntax.reader import TokenReader

COMMIT_TIMESTAMP = "spanner.commit_timestamp"

WORDS = sorted(
    (
        (tuple(re.findall(r"\w+|\.", name.upper())), code)
        for code, described in COLUMN_TYPES.items()
        for name in described.postgresql
    ),
    key=lambda each: -len(each[0]),
)
"""The words of each name, the longest first."""


def read_type(reader: TokenReader) -> tuple[Type, bool]:
    """A type of a column, and whether it is SPANNER.COMMIT_TIMESTAMP."""
    if reader.accept("SPANNER", ".", "COMMIT_TIMESTAMP"):
        return Type(TypeCode.TIMESTAMP), True
    for words, code in WORDS:
        if reader.accept(*words):
            type_ = Type(code, length=read_length(reader))
            while read_array(reader):
                type_ = Type(TypeCode.ARRAY, element=type_)
            if type_.element is not None and reader.accept("VECTOR", "LENGTH"):
                type_ = replace(type_, vector_length=reader.read_number())
            return type_, False
    return reader.fail("a type")


def read_array(reader: TokenReader) -> bool:
    """Whether [], [n], ARRAY or ARRAY[n] follows; Spanner does not keep the size."""
    is_word = reader.accept("ARRAY")
    if not reader.accept("["):
        return is_word
    if not reader.accept("]"):
        reader.read_number()
        reader.expect("]")
    return True


def read_length(reader: TokenReader) -> int | None:
    """(n); None where it is missing."""
    if not reader.accept("("):
        return None
    length = reader.read_number()
    reader.expect(")")
    return length
