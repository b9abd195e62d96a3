"""Arrays: JSON text in storage."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal

from emulator.errors import SpannerError, out_of_range
from emulator.sql.functions.numbers import write_float
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.text_sizes import join_texts
from emulator.values.forms import NUMERIC_CONTEXT, decimal_from_numeric, numeric_from_decimal
from emulator.values.types import FLOAT32, FLOAT64, INT64
from emulator.values.types import array as array_of

GENERATED_MAX = 16_000
"""GoogleSQL's limit for the arrays that functions generate."""


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


def first_elements(values: str, count: int) -> str | None:
    """LIMIT inside an aggregate: NULL of none."""
    return dump(json.loads(values)[:count]) if count else None


def flatten(arrays: str) -> str | None:
    """ARRAY_CONCAT_AGG: NULL of nothing but NULLs."""
    present = [json.loads(each) for each in json.loads(arrays) if each is not None]
    return dump([item for each in present for item in each]) if present else None


def element_at(position: int, name: str) -> Callable[[str], object]:
    """ARRAY_FIRST, ARRAY_LAST: an error of an empty array."""

    def call(values: str) -> object:
        items = json.loads(values)
        if not items:
            raise out_of_range(f"{name} cannot get an element of an empty array")
        item: object = items[position]
        return item

    return call


def slice_array(values: str, low: int, high: int) -> str:
    """ARRAY_SLICE: both ends are in; negative ones count from the end."""
    items = json.loads(values)
    first = low if low >= 0 else max(low + len(items), 0)
    last = high if high >= 0 else high + len(items)
    return dump(items[first : last + 1] if last >= 0 else [])


def has_repeats(items: list[object]) -> bool:
    """Whether an element comes twice; numbers are one however they are written."""
    return len({json.dumps(drop_zero_sign(item)) for item in items}) < len(items)


def drop_zero_sign(item: object) -> object:
    """An element as it is compared: -0.0 is 0.0."""
    return item + 0.0 if isinstance(item, float) else item


def array_includes(quantifier: Callable[[list[bool]], bool]) -> Callable[[str, str], int]:
    """ARRAY_INCLUDES_ANY, ARRAY_INCLUDES_ALL: NULL and NaN equal nothing."""

    def call(values: str, targets: str) -> int:
        items = set(json.loads(values)) - {None, "NaN"}
        return int(quantifier([wanted in items for wanted in json.loads(targets)]))

    return call


def to_string(values: object, delimiter: object, *null_text: object) -> str | None:
    """ARRAY_TO_STRING: NULLs are left out, or replaced by a text."""
    if values is None or delimiter is None or None in null_text:
        return None
    replacement = null_text[0] if null_text else None
    items = [replacement if item is None else item for item in json.loads(str(values))]
    return join_texts(str(delimiter), [str(item) for item in items if item is not None])


def to_bytes(values: str, delimiter: bytes, *null_text: bytes) -> bytes:
    """ARRAY_TO_STRING of BYTES."""
    items = [null_text[0] if i is None and null_text else i for i in json.loads(values)]
    texts = [i if isinstance(i, bytes) else base64.b64decode(i) for i in items if i is not None]
    return join_texts(delimiter, texts)


def too_many_items() -> SpannerError:
    """A generated array above GoogleSQL's limit."""
    return out_of_range(f"Cannot generate arrays with more than {GENERATED_MAX} elements.")


def generate(first: int, last: int, step: int = 1) -> str:
    """GENERATE_ARRAY of INT64, both ends included."""
    if step == 0:
        raise out_of_range("Sequence step cannot be 0.")
    items = range(first, last + (1 if step > 0 else -1), step)
    # len() of a range of more than 64 bits is an error.
    if items and abs(items[-1] - first) // abs(step) >= GENERATED_MAX:
        raise too_many_items()
    return dump(list(items))


def generate_float(first: object, last: object, step: object = 1.0) -> str:
    """GENERATE_ARRAY of FLOAT64."""
    if "NaN" in (first, last, step):
        raise out_of_range("Sequence start, end and step cannot be NaN.")
    low, high, by = float(str(first)), float(str(last)), float(str(step))
    if by == 0:
        raise out_of_range("Sequence step cannot be 0.")
    steps = (high - low) / by
    if not steps < GENERATED_MAX:
        raise too_many_items()
    count = int(steps) + 1 if steps >= 0 else 0
    return dump([low + by * number for number in range(count)])


