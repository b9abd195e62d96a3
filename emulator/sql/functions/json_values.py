"""BOOL(json), INT64(json), LAX_STRING(json) and the like: what a JSON value is as SQL has it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from emulator.errors import out_of_range
from emulator.sql.functions.casts import HEXADECIMAL, float_text, parse_float64, parse_int64
from emulator.sql.functions.json_paths import array_text, dump
from emulator.sql.functions.numbers import INT64_MAX, INT64_MIN, read_float, to_float32

SAFE_INTEGER = 2**53


def check_mode(mode: str) -> None:
    """The two values of wide_number_mode."""
    if mode not in {"exact", "round"}:
        raise out_of_range(
            f"Invalid wide_number_mode {mode!r}: it must be either 'exact' or 'round'"
        )


def json_type(document: str) -> str:
    """JSON_TYPE."""
    value = json.loads(document)
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return "null" if value is None else names.get(type(value), "number")


def not_convertible(value: object, expected: str) -> Exception:
    """The error of a conversion."""
    return out_of_range(f"The provided JSON input is not {expected}: {dump(value)[:60]}")


def json_to_bool(value: object, mode: str) -> int:
    """JSON boolean -> BOOL."""
    if not isinstance(value, bool):
        raise not_convertible(value, "a boolean")
    return int(value)


def json_to_string(value: object, mode: str) -> str:
    """JSON string -> STRING."""
    if not isinstance(value, str):
        raise not_convertible(value, "a string")
    return value


def json_to_int64(value: object, mode: str) -> int:
    """JSON number without fraction -> INT64."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if (
        isinstance(value, bool)
        or not whole
        or not INT64_MIN <= int(whole_number(value)) <= INT64_MAX
    ):
        raise not_convertible(value, "an integer of 64 bits")
    return int(whole_number(value))


def whole_number(value: object) -> int:
    """A JSON number as Python's own integer."""
    return int(value) if isinstance(value, int | float) else 0


def json_to_float64(value: object, mode: str) -> float:
    """JSON number -> FLOAT64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise not_convertible(value, "a number")
    number = float(value)
    if mode == "exact" and number != value:
        raise out_of_range(f"JSON number {value} cannot be converted to DOUBLE without loss")
    return number


def json_to_float32(value: object, mode: str) -> float:
    """JSON number -> FLOAT32."""
    number = json_to_float64(value, mode)
    single = float(to_float32(number))
    if mode == "exact" and single != value:
        raise out_of_range(f"JSON number {value} cannot be converted to FLOAT without loss")
    return single


def converter(convert: Callable[[object, str], object]) -> Callable[..., object]:
    """BOOL, INT64, FLOAT64, STRING and their kin of a document."""

    def call(document: str, mode: str = "round") -> object:
        check_mode(mode)
        return convert(json.loads(document), mode)

    return call


def array_converter(convert: Callable[[object, str], object]) -> Callable[..., str]:
    """The same of every element of a JSON array."""

    def call(document: str, mode: str = "round") -> str:
        check_mode(mode)
        items = json.loads(document)
        if not isinstance(items, list):
            raise not_convertible(items, "an array")
        return array_text([convert(each, mode) for each in items])

    return call


def lax_bool(document: str) -> int | None:
    """LAX_BOOL."""
    value = json.loads(document)
    if isinstance(value, str):
        return {"true": 1, "false": 0}.get(value.lower())
    return int(bool(value)) if isinstance(value, bool | int | float) else None


def lax_int64(document: str) -> int | None:
    """LAX_INT64: rounds; NULL where it does not fit."""
    value = json.loads(document)
    if isinstance(value, bool):
        return int(value)
    number = lax_number(value)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    rounded = number if isinstance(number, int) else round_half_away(number)
    return rounded if INT64_MIN <= rounded <= INT64_MAX else None


def round_half_away(number: float) -> int:
    """Rounded half away from zero."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


def lax_number(value: object) -> int | float | None:
    """A number, or one in a string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or HEXADECIMAL.match(value.strip().lower()):
        return None
    for convert in (parse_int64, lambda text: read_float(parse_float64(text))):
        try:
            number: int | float = convert(value)
        except (ValueError, OverflowError):
            continue
        return number
    return None


def lax_float64(document: str) -> float | str | None:
    """LAX_FLOAT64."""
    number = lax_number(json.loads(document))
    if number is None:
        return None
    return "NaN" if isinstance(number, float) and math.isnan(number) else float(number)


def lax_string(document: str) -> str | None:
    """LAX_STRING."""
    value = json.loads(document)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return float_text(value) if isinstance(value, float) else None


CONVERTERS = {
    "bool": json_to_bool,
    "int64": json_to_int64,
    "float64": json_to_float64,
    "float32": json_to_float32,
    "string": json_to_string,
}
