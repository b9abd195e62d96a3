"""Between the values of Python and the storage form of Spanner's types."""

from __future__ import annotations

import base64
import json
import re
import uuid
from binascii import b2a_base64
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException

from emulator.values.json_numbers import write_number
from emulator.values.json_text import write_document

NUMERIC_SCALE = Decimal(10) ** 9
JSON_DEPTH_MAX = 80
NUMERIC_LIMIT = 10**38
NUMERIC_DIGITS, NUMERIC_FRACTION = 29, 9
"""Before and behind the point."""
NUMERIC_CONTEXT = Context(prec=100)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999 in microseconds since 1970."""

NUMBER = re.compile(r"\s*+[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?\s*+\Z", re.ASCII)
UUID_TEXT = re.compile(r"[0-9a-fA-F](?:-?[0-9a-fA-F]){31}")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})\Z")


def timestamp_from_micros(micros: int) -> str:
    """Microseconds since 1970 -> the nine-digit form, within the years 1 to 9999."""
    seconds, fraction = divmod(min(max(micros, MICROS_MIN), MICROS_MAX), 1_000_000)
    moment = EPOCH + timedelta(seconds=seconds)
    return f"{moment.isoformat()[:19]}.{fraction:06}000Z"


def micros_from_timestamp(form: str, *, up: bool = False) -> int:
    """The nine-digit form -> microseconds since 1970, rounded down or ``up``."""
    moment = datetime.fromisoformat(form[:26] + "+00:00")
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    return micros + (up and form[26:29] > "000")


def timestamp_to_text(form: str) -> str:
    """The nine-digit form -> RFC 3339 as Spanner prints it (no needless zeros)."""
    if not form.endswith("000Z"):
        return form
    if not form.endswith("000000Z"):
        return form[:26] + "Z"
    return form[:19] + "Z" if form.endswith(".000000000Z") else form[:23] + "Z"


def date_form(text: str) -> str:
    """A date as people write it -> 'YYYY-MM-DD'. Raises ValueError."""
    match = DATE.match(text)
    if match is None:
        raise ValueError(f"Invalid date: '{text}'")
    return date(*map(int, match.groups())).isoformat()


def bytes_of(value: object) -> bytes:
    """BYTES from storage, or in base64 from inside an array."""
    return value if isinstance(value, bytes) else base64.b64decode(str(value))


def numeric_from_decimal(value: Decimal) -> str:
    """A decimal -> the sortable form. Raises ValueError when it does not fit NUMERIC."""
    scaled = int(
        NUMERIC_CONTEXT.multiply(value, NUMERIC_SCALE).quantize(
            Decimal(1), ROUND_HALF_UP, NUMERIC_CONTEXT
        )
        if value.is_finite() and value.adjusted() < NUMERIC_DIGITS
        else NUMERIC_LIMIT
    )
    if abs(scaled) >= NUMERIC_LIMIT:
        raise ValueError(f"Invalid NUMERIC value: {value}")
    return f"1{scaled:038d}" if scaled >= 0 else f"0{NUMERIC_LIMIT + scaled:038d}"


def numeric_form(text: str) -> str:
    """A number as people write it -> the sortable form. Raises ValueError."""
    if not NUMBER.match(text):
        raise ValueError(f"Invalid NUMERIC value: '{text}'")
    try:
        value = NUMERIC_CONTEXT.create_decimal(text.strip())
    except DecimalException as error:
        raise ValueError(f"Invalid NUMERIC value: '{text}'") from error
    return numeric_from_decimal(value)


def decimal_from_numeric(form: str) -> Decimal:
    """The sortable form -> a decimal."""
    scaled = int(form[1:]) - (0 if form[0] == "1" else NUMERIC_LIMIT)
    return Decimal(scaled).scaleb(-9, NUMERIC_CONTEXT)


def numeric_to_text(form: str) -> str:
    """The sortable form -> as Spanner prints it (no needless zeros)."""
    sign, digits = "", form[1:]
    if form[0] == "0":
        sign, digits = "-", f"{NUMERIC_LIMIT - int(digits):038d}"
    whole = digits[:-NUMERIC_FRACTION].lstrip("0") or "0"
    fraction = digits[-NUMERIC_FRACTION:].rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def json_form(text: str, exact: bool = False) -> str:
    """JSON text -> Spanner's normal form. Raises ValueError; with ``exact`` also for numbers that
    neither 64 bits nor a double hold, which are rounded without it.
    """
    try:
        value = json.loads(
            text,
            parse_constant=refuse_constant,
            parse_int=exact_integer if exact else round_integer,
            parse_float=exact_float if exact else finite_float,
            object_pairs_hook=first_of_each_key,
        )
    except RecursionError:
        raise nested_json() from None
    except json.JSONDecodeError as error:
        raise ValueError(f"Invalid JSON at character {error.pos + 1}") from error
    if text.count("[") + text.count("{") > JSON_DEPTH_MAX and depth_of(value) > JSON_DEPTH_MAX:
        raise nested_json()
    form = write_document(value)
    if HALF_CHARACTER.search(form):
        raise ValueError("Invalid JSON: half of a surrogate pair stands alone")
    return form


def depth_of(document: object) -> int:
    """How deeply the arrays and objects of a document nest."""
    depth, level = 0, [document]
    while level := [value for value in level if isinstance(value, list | dict)]:
        depth += 1
        members = (value.values() if isinstance(value, dict) else value for value in level)
        level = [member for group in members for member in group]
    return depth


def nested_json() -> ValueError:
    """A document that Spanner does not take."""
    return ValueError(f"the document nests more than {JSON_DEPTH_MAX} levels deep")


def round_integer(text: str) -> int | float:
    """An integer of 64 bits, signed or not, or the nearest double."""
    number = int(text) if len(text) < 30 else 1 << 64
    return number if -(1 << 63) <= number < 1 << 64 else finite_float(text)


def exact_integer(text: str) -> int | float:
    """The same, refused where the double is another number."""
    number = round_integer(text)
    if number != int(text):
        raise ValueError(f"the number {text} cannot be stored without loss of precision")
    return number


def finite_float(text: str) -> float:
    """A double. Raises ValueError for a number that is too large."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is out of range")
    return number


def exact_float(text: str) -> float:
    """A double that is written as the number it was read from."""
    number = finite_float(text)
    if Decimal(text) != Decimal(write_number(number)):
        raise ValueError(f"the number {text} cannot be stored without loss of precision")
    return number


def first_of_each_key(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; of equal keys the first counts."""
    members: dict[str, object] = {}
    for key, value in pairs:
        members.setdefault(key, value)
    return members


def base64_text(value: object) -> str:
    """BYTES as Spanner writes them; inside an array they are so already."""
    return (
        b2a_base64(value, newline=False).decode("ascii") if isinstance(value, bytes) else str(value)
    )


def refuse_constant(word: str) -> object:
    """Refuses NaN and Infinity, which are not JSON."""
    raise ValueError(f"Invalid JSON: {word}")


def uuid_form(text: str) -> str:
    """A UUID in any usual writing -> lower case with dashes. Raises ValueError."""
    digits = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not UUID_TEXT.fullmatch(digits):
        raise ValueError(f"Invalid UUID value: '{text}'")
    return str(uuid.UUID(digits))
