"""A double as GoogleSQL writes it in JSON: the digits of Grisu2, which are the fewest that tell it
from other doubles but for one number in a thousand (0.39240506 is 0.39240506000000003).

Source of the rule: GoogleSQL writes JSON with nlohmann's library, which uses Grisu2 (Florian
Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", 2010). A number
that is read must come out as it was written, so what is refused depends on these digits, too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

MANTISSA_BITS, EXPONENT_BIAS = 52, 1075
WORD = 64
EXPONENT_MIN = -60
"""The product of a double and a power of ten has a binary exponent from here to -32."""
POWER_MIN, POWER_STEP = -300, 8
LOG10_OF_2 = (78_913, 18)
"""log10(2) is the first divided by 2 to the power of the second."""
PLAIN_MIN, PLAIN_MAX = -4, 15
"""With the point outside of these places a number is written with an exponent."""


@dataclass(frozen=True, slots=True)
class Binary:
    """``mantissa`` * 2 ** ``exponent``."""

    mantissa: int
    exponent: int

    def normalized(self) -> Binary:
        """The same with a mantissa of 64 bits."""
        shift = WORD - self.mantissa.bit_length()
        return Binary(self.mantissa << shift, self.exponent - shift)

    def times(self, other: Binary) -> Binary:
        """The product with a mantissa of 64 bits, rounded."""
        product = self.mantissa * other.mantissa + (1 << (WORD - 1))
        return Binary(product >> WORD, self.exponent + other.exponent + WORD)


def write_number(value: float) -> str:
    """A finite double as JSON."""
    sign = "-" if struct.pack(">d", value)[0] & 0x80 else ""
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = find_digits(abs(value))
    return sign + place_point(digits, exponent)


def place_point(digits: str, exponent: int) -> str:
    """Digits * 10 ** exponent as a text with a point or an exponent."""
    point = len(digits) + exponent
    if len(digits) <= point <= PLAIN_MAX:
        return digits + "0" * exponent + ".0"
    if 0 < point <= PLAIN_MAX:
        return f"{digits[:point]}.{digits[point:]}"
    if PLAIN_MIN < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+03d}"


def find_digits(value: float) -> tuple[str, int]:
    """The digits of a positive double and their decimal exponent."""
    low, middle, high = find_bounds(value)
    power, decimal = power_for(high.exponent)
    low, middle, high = (each.times(power) for each in (low, middle, high))
    # One unit of rounding on either side is not safe.
    inside = Binary(high.mantissa - 1, high.exponent)
    return generate(
        inside, inside.mantissa - low.mantissa - 1, inside.mantissa - middle.mantissa, -decimal
    )


def find_bounds(value: float) -> tuple[Binary, Binary, Binary]:
    """Half way to the double below, the double, half way to the double above; one exponent."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    fraction, exponent = bits & ((1 << MANTISSA_BITS) - 1), bits >> MANTISSA_BITS
    mantissa = fraction + (1 << MANTISSA_BITS) if exponent else fraction
    exact = Binary(mantissa, max(exponent, 1) - EXPONENT_BIAS)
    high = Binary(2 * mantissa + 1, exact.exponent - 1).normalized()
    is_power_of_two = fraction == 0 and exponent > 1
    below = (
        Binary(4 * mantissa - 1, exact.exponent - 2)
        if is_power_of_two
        else Binary(2 * mantissa - 1, exact.exponent - 1)
    )
    low = Binary(below.mantissa << (below.exponent - high.exponent), high.exponent)
    return low, exact.normalized(), high


def power_for(exponent: int) -> tuple[Binary, int]:
    """The power of ten that brings a binary exponent into the range, and its decimal exponent."""
    distance = EXPONENT_MIN - exponent - 1
    factor, shift = LOG10_OF_2
    least = int(distance * factor / (1 << shift)) + (1 if distance > 0 else 0)
    index = (least - POWER_MIN + POWER_STEP - 1) // POWER_STEP
    decimal = POWER_MIN + index * POWER_STEP
    return power_of_ten(decimal), decimal


@cache
def power_of_ten(decimal: int) -> Binary:
    """10 ** decimal with a mantissa of 64 bits, rounded."""
    exact = Fraction(10) ** decimal
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() - WORD
    while True:
        mantissa = round(exact / Fraction(2) ** exponent)
        if mantissa.bit_length() == WORD:
            return Binary(mantissa, exponent)
        exponent += 1 if mantissa.bit_length() > WORD else -1


def generate(high: Binary, delta: int, distance: int, decimal: int) -> tuple[str, int]:
    """The first digits of ``high`` that lie within ``delta`` of it, rounded towards the number that
    is ``distance`` below it."""
    shift = -high.exponent
    whole, rest = high.mantissa >> shift, high.mantissa & ((1 << shift) - 1)
    digits = str(whole)
    for count in range(1, len(digits) + 1):
        left = len(digits) - count
        unit = 10**left
        remainder = ((whole % unit) << shift) + rest
        if remainder <= delta:
            taken = [int(each) for each in digits[:count]]
            return weed(taken, distance, delta, remainder, unit << shift), decimal + left
    taken = [int(each) for each in digits]
    for places in range(1, WORD):
        rest, delta, distance = rest * 10, delta * 10, distance * 10
        taken.append(rest >> shift)
        rest &= (1 << shift) - 1
        if rest <= delta:
            return weed(taken, distance, delta, rest, 1 << shift), decimal - places
    raise AssertionError("a double has fewer digits")


def weed(digits: list[int], distance: int, delta: int, rest: int, unit: int) -> str:
    """Lowers the last digit as long as that is nearer to the number, and inside."""
    while (
        rest < distance
        and delta - rest >= unit
        and (rest + unit < distance or distance - rest > rest + unit - distance)
    ):
        digits[-1] -= 1
        rest += unit
    return "".join(map(str, digits))
