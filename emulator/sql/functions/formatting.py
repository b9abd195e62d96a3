"""FORMAT(pattern, ...): like printf, with %t and %T for every type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from emulator.errors import out_of_range, unimplemented
from emulator.sql.functions.casts import float32_text, float_text
from emulator.sql.functions.json_documents import parse_type
from emulator.sql.functions.numbers import read_float
from emulator.values import forms

SPECIFIER = re.compile(r"%([-+ #0']*)(\*|\d+)?(?:\.(\*|\d+)?)?([A-Za-z%])|%")
PRECISION = re.compile(r"\.")
NUMBERS = {"NUMERIC", "FLOAT32", "FLOAT64"}
WHOLE = set("dioxX")
FRACTIONAL = set("fFeEgG")
INTEGERS_FRACTIONAL = NUMBERS | {"INT64"}
UTC = "UTC"


@dataclass(frozen=True, slots=True)
class FormatArgument:
    """An argument: its type as the compiler encodes it, and its value in storage form."""

    type: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Specifier:
    """%[flags][width][.precision]letter."""

    flags: str
    width: int
    precision: int | None
    letter: str


def format_values(pattern: str | None, *arguments: object) -> str | None:
    """FORMAT: types and values alternate. NULL where an argument is, unless %t or %T."""
    if pattern is None:
        return None
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    waiting = [FormatArgument(parse_type(str(type_)), value) for type_, value in pairs]
    pieces: list[str | None] = []
    end = 0
    for match in SPECIFIER.finditer(pattern):
        pieces.append(pattern[end : match.start()])
        end = match.end()
        pieces.append("%" if match.group() == "%%" else format_specifier(match, waiting))
    if waiting:
        raise out_of_range("Too many arguments to FORMAT for pattern " + repr(pattern))
    pieces.append(pattern[end:])
    texts = [piece for piece in pieces if piece is not None]
    return "".join(texts) if len(texts) == len(pieces) else None


def format_specifier(match: re.Match[str], waiting: list[FormatArgument]) -> str | None:
    """A specifier with its argument."""
    flags, width, precision, letter = match.groups()
    if letter is None:
        raise out_of_range(f"Invalid format specifier in FORMAT: {match.group()!r}")
    numbers: list[int | None] = []
    for text in (width, precision):
        if text == "*":
            numbers.append(int(take_argument(waiting, "INT64").value or 0))
        else:
            numbers.append(int(text) if text else None)
    if precision is None and PRECISION.search(match.group()):
        numbers[1] = 0
    if (numbers[0] or 0) < 0:
        flags, numbers[0] = flags + "-", -(numbers[0] or 0)
    specifier = Specifier(flags, numbers[0] or 0, numbers[1], letter)
    return format_value(specifier, take_argument(waiting))


def take_argument(waiting: list[FormatArgument], type_: str | None = None) -> FormatArgument:
    """The next argument."""
    if not waiting:
        raise out_of_range("Too few arguments to FORMAT for its pattern")
    if type_ is not None and waiting[0].type != type_:
        raise out_of_range(f"FORMAT needs an {type_} for *")
    return waiting.pop(0)


def format_value(specifier: Specifier, argument: FormatArgument) -> str | None:
    """One value."""
    letter = specifier.letter
    if letter in "tT":
        text = (
            to_literal(argument.type, argument.value)
            if letter == "T"
            else to_readable(argument.type, argument.value)
        )
        return pad(specifier, text[: specifier.precision])
    kinds: dict[str, Callable[[Specifier, Any, Any], str]] = {
        **dict.fromkeys(WHOLE, format_whole),
        **dict.fromkeys(FRACTIONAL, format_fractional),
        **dict.fromkeys("pP", format_json),
        "s": format_text,
    }
    accepted = {"s": {"STRING"}, "p": {"JSON"}, "P": {"JSON"}}
    types = accepted.get(letter, {"INT64"} if letter in WHOLE else INTEGERS_FRACTIONAL)
    if letter not in kinds:
        raise out_of_range(f"Invalid format specifier character {letter!r} in FORMAT string")
    if argument.type not in types:
        raise out_of_range(
            f"Invalid type for FORMAT argument; %{letter} does not take {argument.type}"
        )
    if argument.value is None:
        return None
    return kinds[letter](specifier, argument.value, argument.type)


def pad(specifier: Specifier, text: str) -> str:
    """As wide as asked for."""
    if "-" in specifier.flags:
        return text.ljust(specifier.width)
    return text.rjust(specifier.width)


def sign_number(specifier: Specifier, negative: bool, digits: str) -> str:
    """A number with its sign, filled with zeros where asked for."""
    plus = "+" if "+" in specifier.flags else " " if " " in specifier.flags else ""
    sign = "-" if negative else plus
    if "0" in specifier.flags and "-" not in specifier.flags:
        return sign + digits.rjust(specifier.width - len(sign), "0")
    return pad(specifier, sign + digits)


def format_whole(specifier: Specifier, value: int, type_: object) -> str:
    """%d %i %o %x %X."""
    letter = specifier.letter
    if letter in "oxX" and value < 0:
        raise out_of_range(f"FORMAT %{letter} takes no negative number: {value}")
    digits = format(abs(value), {"i": "d"}.get(letter, letter))
    digits = digits.rjust(specifier.precision or 0, "0")
    if "'" in specifier.flags:
        size, mark = (4, ":") if letter in "xX" else (4, ",") if letter == "o" else (3, ",")
        first = len(digits) % size or size
        parts = [digits[:first], *(digits[i : i + size] for i in range(first, len(digits), size))]
        digits = mark.join(parts)
    if "#" in specifier.flags and value and letter in "oxX":
        digits = {"o": "0", "x": "0x", "X": "0X"}[letter] + digits
    return sign_number(specifier, value < 0, digits)


def format_fractional(specifier: Specifier, value: Any, type_: object) -> str:
    """%f %e %g and their capitals."""
    letter = specifier.letter
    precision = 6 if specifier.precision is None else specifier.precision
    if type_ == "NUMERIC":
        exact = forms.decimal_from_numeric(value)
        if letter in "fF":
            step = Decimal(1).scaleb(-precision)
            rounded = exact.quantize(step, ROUND_HALF_UP, forms.NUMERIC_CONTEXT)
            return sign_number(specifier, exact < 0, f"{abs(rounded):f}")
        number = float(exact)
    else:
        number = read_float(value)
    if not math.isfinite(number):
        word = "nan" if math.isnan(number) else "inf"
        shown_word = word.upper() if letter.isupper() else word
        plain = Specifier(specifier.flags.replace("0", ""), specifier.width, None, letter)
        return sign_number(plain, number < 0, shown_word)
    form = "#" if "#" in specifier.flags else ""
    return sign_number(
        specifier, math.copysign(1, number) < 0, f"{abs(number):{form}.{precision}{letter}}"
    )


def format_text(specifier: Specifier, value: str, type_: object) -> str:
    """%s."""
    return pad(specifier, value[: specifier.precision])


def format_json(specifier: Specifier, value: str, type_: object) -> str:
    """%p, %P of JSON."""
    if specifier.letter == "p":
        return pad(specifier, value)
    return json.dumps(json.loads(value), indent=2, sort_keys=True, ensure_ascii=False)


def to_readable(type_: Any, value: Any) -> str:
    """%t: readable."""
    if value is None:
        return "NULL"
    if isinstance(type_, list):
        return format_composite(type_, value, to_readable)
    if type_ == "BOOL":
        return "true" if value else "false"
    if type_ in {"FLOAT64", "FLOAT32"}:
        return add_point(float32_text(value) if type_ == "FLOAT32" else float_text(value))
    if type_ == "NUMERIC":
        return forms.numeric_to_text(value)
    if type_ == "TIMESTAMP":
        return forms.timestamp_in_zone(value, forms.UTC_ZONE)
    if type_ == "BYTES":
        return escape_bytes(forms.bytes_of(value))
    return str(value)


def to_literal(type_: Any, value: Any) -> str:
    """%T: as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(type_, list):
        return format_composite(type_, value, to_literal)
    plain = to_readable(type_, value)
    if type_ in {"FLOAT64", "FLOAT32"} and not math.isfinite(read_float(value)):
        return f'CAST("{plain}" AS {type_})'
    if type_ == "STRING":
        return quote_string(value)
    if type_ == "BYTES":
        return "b" + quote_escaped(plain)
    if type_ == "JSON":
        return "JSON '" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if type_ in {"DATE", "TIMESTAMP", "NUMERIC"}:
        return f'{type_} "{plain}"'
    if type_ in {"BOOL", "INT64", "FLOAT64", "FLOAT32"}:
        return plain
    raise unimplemented(f"FORMAT %T of {type_}")


