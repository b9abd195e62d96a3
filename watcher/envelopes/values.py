"""The cells of each Spanner type in JSON, by format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Literal

from ddl.model.schema import Type, TypeCode
from watcher.captures.changes import to_json
from watcher.envelopes.message import Json
from watcher.json_columns.objects import COMPACT, NULL, SPACED, Punctuation
from watcher.json_columns.scalars import format_numeric
from watcher.model.change import Value
from watcher.model.errors import EnvelopeError

quote: Callable[[str], str] = encode_basestring
"""A text as a JSON string."""
JsonColumns = Literal["nested", "text"]
"""How an envelope writes JSON columns: as JSON, where the JSON null of a column looks like its
NULL, or as their text, where it is ``"null"``."""


def write_float(value: float) -> str:
    """A float as JSON; NaN and the infinities as texts."""
    return repr(value) if isfinite(value) else f'"{to_json(value)}"'


FAST_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: quote,
    int: repr,
    float: write_float,
    Decimal: lambda value: f'"{format_numeric(value)}"',
    type(None): lambda _: NULL,
}
"""Cells of these types are written alike by all formats, without an encoder of JSON."""


@dataclass(frozen=True)
class CellStyle:
    """How an envelope writes cells. ``int64_as_text`` loses nothing in readers whose numbers are
    doubles; ``json_nested`` writes a JSON column as JSON, not as its text. ``checked``: cells that
    are not of their column's type, or of no column, are refused; what is not checked can be written
    of every change."""

    punctuation: Punctuation = COMPACT
    int64_as_text: bool = False
    json_nested: bool = False
    checked: bool = True

    @cached_property
    def dump(self) -> Callable[[object], str]:
        """Writes JSON. Raises ValueError for NaN and the infinities."""
        separators = (self.punctuation.comma, self.punctuation.colon)
        return json.JSONEncoder(ensure_ascii=False, separators=separators, allow_nan=False).encode

    def choose_writer(self, type_: Type) -> Callable[[Value], str]:
        """The function that writes cells of a type. It raises EnvelopeError."""
        dump, checked = self.dump, self.checked

        def write(value: Value) -> str:
            write_fast = FAST_WRITERS.get(type(value))
            if write_fast is not None:
                return write_fast(value)
            return dump(convert_scalar(value) if checked else to_json(value))

        def write_by_type(value: Value) -> str:
            return dump(self.format_cell(value, type_))

        return write_by_type if self.depends_on(type_) else write

    def depends_on(self, type_: Type) -> bool:
        """Whether a type says how its cells are written, not only what they are in Python."""
        if not self.checked:
            return False
        if type_.code is TypeCode.INT64:
            return self.int64_as_text
        return type_.element is not None or (type_.code.is_json and self.json_nested)

    def format_cell(self, value: Value, type_: Type) -> Json:
        """A cell: BYTES as base64, DATE as ISO 8601, NUMERIC, TIMESTAMP and UUID as text, NaN and
        the infinities as 'NaN', 'Infinity' and '-Infinity'."""
        if value is None:
            return None
        if type_.code is TypeCode.ARRAY and type_.element is not None:
            if not isinstance(value, list | tuple):
                raise EnvelopeError(
                    f"the value of an ARRAY column is a {type(value).__name__}, not a list"
                )
            return [self.format_cell(item, type_.element) for item in value]
        if type_.code.is_json and self.json_nested and isinstance(value, str):
            return parse_json_cell(value)
        if type_.code is TypeCode.INT64 and self.int64_as_text:
            return str(value)
        return convert_scalar(value)


PLAIN_CELLS = CellStyle(SPACED, checked=False)
COMPACT_CELLS = CellStyle()


def convert_scalar(value: Value) -> Json:
    """Converts a cell that is not an array, by its Python type."""
    scalar = to_json(value)
    if scalar is None or isinstance(scalar, bool | int | float | str):
        return scalar
    raise EnvelopeError(f"cannot write a value of type {type(value).__name__} as JSON")


def parse_json_cell(text: str) -> Json:
    """Parses a JSON column. Raises EnvelopeError if the text is not valid."""
    try:
        parsed: Json = json.loads(text, parse_float=parse_finite, parse_constant=parse_finite)
    except ValueError as error:
        raise EnvelopeError(f"a JSON column has invalid JSON: {error}") from error
    return parsed


def parse_finite(text: str) -> float:
    """Parses a number of a JSON text. Raises ValueError for one that JSON cannot express."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
