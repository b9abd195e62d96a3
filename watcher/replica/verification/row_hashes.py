"""The hashes of the rows of Arrow batches: those that ``canonical`` computes in Spanner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.model.value_types import Form, describe_values
from watcher.replica.verification.canonical import (
    END,
    FLOAT_FORMAT,
    NULL_PART,
    ComparedColumn,
    is_measured,
)
from watcher.replica.verification.column_groups import ColumnGroup
from watcher.spanner.json_columns.scalars import format_numeric
from watcher.spanner.results.timestamp_columns import MICROSECONDS, truncate_timestamps

K1, K2 = 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
"""FarmHash's constants."""
MASK = (1 << 64) - 1
SECONDS_LENGTH = len("YYYY-MM-DDTHH:MM:SS")


def hash_rows(batch: pa.RecordBatch, columns: Sequence[ComparedColumn]) -> NDArray[np.int64]:
    """The hash of each row."""
    parts = [render_parts(batch.column(each.name), each) for each in columns]
    texts = pc.binary_join_element_wise(*parts, "") if parts else pa.repeat("", batch.num_rows)
    digests = b"".join([sha256(text).digest() for text in texts.cast(pa.binary()).to_pylist()])
    return fingerprint_digests(np.frombuffer(digests, "<u8").reshape(-1, 4))


def add_hashes(
    batches: Iterable[pa.RecordBatch], groups: Sequence[ColumnGroup]
) -> Iterator[pa.RecordBatch]:
    """The rows with the hashes of each group."""
    for batch in batches:
        if batch.num_rows:
            hashed = batch
            for group in groups:
                hashes = pa.array(hash_rows(batch, group.columns))
                hashed = hashed.append_column(group.name, hashes)
            yield hashed


def fingerprint_digests(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """FarmHash's Fingerprint64 of texts of 32 bytes each, given as four words."""
    multiplier = np.uint64(K2 + 2 * 32 & MASK)
    first, second = words[:, 0] * np.uint64(K1), words[:, 1]
    third, fourth = words[:, 3] * multiplier, words[:, 2] * np.uint64(K2)
    left = rotate(first + second, 43) + rotate(third, 30) + fourth
    right = first + rotate(second + np.uint64(K2), 18) + third
    mixed = mix((left ^ right) * multiplier)
    return (mix((right ^ mixed) * multiplier) * multiplier).view(np.int64)


def rotate(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Words rotated to the right."""
    return (values >> np.uint64(bits)) | (values << np.uint64(64 - bits))


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words with their upper bits in the lower ones."""
    return values ^ (values >> np.uint64(47))


def render_parts(values: pa.Array, column: ComparedColumn) -> pa.Array:
    """The part of each cell."""
    if column.element is not None:
        texts = join_elements(values, column.element)
    else:
        texts = render_texts(values, column)
    if is_measured(column):
        lengths = pc.binary_length(texts).cast(pa.string())
        return pc.fill_null(pc.binary_join_element_wise(lengths, texts, ":"), NULL_PART)
    return pc.fill_null(pc.binary_join_element_wise(texts, END, ""), NULL_PART)


def render_texts(values: pa.Array, column: ComparedColumn) -> pa.Array:
    """The text of each cell; NULL for NULL."""
    form = describe_values(column.type).form
    match form:
        case Form.FLOAT32 | Form.FLOAT64:
            # A sum with zero takes the sign of zero away.
            sign = 0.0 if column.one_zero else -0.0
            return map_texts(values, lambda value: FLOAT_FORMAT % (value + sign))
        case Form.BYTES:
            return map_texts(values, bytes.hex)
        case Form.NUMERIC | Form.WIDE_NUMERIC:
            decimal = pa.types.is_decimal(values.type)
            return map_texts(values, format_units) if decimal else values.cast(pa.string())
        case Form.TIMESTAMP:
            return render_timestamps(values, column.exact)
        case Form.BOOL | Form.INTEGER | Form.TEXT | Form.DATE | Form.JSON:
            return values.cast(pa.string())
    assert_never(form)


def format_units(value: Decimal) -> str:
    """A NUMERIC without trailing zeros; zero has no sign."""
    return format_numeric(value) if value else "0"


def map_texts(column: pa.Array, render: Callable[[Any], str]) -> pa.Array:
    """A function of each value that is not NULL."""
    texts = [None if value is None else render(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def render_timestamps(column: pa.Array, exact: bool) -> pa.Array:
    """Microseconds since 1970; exactly, of text, also the nanoseconds of the microsecond."""
    if not exact:
        kept = truncate_timestamps(column) if pa.types.is_string(column.type) else column
        return kept.cast(MICROSECONDS).cast(pa.int64()).cast(pa.string())
    texts = column.cast(pa.string())
    fraction = pc.utf8_trim(pc.utf8_slice_codeunits(texts, SECONDS_LENGTH), ".Z")
    nanos = pc.utf8_slice_codeunits(pc.utf8_rpad(fraction, 9, "0"), 6).cast(pa.int64())
    micros = truncate_timestamps(texts).cast(pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(micros, nanos.cast(pa.string()), ".")


def join_elements(arrays: pa.Array, element: ComparedColumn) -> pa.Array:
    """The parts of the elements, one after another."""
    parts = iter(render_parts(arrays.flatten(), element).to_pylist())
    lengths = pc.list_value_length(arrays).to_pylist()
    return pa.array(
        [None if n is None else "".join(next(parts) for _ in range(n)) for n in lengths],
        pa.string(),
    )
