"""Arrays: JSON text in storage."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable

from emulator.errors import out_of_range


def to_json(value: object) -> object:
    """An element in the form that an array holds."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def dump(values: list[object]) -> str:
    """An array in storage form."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def array(*values: object) -> str:
    """[a, b, ...]."""
    return dump([to_json(value) for value in values])


def element(values: str, position: int, safe: int) -> object:
    """values[OFFSET(position)]."""
    items = json.loads(values)
    if 0 <= position < len(items):
        item: object = items[position]
        return dump(item) if isinstance(item, list) else item
    if safe:
        return None
    raise out_of_range(f"Array index {position} is out of bounds")


def float_element(value: object) -> object:
    """A float of an array in storage form."""
    return {"Infinity": math.inf, "-Infinity": -math.inf}.get(str(value), value)


def concatenate(*arrays: str) -> str:
    """ARRAY_CONCAT."""
    return dump([item for each in arrays for item in json.loads(each)])


def generate(first: int, last: int, step: int = 1) -> str:
    """GENERATE_ARRAY of INT64, both ends included."""
    if step == 0:
        raise out_of_range("Sequence step cannot be 0.")
    return dump(list(range(first, last + (1 if step > 0 else -1), step)))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_array": array,
    "fn_element": element,
    "fn_float_element": float_element,
    "fn_concat_arrays": concatenate,
    "fn_array_reverse": lambda values: dump(json.loads(values)[::-1]),
    "fn_generate_array": generate,
}
