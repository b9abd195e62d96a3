"""How a cell of each Spanner type is written in JSON, by format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ddl.schema import Type, TypeCode
from watcher.captures.changes import to_json
from watcher.change import Shape, Value
from watcher.envelopes.message import Json
from watcher.errors import EnvelopeError


@dataclass(frozen=True, slots=True)
class Writing:
    """What formats disagree on. ``int64_as_text`` loses nothing in readers whose numbers are
    doubles; ``json_nested`` writes a JSON column as JSON, not as its text."""

    int64_as_text: bool = False
    json_nested: bool = False

    def row(self, shape: Shape, values: Mapping[str, Value]) -> dict[str, Json]:
        """The columns of a row in the order of the table.

        Raises EnvelopeError for a column that the table does not have.
        """
        written = {
            name: self.cell(values[name], type_) for name, type_ in shape.columns if name in values
        }
        if len(written) != len(values):
            lost = ", ".join(sorted(set(values) - set(written)))
            raise EnvelopeError(f"a change of {shape.table} has columns it does not know: {lost}")
        return written

    def cell(self, value: Value, type_: Type) -> Json:
        """A cell: BYTES as base64, DATE as ISO 8601, NUMERIC, TIMESTAMP and UUID as text, NaN and
        the infinities as 'NaN', 'Infinity' and '-Infinity'."""
        if value is None:
            return None
        if type_.code is TypeCode.ARRAY and type_.element is not None:
            if not isinstance(value, list | tuple):
                raise EnvelopeError(f"an ARRAY cannot be a {type(value).__name__}")
            return [self.cell(item, type_.element) for item in value]
        if type_.code is TypeCode.JSON and self.json_nested and isinstance(value, str):
            return nested(value)
        if type_.code is TypeCode.INT64 and self.int64_as_text:
            return str(value)
        return scalar(value)


def scalar(value: Value) -> Json:
    """A cell that is no array, by its Python type."""
    written = to_json(value)
    if written is None or isinstance(written, bool | int | float | str):
        return written
    raise EnvelopeError(f"a cell cannot be a {type(value).__name__}")


def nested(text: str) -> Json:
    """A JSON column as JSON. Raises EnvelopeError when the text is none."""
    try:
        parsed: Json = json.loads(text, parse_float=finite, parse_constant=finite)
    except ValueError as error:
        raise EnvelopeError(f"a JSON column holds no JSON: {error}") from error
    return parsed


def finite(text: str) -> float:
    """A number of a JSON text. Raises ValueError for one that JSON could not say again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number
