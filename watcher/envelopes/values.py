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
Write = Callable[[Any], str]


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
        """The function that writes cells of a type: BYTES as base64, DATE as ISO 8601, NUMERIC,
        TIMESTAMP and UUID as text, NaN and the infinities as 'NaN', 'Infinity' and '-Infinity',
        unless the style says otherwise. It raises EnvelopeError."""
        if type_.element is not None:
            return self._write_lists(self.choose_writer(type_.element))
        special = self._find_special(type_)
        if special is None:
            return self._write_any
        known, write_special = special
        return lambda value: (
            write_special(value) if isinstance(value, known) else self._write_any(value)
        )

    def _write_any(self, value: Value) -> str:
        """A cell of a type that says nothing of how it is written."""
        write_fast = FAST_WRITERS.get(type(value))
        if write_fast is not None:
            return write_fast(value)
        return self.dump(convert_scalar(value) if self.checked else to_json(value))

    def _write_lists(self, write_item: Write) -> Write:
        comma = self.punctuation.comma

        def write(value: Value) -> str:
            if isinstance(value, list | tuple):
                return f"[{comma.join(map(write_item, value))}]"
            if self.checked and value is not None:
                raise EnvelopeError(
                    f"the value of an ARRAY column is a {type(value).__name__}, not a list"
                )
            return self._write_any(value)

        return write

    def _find_special(self, type_: Type) -> tuple[type, Write] | None:
        """Values that the style writes in a way of their type: what they are in Python, and how
        they are written."""
        match FORMS.get(type_.code):
            case Form.INTEGER if self.int64_as_text and type_.code is TypeCode.INT64:
                return int, lambda value: f'"{value}"'
            case Form.JSON if self.json_nested:
                return str, lambda text: self.dump(parse_json_cell(text))
            case Form.TIMESTAMP if self.timestamps != "iso":
                return str, lambda text: str(count_since_1970(text, self.timestamps))
            case Form.BYTES if self.bytes_as == "hex":
                return bytes, lambda value: f'"{value.hex()}"'
            case Form.NUMERIC | Form.WIDE_NUMERIC if self.numeric_as_number:
                return Decimal, write_number
        return None


def write_number(value: Decimal) -> str:
    """A decimal as a number of JSON; NaN as a text."""
    return format_numeric(value) if value.is_finite() else f'"{format_numeric(value)}"'


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
