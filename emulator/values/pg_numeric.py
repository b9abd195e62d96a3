"""The numeric of the PostgreSQL dialect: any digits, a scale that is kept, NaN.

The stored form is a key that sorts as the number, a colon, and the number as PostgreSQL prints it:
1.0 and 1.00 have one key and two texts.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

NAN = "NaN"
WHOLE_DIGITS_MAX = 131_072
SCALE_MAX = 16_383
EXPONENT_SHIFT = 200_000
CONTEXT = Context(prec=WHOLE_DIGITS_MAX + SCALE_MAX + 10, Emax=999_999_999, Emin=-999_999_999)
NUMBER = re.compile(r"\s*+([+-]?)(\d++\.?\d*+|\.\d++)(?:[eE]([+-]?\d{1,9}))?\s*+\Z", re.ASCII)
NAN_TEXT = re.compile(r"\s*nan\s*\Z", re.IGNORECASE)
COMPLEMENT = str.maketrans("0123456789", "9876543210")


def parse_numeric(text: str) -> Decimal:
    """A number as PostgreSQL reads it, or NaN. Raises ValueError, with PostgreSQL's sentence."""
    if NAN_TEXT.match(text):
        return Decimal("NaN")
    match = NUMBER.match(text)
    if match is None:
        raise ValueError(f'invalid input syntax for type numeric: "{text}"')
    number = CONTEXT.create_decimal(text.strip())
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent > 0:
        number = check_range(number).quantize(Decimal(1), context=CONTEXT)
    return check_range(number)


def check_range(number: Decimal) -> Decimal:
    """The number itself; what has too many digits behind the point is rounded.

    Raises ValueError for one with too many digits before it.
    """
    if number.is_nan():
        return number
    if number and number.adjusted() >= WHOLE_DIGITS_MAX:
        raise ValueError("value overflows numeric format")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -SCALE_MAX:
        number = number.quantize(Decimal(1).scaleb(-SCALE_MAX), "ROUND_HALF_UP", CONTEXT)
    return number


def numeric_text(number: Decimal) -> str:
    """A number as PostgreSQL prints it: there is no minus zero."""
    if number.is_nan():
        return NAN
    return f"{number if number else abs(number):f}"


def numeric_key(number: Decimal) -> str:
    """A text that sorts as the number, the same for equal numbers; NaN is greatest."""
    if number.is_nan():
        return "9"
    if not number:
        return "5"
    digits = "".join(map(str, number.as_tuple().digits)).lstrip("0").rstrip("0")
    exponent = f"{number.adjusted() + EXPONENT_SHIFT:06d}"
    if number > 0:
        return f"7{exponent}{digits}"
    return f"3{(exponent + digits).translate(COMPLEMENT)}~"


def numeric_form(number: Decimal) -> str:
    """The stored form. Raises ValueError for a number beyond PostgreSQL's range."""
    kept = check_range(number)
    return f"{numeric_key(kept)}:{numeric_text(kept)}"


def text_of_form(form: str) -> str:
    """The stored form -> as PostgreSQL prints it."""
    return form.partition(":")[2]


def key_of_form(form: str) -> str:
    """The stored form -> what sorts and compares."""
    return form.partition(":")[0]


def number_of_form(form: str) -> Decimal:
    """The stored form -> the number."""
    return Decimal(text_of_form(form))


def scale_of(number: Decimal) -> int:
    """How many digits are printed behind the point."""
    exponent = number.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0
