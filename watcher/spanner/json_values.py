"""Values in the JSON of Spanner's API -> cells."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import assert_never

from spanner_schema.model.column_types import Type
from watcher.model.change import Value
from watcher.model.value_types import FORMS, Form, refuse_values


def decode_value(value: object, type_: Type) -> Value:
    """A JSON value as a cell. Spanner: INT64 and NUMERIC are strings, BYTES base64. Raises
    UnsupportedTypeError."""
    if value is None:
        return None
    if isinstance(value, list) and type_.element is not None:
        return [decode_value(item, type_.element) for item in value]
    decode = DECODERS.get(type_.code)
    if decode is None:
        refuse_values(type_)
    return decode(value)


def read_text(value: object) -> str:
    """A text; what JSON has in place of one as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def choose_decoder(form: Form) -> Callable[[object], Value]:
    """The function of ``decode_value`` for values of a form."""
    match form:
        case Form.BOOL:
            return bool
        case Form.INTEGER:
            return lambda value: int(str(value))
        case Form.FLOAT32 | Form.FLOAT64:
            return lambda value: float(str(value))
        case Form.NUMERIC | Form.WIDE_NUMERIC:
            return lambda value: Decimal(str(value))
        case Form.BYTES:
            return lambda value: b64decode(str(value))
        case Form.DATE:
            return lambda value: date.fromisoformat(str(value))
        case Form.TEXT | Form.TIMESTAMP | Form.JSON:
            return read_text
    assert_never(form)


DECODERS = {code: choose_decoder(form) for code, form in FORMS.items()}
