"""to_char and to_number of numbers in the PostgreSQL dialect: template patterns."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from emulator.errors import invalid_argument, unimplemented
from emulator.sql.functions.numbers import Float, read_float
from emulator.sql.functions.postgres_numbers import rounded_to, to_form
from emulator.values import pg_numeric

NUMBER_WORDS = ("FM", "D", "G", "SG", "S", "MI", "PL", "PR", "L", "V", "EEEE", "RN", "TH")
NUMBER_PATTERN = re.compile(
    "|".join(('"[^"]*"', *NUMBER_WORDS, *(word.lower() for word in NUMBER_WORDS), ".")), re.DOTALL
)
"""Words of templates of numbers are in capitals or in small letters, not in both."""
SCIENTIFIC = re.compile(r"9\.(9+)(?:EEEE|eeee)")
"""The one template with an exponent that is supported: as C prints %e."""


def read_number_piece(piece: str) -> str:
    """A piece of a template of numbers; words in capitals."""
    return piece.upper() if piece.upper() in NUMBER_WORDS else piece


class Template:
    """A template of numbers: its digits and signs."""

    def __init__(self, text: str) -> None:
        self.pieces = [read_number_piece(each) for each in NUMBER_PATTERN.findall(text)]
        for each in self.pieces:
            if each in {"V", "EEEE", "RN", "TH", "PL", "SG", "L"}:
                raise unimplemented(f"the pattern {each} of numbers")
        self.filled = "FM" not in self.pieces
        self.pieces = [each for each in self.pieces if each != "FM"]
        self.point = next((n for n, p in enumerate(self.pieces) if p in {".", "D"}), None)
        whole = self.pieces if self.point is None else self.pieces[: self.point]
        rest = [] if self.point is None else self.pieces[self.point + 1 :]
        self.whole = [p for p in whole if p in {"9", "0"}]
        self.scale = sum(p in {"9", "0"} for p in rest)
        last = max((n for n, p in enumerate(self.pieces) if p in {"9", "0"}), default=-1)
        if "PR" in self.pieces and self.pieces.index("PR") < last:
            raise invalid_argument('"9" must be ahead of "PR"')
        self.leading_sign = "S" in self.pieces and self.pieces.index("S") < last

    def has(self, *names: str) -> bool:
        """Whether the template has one of some patterns."""
        return any(name in self.pieces for name in names)


def char_number(number: Decimal, text: str) -> str:
    """to_char of a number that is finite."""
    template = Template(text)
    scaled = abs(rounded_to(number, template.scale))
    negative = number < 0 and scaled != 0
    digits = f"{scaled:.{template.scale}f}"
    whole, _, fraction = digits.partition(".")
    if len(whole) > len(template.whole):
        return overflow(template, number < 0)
    hidden = (
        whole == "0"
        and template.scale
        and (template.filled or scaled != 0 or "0" in after_point(template))
    )
    if hidden and "0" not in template.whole:
        whole = ""
    first_zero = next((n for n, p in enumerate(template.whole) if p == "0"), len(template.whole))
    shown_from = min(len(template.whole) - len(whole), first_zero)
    padded = whole.rjust(len(template.whole), "0")
    return lay_out(template, padded, fraction, shown_from, negative=negative)


def overflow(template: Template, negative: bool) -> str:
    """A number with more digits than the template has room for."""
    fraction = "#" * template.scale
    return lay_out(template, "#" * len(template.whole), fraction, 0, negative=negative)


def lay_out(
    template: Template, whole: str, fraction: str, shown_from: int, *, negative: bool
) -> str:
    """The digits in their places, with the sign where the template has it."""
    if not template.filled:
        zeros = [n for n, p in enumerate(after_point(template)) if p == "0"]
        kept = max(len(fraction.rstrip("0")), zeros[-1] + 1 if zeros else 0)
        fraction = fraction[:kept]
    layout = Layout(template, whole, fraction, shown_from, negative=negative)
    for place, piece in enumerate(template.pieces):
        layout.add(piece, behind=template.point is not None and place > template.point)
    return "".join(layout.out)


class Layout:
    """A number that is laid out, piece by piece."""

    def __init__(
        self, template: Template, whole: str, fraction: str, shown_from: int, *, negative: bool
    ) -> None:
        self.out: list[str] = []
        self._template = template
        self._blank = " " if template.filled else ""
        self._whole = iter(whole)
        self._fraction = iter(fraction)
        self._left = shown_from
        self._negative = negative
        self._placed = False

    def add(self, piece: str, *, behind: bool) -> None:
        """Adds what a piece of the template shows."""
        if piece in {"9", "0"}:
            self._add_digit(behind=behind)
        elif piece in {".", "D"}:
            if self._template.scale:
                self._place_sign()
                self.out.append(".")
        elif piece in {",", "G"}:
            self.out.append("," if self._placed else self._blank)
        elif piece != "S" or not self._template.leading_sign:
            self.out.append(sign_piece(piece, self._negative, self._template.filled))

    def _add_digit(self, *, behind: bool) -> None:
        if behind:
            self._place_sign()
            self.out.append(next(self._fraction, ""))
            return
        digit = next(self._whole)
        if self._left > 0:
            self._left -= 1
            self.out.append(self._blank)
            return
        self._place_sign()
        self.out.append(digit)

    def _place_sign(self) -> None:
        """The sign stands before the first digit, unless the template says where."""
        if self._placed:
            return
        self._placed = True
        if self._template.has("PR"):
            self.out.append("<" if self._negative else self._blank)
        elif self._template.leading_sign:
            self.out.append("-" if self._negative else "+")
        elif not self._template.has("S", "MI"):
            self.out.append("-" if self._negative else self._blank)


def after_point(template: Template) -> list[str]:
    """The digits behind the point."""
    rest = [] if template.point is None else template.pieces[template.point + 1 :]
    return [p for p in rest if p in {"9", "0"}]


def sign_piece(piece: str, negative: bool, filled: bool) -> str:
    """S, MI, PR, or a text."""
    if piece == "S":
        return "-" if negative else "+"
    if piece == "MI":
        return "-" if negative else (" " if filled else "")
    if piece == "PR":
        return ">" if negative else (" " if filled else "")
    return piece.strip('"') if piece.startswith('"') else piece


def char_bigint(value: int, template: str) -> str:
    """to_char of a bigint."""
    return char_number(Decimal(value), template)


def char_numeric(form: str, template: str) -> str:
    """to_char of a numeric."""
    number = pg_numeric.number_of_form(form)
    if number.is_nan():
        raise unimplemented("to_char of NaN")
    return char_number(number, template)


def char_float(value: Float, template: str) -> str:
    """to_char of a floating number."""
    number = read_float(value)
    scientific = SCIENTIFIC.fullmatch(template)
    if scientific is not None and math.isfinite(number):
        text = f"{number:.{len(scientific[1])}e}"
        return text if text.startswith("-") else f" {text}"
    if not math.isfinite(number):
        raise unimplemented("to_char of NaN and infinities")
    return char_number(Decimal(repr(number)), template)


def to_number(text: str, template: str) -> str:
    """to_number: the digits of a text that the template has room for."""
    parsed = Template(template)
    negative = "-" in text or (parsed.has("PR") and "<" in text)
    whole, point, fraction = re.sub(r"[^0-9.]", "", text).partition(".")
    whole = whole[: len(parsed.whole)]
    fraction = fraction[: parsed.scale] if point else ""
    if not whole and not fraction:
        raise invalid_argument(f'invalid input syntax for type numeric: "{text}"')
    number = Decimal(f"{whole or 0}.{fraction}" if fraction else whole or "0")
    return to_form(-number if negative else number)