def generate_numeric(first: str, last: str, step: str | None = None) -> str:
    """GENERATE_ARRAY of NUMERIC."""
    by = decimal_from_numeric(step) if step is not None else Decimal(1)
    low, high = decimal_from_numeric(first), decimal_from_numeric(last)
    if by == 0:
        raise out_of_range("Sequence step cannot be 0.")
    items: list[object] = []
    while (low <= high) if by > 0 else (low >= high):
        if len(items) >= GENERATED_MAX:
            raise too_many_items()
        items.append(numeric_from_decimal(low))
        low = NUMERIC_CONTEXT.add(low, by)
    return dump(list(items))


def read_vectors(left: str, right: str) -> tuple[list[float], list[float]]:
    """Two arrays of numbers of one length."""
    first, second = json.loads(left), json.loads(right)
    if None in first or None in second:
        raise out_of_range("Cannot compute a distance of arrays with NULL elements")
    if len(first) != len(second):
        raise out_of_range(f"Array length mismatch: {len(first)} and {len(second)}")
    return [float(i) for i in first], [float(i) for i in second]


def dot_product(left: str, right: str) -> float | str:
    """DOT_PRODUCT."""
    first, second = read_vectors(left, right)
    return write_float(add_products(first, second))


def euclidean_distance(left: str, right: str) -> float | str:
    """EUCLIDEAN_DISTANCE."""
    pairs = list(zip(*read_vectors(left, right), strict=True))
    apart = [check_finite(a - b, a, b) for a, b in pairs]
    return write_float(math.sqrt(add_products(apart, apart)))


def cosine_distance(left: str, right: str) -> float | str:
    """COSINE_DISTANCE: not of a vector of zeros."""
    first, second = read_vectors(left, right)
    product = add_products(first, second)
    add_products(first, first)
    add_products(second, second)
    lengths = math.hypot(*first) * math.hypot(*second)
    if lengths == 0:
        raise out_of_range("Cannot compute cosine distance against zero vector.")
    return write_float(1 - product / lengths)


def add_products(first: list[float], second: list[float]) -> float:
    """The sum of the products. Raises OUT_OF_RANGE where finite numbers overflow."""
    total = 0.0
    for one, other in zip(first, second, strict=True):
        product = check_finite(one * other, one, other)
        total = check_finite(total + product, total, product)
    return total


def check_finite(result: float, *operands: float) -> float:
    """A result that is finite if its operands are. Raises OUT_OF_RANGE."""
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise out_of_range(f"double overflow: {' and '.join(f'{each:g}' for each in operands)}")
    return result


DISTANCES = {
    "COSINE_DISTANCE": cosine_distance,
    "EUCLIDEAN_DISTANCE": euclidean_distance,
    "DOT_PRODUCT": dot_product,
}


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    for number in (FLOAT64, FLOAT32):
        both = [array_of(number), array_of(number)]
        for name, distance in DISTANCES.items():
            add(name, both, FLOAT64, distance, postgres=f"SPANNER.{name}")
    both = [array_of(INT64), array_of(INT64)]
    add("DOT_PRODUCT", both, FLOAT64, dot_product, postgres="SPANNER.DOT_PRODUCT")
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_array": array,
    "fn_element": element,
    "fn_float_element": float_element,
    "fn_concat_arrays": concatenate,
    "fn_array_reverse": lambda values: dump(json.loads(values)[::-1]),
    "fn_array_first": element_at(0, "ARRAY_FIRST"),
    "fn_array_last": element_at(-1, "ARRAY_LAST"),
    "fn_array_slice": slice_array,
    "fn_first_elements": first_elements,
    "fn_flatten": flatten,
    "fn_array_is_distinct": lambda values: int(not has_repeats(json.loads(values))),
    "fn_array_includes_any": array_includes(any),
    "fn_array_includes_all": array_includes(all),
    "fn_array_to_string": to_string,
    "fn_array_to_string_bytes": to_bytes,
    "fn_generate_array": generate,
    "fn_generate_array_float64": generate_float,
    "fn_generate_array_numeric": generate_numeric,
    **SERVED.at_run_time,
}
