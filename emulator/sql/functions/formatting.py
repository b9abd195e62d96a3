"""FORMAT(pattern, ...): like printf, with %t and %T for every type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

from emulator.sql.functions.format_patterns import (
    OUTPUT_MAX,
    WHOLE,
    Specifier,
    check_precision,
    check_types,
    parse_pattern,
    too_long,
)
from emulator.sql.functions.json_documents import parse_type
from emulator.sql.functions.numbers import read_float
from emulator.sql.functions.sql_text import to_literal, to_readable
from emulator.values import forms
from emulator.values.json_text import write_lines

GROUP_OF_THREE = 3
DOUBLE = '"FLOAT64"'
"""How the compiler writes the type of an argument."""
FLOATS = "fFeEgG"


@dataclass(frozen=True, slots=True)
class FormatArgument:
    """An argument: its type as the compiler encodes it, and its value in storage form."""

    type: Any
    value: Any


def format_values(pattern: str | None, *arguments: object) -> str | None:
    """FORMAT: types and values alternate. NULL where an argument is, unless %t or %T."""
    if pattern is None:
        return None
    if len(arguments) == 2 and arguments[0] == DOUBLE and isinstance(arguments[1], float):
        plain = find_printf(pattern)
        if plain is not None and math.isfinite(arguments[1]):
            return plain % (arguments[1] + 0.0)
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    waiting = [FormatArgument(parse_type(str(type_)), value) for type_, value in pairs]
    check_types(pattern, [each.type for each in waiting])
    texts: list[str] = []
    for piece in parse_pattern(pattern):
        text = format_specifier(piece, waiting) if isinstance(piece, Specifier) else piece
        if text is None:
            return None
        texts.append(text)
    result = "".join(texts)
    if len(result) > OUTPUT_MAX:
        raise too_long()
    return result


@lru_cache(maxsize=100)
def find_printf(pattern: str) -> str | None:
    """A pattern that is nothing but a float's without flags, such as %.16e, which Python's own
    operator formats alike; else None."""
    pieces = [piece for piece in parse_pattern(pattern) if piece]
    only = pieces[0] if len(pieces) == 1 else None
    if not isinstance(only, Specifier) or only.letter not in FLOATS or only.starred or only.flags:
        return None
    return pattern if only.width <= OUTPUT_MAX else None


def format_specifier(specifier: Specifier, waiting: list[FormatArgument]) -> str | None:
    """A specifier with its arguments; NULL of a NULL width, precision or value."""
    for name in specifier.starred:
        number = waiting.pop(0).value
        if number is None:
            return None
        if name == "width":
            flags = specifier.flags + ("-" if number < 0 else "")
            specifier = replace(specifier, width=abs(number), flags=flags)
        else:
            precision = check_precision(number, specifier.letter)
            specifier = replace(specifier, precision=precision)
    if specifier.width > OUTPUT_MAX:
        raise too_long()
    return format_value(specifier, waiting.pop(0))


def format_value(specifier: Specifier, argument: FormatArgument) -> str | None:
    """One value."""
    letter = specifier.letter
    if letter in "tT":
        write = to_literal if letter == "T" else to_readable
        return pad(specifier, write(argument.type, argument.value)[: specifier.precision])
    if argument.value is None:
        return None
    if letter in WHOLE:
        return format_whole(specifier, argument.value)
    if letter in "pP":
        return format_json(specifier, argument.value)
    if letter == "s":
        return pad(specifier, argument.value.partition("\0")[0][: specifier.precision])
    if argument.type == "NUMERIC":
        return format_numeric(specifier, forms.decimal_from_numeric(argument.value))
    # Without the sign of zero: -0.0 prints as 0.
    return format_float(specifier, read_float(argument.value) + 0.0)


def pad(specifier: Specifier, text: str) -> str:
    """As wide as asked for."""
    if "-" in specifier.flags:
        return text.ljust(specifier.width)
    return text.rjust(specifier.width)


def sign_number(specifier: Specifier, negative: bool, digits: str, prefix: str = "") -> str:
    """A number with its sign and prefix, filled with zeros where asked for."""
    plus = "+" if "+" in specifier.flags else " " if " " in specifier.flags else ""
    front = ("-" if negative else plus) + prefix
    if "0" in specifier.flags and "-" not in specifier.flags:
        return front + digits.rjust(specifier.width - len(front), "0")
    return pad(specifier, front + digits)


def group_digits(digits: str, size: int, mark: str) -> str:
    """Digits in groups from the right."""
    first = len(digits) % size or size
    parts = [digits[:first], *(digits[i : i + size] for i in range(first, len(digits), size))]
    return mark.join(parts)


def format_whole(specifier: Specifier, value: int) -> str:
    """%d %i %o %x %X."""
    letter, flags = specifier.letter, specifier.flags
    digits = format(abs(value), {"i": "d"}.get(letter, letter))
    prefix = {"o": "0", "x": "0x", "X": "0X"}.get(letter, "") if "#" in flags else ""
    if len(digits) < (specifier.precision or 0):
        digits = digits.rjust(specifier.precision or 0, "0")
        prefix = "" if letter == "o" else prefix
    if "'" in flags:
        size = GROUP_OF_THREE if letter in "di" else 4
        digits = group_digits(digits, size, ":" if letter in "xX" else ",")
    elif letter in "di" and specifier.precision is not None:
        # As in C: with a precision the flag 0 says nothing.
        specifier = replace(specifier, flags=flags.replace("0", ""))
    return sign_number(specifier, value < 0, digits, prefix)


def format_float(specifier: Specifier, number: float) -> str:
    """%f %e %g and their capitals, of a double."""
    letter = specifier.letter
    if not math.isfinite(number):
        word = "nan" if math.isnan(number) else "inf"
        plain = replace(specifier, flags=specifier.flags.replace("0", ""))
        return sign_number(plain, number < 0, word.upper() if letter.isupper() else word)
    precision = 6 if specifier.precision is None else specifier.precision
    form = "#" if "#" in specifier.flags else ""
    text = f"{abs(number):{form}.{precision}{letter}}"
    return sign_number(specifier, math.copysign(1, number) < 0, group_number(specifier, text))


def group_number(specifier: Specifier, text: str) -> str:
    """The digits before the point in groups, where asked for."""
    if "'" not in specifier.flags:
        return text
    whole = text[: next((n for n, c in enumerate(text) if not c.isdigit()), len(text))]
    return group_digits(whole, GROUP_OF_THREE, ",") + text[len(whole) :]


def format_numeric(specifier: Specifier, value: Decimal) -> str:
    """The same of NUMERIC: every digit is exact, halves are rounded away from zero."""
    letter = specifier.letter
    precision = 6 if specifier.precision is None else specifier.precision
    size = forms.NUMERIC_CONTEXT.abs(value)
    write: dict[str, Callable[[Decimal, int, bool], str]] = {
        "f": write_fixed,
        "e": write_exponent,
        "g": write_general,
    }
    text = write[letter.lower()](size, precision, "#" in specifier.flags)
    text = text.upper() if letter.isupper() else text
    return sign_number(specifier, value < 0, group_number(specifier, text))


def write_fixed(value: Decimal, precision: int, point: bool) -> str:
    """%f of a decimal."""
    exact = Context(prec=precision + 100)
    text = f"{value.quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP, exact):f}"
    return text + "." if point and not precision else text


def write_exponent(value: Decimal, precision: int, point: bool) -> str:
    """%e of a decimal."""
    rounded = Context(prec=precision + 1, rounding=ROUND_HALF_UP).create_decimal(value)
    exponent = rounded.adjusted() if rounded else 0
    digits = "".join(map(str, rounded.as_tuple().digits)) if rounded else "0"
    digits = digits.ljust(precision + 1, "0")
    mark = "." if precision or point else ""
    sign = "-" if exponent < 0 else "+"
    return f"{digits[0]}{mark}{digits[1 : precision + 1]}e{sign}{abs(exponent):02d}"


def write_general(value: Decimal, precision: int, point: bool) -> str:
    """%g of a decimal: %e or %f, whichever is shorter, without needless zeros."""
    digits = precision or 1
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(value)
    exponent = rounded.adjusted() if rounded else 0
    if -4 <= exponent < digits:
        text, end = write_fixed(value, digits - 1 - exponent, point), ""
    else:
        text, mark, end = write_exponent(value, digits - 1, point).partition("e")
        end = mark + end
    if "." in text and not point:
        text = text.rstrip("0").rstrip(".")
    return text + end


def format_json(specifier: Specifier, value: str) -> str:
    """%p, %P of JSON."""
    if specifier.letter == "P":
        value = write_lines(json.loads(value))
    return pad(specifier, value[: specifier.precision])


SEEING_NULL: dict[str, Callable[..., object]] = {"fn_format": format_values}
