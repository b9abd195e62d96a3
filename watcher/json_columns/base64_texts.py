"""A column of binary -> base64 texts, in one call for all of them."""

from __future__ import annotations

from base64 import b64encode
from binascii import b2a_base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.spanner.results.base64_column import LONG_BYTES, PAD


def encode_base64(column: pa.Array) -> pa.Array:
    """The base64 texts of binary values; NULL stays NULL."""
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    if lengths.sum() > LONG_BYTES * len(lengths):
        return encode_each(column)
    ends = np.cumsum((lengths + 2) // 3)
    padding = np.diff(ends, prepend=0) * 3 - lengths
    one, two = ends[padding > 0], ends[padding == 2]
    octets = np.zeros(3 * int(ends[-1]) if len(ends) else 0, np.uint8)
    filled = np.ones(len(octets), bool)
    filled[3 * one - 1] = False
    filled[3 * two - 2] = False
    octets[filled] = read_content(column)
    letters = np.frombuffer(b2a_base64(octets.data, newline=False), np.uint8).copy()
    letters[4 * one - 1] = PAD
    letters[4 * two - 2] = PAD
    offsets = np.concatenate(([0], 4 * ends)).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts


def read_content(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The bytes of all values, one after another."""
    content = pc.binary_join(single_list(pc.fill_null(column, b"")), b"")[0].as_buffer()
    return np.frombuffer(content, np.uint8)


def single_list(values: pa.Array) -> pa.Array:
    """A column as the only value of a column of lists."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def encode_each(column: pa.Array) -> pa.Array:
    """Long values: a call a value costs less than filling groups of three bytes."""
    values = (None if value is None else b64encode(value) for value in column.to_pylist())
    return pa.array(values, pa.binary()).cast(pa.string())
