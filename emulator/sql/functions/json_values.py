"""BOOL(json), INT64(json), LAX_STRING(json) and the like: what a JSON value is as SQL has it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from emulator.errors import out_of_range
from emulator.sql.functions.casts import float_text, parse_float64, parse_int64
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
    found = json.loads(document)
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return "null" if found is None else names.get(type(found), "number")


def not_convertible(found: object, wanted: str) -> Exception:
    """The error of a conversion."""
    return out_of_range(f"The provided JSON input is not {wanted}: {dump(found)[:60]}")


def json_to_bool(found: object, mode: str) -> int:
    """JSON boolean -> BOOL."""
    if not isinstance(found, bool):
        raise not_convertible(found, "a boolean")
    return int(found)


def json_to_string(found: object, mode: str) -> str:
    """JSON string -> STRING."""
    if not isinstance(found, str):
        raise not_convertible(found, "a string")
    return found


def json_to_int64(found: object, mode: str) -> int:
    """JSON number without fraction -> INT64."""
    whole = isinstance(found, int) or (isinstance(found, float) and found.is_integer())
    if (
        isinstance(found, bool)
        or not whole
        or not INT64_MIN <= int(whole_number(found)) <= INT64_MAX
    ):
        raise not_convertible(found, "an integer of 64 bits")
    return int(whole_number(found))


def whole_number(found: object) -> int:
    """A JSON number as Python's own integer."""
    return int(found) if isinstance(found, int | float) else 0


def json_to_float64(found: object, mode: str) -> float:
    """JSON number -> FLOAT64."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise not_convertible(found, "a number")
    number = float(found)
    if mode == "exact" and number != found:
        raise out_of_range(f"JSON number {found} cannot be converted to DOUBLE without loss")
    return number


def json_to_float32(found: object, mode: str) -> float:
    """JSON number -> FLOAT32."""
    number = json_to_float64(found, mode)
    single = float(to_float32(number))
    if mode == "exact" and isinstance(found, int) and single != found:
        raise out_of_range(f"JSON number {found} cannot be converted to FLOAT without loss")
    return single


def converter(one: Callable[[object, str], object]) -> Callable[..., object]:
    """BOOL, INT64, FLOAT64, STRING and their kin of a document."""

    def call(document: str, mode: str = "round") -> object:
        check_mode(mode)
        return one(json.loads(document), mode)

    return call


def array_converter(one: Callable[[object, str], object]) -> Callable[..., str]:
    """The same of every element of a JSON array."""

    def call(document: str, mode: str = "round") -> str:
        check_mode(mode)
        found = json.loads(document)
        if not isinstance(found, list):
            raise not_convertible(found, "an array")
        return array_text([one(each, mode) for each in found])

    return call


def lax_bool(document: str) -> int | None:
    """LAX_BOOL."""
    found = json.loads(document)
    if isinstance(found, str):
        return {"true": 1, "false": 0}.get(found.lower())
    return int(bool(found)) if isinstance(found, bool | int | float) else None


def lax_int64(document: str) -> int | None:
    """LAX_INT64: rounds; NULL where it does not fit."""
    found = json.loads(document)
    if isinstance(found, bool):
        return int(found)
    number = lax_number(found)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    rounded = number if isinstance(number, int) else round_half_away(number)
    return rounded if INT64_MIN <= rounded <= INT64_MAX else None


def round_half_away(number: float) -> int:
    """Rounded half away from zero."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


def lax_number(found: object) -> int | float | None:
    """A number, or one in a string."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int | float):
        return found
    if not isinstance(found, str) or found != found.strip():
        return None
    for convert in (parse_int64, lambda text: read_float(parse_float64(text))):
        try:
            number: int | float = convert(found)
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
    found = json.loads(document)
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int):
        return str(found)
    return float_text(found) if isinstance(found, float) else None


CONVERTERS = {
    "bool": json_to_bool,
    "int64": json_to_int64,
    "float64": json_to_float64,
    "float32": json_to_float32,
    "string": json_to_string,
}
