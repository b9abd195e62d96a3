"""The cells of each Spanner type in JSON, by format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ddl.model.schema import Type, TypeCode
from watcher.captures.changes import to_json
from watcher.envelopes.message import Json
from watcher.model.change import Shape, Value
from watcher.model.errors import EnvelopeError

JsonColumns = Literal["nested", "text"]
"""How an envelope writes JSON columns: as JSON, where the JSON null of a column looks like its
NULL, or as their text, where it is ``"null"``."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Where formats differ. ``int64_as_text`` loses nothing in readers whose numbers are
    doubles; ``json_nested`` writes a JSON column as JSON, not as its text."""

    int64_as_text: bool = False
    json_nested: bool = False

    def choose_json(self, columns: JsonColumns) -> JsonFormat:
        """The same with JSON columns as an option says."""
        return replace(self, json_nested=columns == "nested")

    def format_row(self, shape: Shape, values: Mapping[str, Value]) -> dict[str, Json]:
        """The columns of a row in the order of the table.

        Raises EnvelopeError for a column that the table does not have.
        """
        cells = {
            name: self.format_cell(values[name], type_)
            for name, type_ in shape.columns
            if name in values
        }
        if len(cells) != len(values):
            unknown = ", ".join(sorted(set(values) - set(cells)))
            raise EnvelopeError(f"a change of table {shape.table} has unknown columns: {unknown}")
        return cells

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
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
