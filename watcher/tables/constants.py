"""Constants as DDL writes them: the values of those literals whose meaning is plain in both
dialects. Whatever else a default may be, Spanner computes it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Dialect

TEXT = re.compile(r"'([^'\\\r\n]*)'")
QUOTED_TEXT = re.compile(r'"([^"\\\r\n]*)"')
"""A text in GoogleSQL, a name in PostgreSQL."""
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,9})?")
FLOAT = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")
TRUTH = {"true": True, "false": False}
Value = bool | int | float | Decimal | str | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A value; None is NULL."""

    value: Value


def read_constant(expression: str, code: TypeCode, dialect: Dialect) -> Constant | None:
    """The value of an expression in a column of a type; None where it is no plain literal, or of
    another type, which Spanner converts."""
    text = expression.strip()
    if text.casefold() == "null":
        return Constant(None)
    match code:
        case TypeCode.BOOL if text.casefold() in TRUTH:
            return Constant(TRUTH[text.casefold()])
        case TypeCode.INT64 if INTEGER.fullmatch(text):
            return Constant(int(text))
        case TypeCode.NUMERIC if NUMBER.fullmatch(text):
            return Constant(Decimal(text))
        case TypeCode.FLOAT64 if INTEGER.fullmatch(text):
            return Constant(float(int(text)))  # -0 is an integer, and 0.0 then
        case TypeCode.FLOAT64 if FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return Constant(float(text))
        case TypeCode.STRING:
            return read_text(text, dialect)
    return None


def read_text(text: str, dialect: Dialect) -> Constant | None:
    """A text in quotation marks, without anything that is not what it looks like."""
    found = TEXT.fullmatch(text)
    if found is None and dialect is Dialect.GOOGLESQL:
        found = QUOTED_TEXT.fullmatch(text)
    return None if found is None else Constant(found[1])
