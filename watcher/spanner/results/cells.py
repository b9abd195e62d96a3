"""The values of one column as Arrow buffers: kinds, NULLs and payloads, by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from google.protobuf.struct_pb2 import Value

from watcher.spanner.results.sent_values import (
    BOOLEAN,
    LIST,
    NUMBER,
    TEXT,
    SentValues,
    UnexpectedValueError,
    check_encoding,
)


def scan_cells(values: Sequence[bytes]) -> SentValues:
    """The values of a column. Values that are not in the usual encoding are encoded again first."""
    if isinstance(values, SentValues):
        return values
    column = scan_canonical(values)
    if column is None:
        column = scan_canonical([Value.FromString(value).SerializeToString() for value in values])
    if column is None:
        raise UnexpectedValueError("Spanner sent a value without a kind")
    return column


def scan_canonical(values: Sequence[bytes]) -> SentValues | None:
    """The values, or None when one is not in the usual encoding."""
    raw = pa.array(values, pa.binary())
    _, offsets, content = raw.buffers()
    bounds = np.frombuffer(offsets, np.int32)[: len(raw) + 1].astype(np.int64)
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    if len(raw) and lengths.min() < 2:
        return None
    kinds, usual = check_encoding(data, starts, lengths)
    return SentValues(data, starts, lengths, kinds) if usual.all() else None


def decode_numbers(column: SentValues) -> pa.Array:
    """Doubles; NaN and the infinities come as words."""
    column.check_kind(NUMBER, TEXT)
    numeric = column.kinds == NUMBER
    values = np.zeros(len(column.kinds), np.float64)
    if numeric.any():
        anywhere = np.ndarray(len(column.data) - 7, "<f8", column.data.data, strides=(1,))
        values[numeric] = anywhere[column.starts[numeric] + 1]
    is_word = column.kinds == TEXT
    if is_word.any():
        words = column.select(is_word).extract_payloads().cast(pa.string())
        values[is_word] = words.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pa.array(values, pa.float64(), mask=column.nulls)


def decode_booleans(column: SentValues) -> pa.Array:
    """True and False."""
    column.check_kind(BOOLEAN)
    return pa.array(column.data[column.starts + 1] == 1, mask=column.nulls)


def decode_texts(column: SentValues) -> pa.Array:
    """Strings. Raises pyarrow's ArrowInvalid for what is not UTF-8."""
    column.check_kind(TEXT)
    return column.extract_payloads().cast(pa.string())


def decode_lists(column: SentValues) -> pa.Array:
    """Each list as the bytes of its ListValue."""
    column.check_kind(LIST)
    return column.extract_payloads()