def format_composite(type_: Any, value: Any, each: Callable[[Any, Any], str]) -> str:
    """[a, b] and (a, b)."""
    items = json.loads(value)
    if type_[0] == "ARRAY":
        return "[" + ", ".join(each(type_[1], item) for item in items) + "]"
    parts = [each(inner, item) for (_, inner), item in zip(type_[1], items, strict=True)]
    return "(" + ", ".join(parts) + ")"


def add_point(text: str) -> str:
    """A float that looks like one."""
    return text + ".0" if re.fullmatch(r"-?\d+", text) else text


def escape_bytes(value: bytes) -> str:
    """BYTES that can be read."""
    return "".join(
        chr(b) if 32 <= b < 127 and b not in b"\\" else f"\\x{b:02x}" if b != 92 else "\\\\"
        for b in value
    )


def quote_string(value: str) -> str:
    """A string literal."""
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return quote_escaped("".join(escapes.get(c, c) for c in value))


def quote_escaped(value: str) -> str:
    """Quotes around escaped text: the kind that it does not hold."""
    if '"' not in value:
        return f'"{value}"'
    return "'" + value.replace("'", "\\'") + "'" if "'" in value else f"'{value}'"


SEEING_NULL: dict[str, Callable[..., object]] = {"fn_format": format_values}
