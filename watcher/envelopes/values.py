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

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.changes import to_json
from watcher.envelopes.message import Json
from watcher.model.change import Value
from watcher.model.errors import EnvelopeError
from watcher.model.value_types import FORMS, Form
from watcher.spanner.json_columns.objects import COMPACT, NULL, SPACED, Punctuation
from watcher.spanner.json_columns.scalars import format_numeric
from watcher.spanner.key_values import read_nanos

quote: Callable[[str], str] = encode_basestring
"""A text as a JSON string."""
JsonColumns = Literal["nested", "text"]
"""How an envelope writes JSON columns: as JSON, where the JSON null of a column looks like its
NULL, or as their text, where it is ``"null"``."""
Numbers = Literal["number", "text"]
"""How INT64 and NUMERIC are written: readers whose numbers are doubles lose digits of numbers."""
Timestamps = Literal["iso", "millis", "micros", "nanos"]
"""How TIMESTAMPs are written: RFC 3339, or a number since 1970; what is finer is cut off."""
BytesAs = Literal["base64", "hex"]
"""How BYTES are written."""
NANOS_OF: Mapping[Timestamps, int] = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}


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
    of every change. The others are as ``Numbers``, ``Timestamps`` and ``BytesAs`` say; texts that
    are no decimals, as NaN, stay texts."""

    punctuation: Punctuation = COMPACT
    int64_as_text: bool = False
    json_nested: bool = False
    checked: bool = True
    numeric_as_number: bool = False
    timestamps: Timestamps = "iso"
    bytes_as: BytesAs = "base64"

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

        def write_number(value: Value) -> str:
            is_finite = isinstance(value, Decimal) and value.is_finite()
            return format_numeric(value) if is_finite else write(value)  # type: ignore[arg-type]

        def write_numbers(value: Value) -> str:
            if not isinstance(value, list | tuple):
                return write(value)
            return f"[{self.punctuation.comma.join(map(write_number, value))}]"

        if self.numeric_as_number and is_numeric(type_):
            return write_number if type_.element is None else write_numbers
        return write_by_type if self.depends_on(type_) else write

    def depends_on(self, type_: Type) -> bool:
        """Whether a type says how its cells are written, not only what they are in Python."""
        if type_.element is not None:
            return self.checked or self.depends_on(type_.element)
        match FORMS.get(type_.code):
            case Form.INTEGER:
                return self.int64_as_text and type_.code is TypeCode.INT64
            case Form.JSON:
                return self.json_nested
            case Form.TIMESTAMP:
                return self.timestamps != "iso"
            case Form.BYTES:
                return self.bytes_as != "base64"
            case Form.NUMERIC | Form.WIDE_NUMERIC:
                return self.numeric_as_number
            case _:
                return False

    def format_cell(self, value: Value, type_: Type) -> Json:
        """A cell: BYTES as base64, DATE as ISO 8601, NUMERIC, TIMESTAMP and UUID as text, NaN and
        the infinities as 'NaN', 'Infinity' and '-Infinity', unless the style says otherwise."""
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
        if type_.code is TypeCode.TIMESTAMP and self.timestamps != "iso" and isinstance(value, str):
            return count_since_1970(value, self.timestamps)
        if isinstance(value, bytes) and self.bytes_as == "hex":
            return value.hex()
        return convert_scalar(value)


def is_numeric(type_: Type) -> bool:
    """Whether values, or the elements of arrays, are decimals."""
    return FORMS.get((type_.element or type_).code) in (Form.NUMERIC, Form.WIDE_NUMERIC)


def count_since_1970(text: str, timestamps: Timestamps) -> int:
    """A TIMESTAMP as a number; rounded down, also before 1970."""
    return read_nanos(text) // NANOS_OF[timestamps]


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
