"""Columns of values -> columns of Avro's bytes, by vectors of the processor.

avro.apache.org/docs/1.12.0/specification/ has the binary encoding.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

GROUPS, GROUP_BITS = 10, 7
"""A long is written in groups of bits, the lowest first; every octet but the last has a flag."""
GROUP_MASK, MORE = 0x7F, 0x80
NULL, PRESENT = b"\x00", b"\x02"
"""Which branch of a union with null follows."""


def join(*parts: pa.Array | bytes) -> pa.Array:
    """The parts of each row, one after another."""
    return pc.binary_join_element_wise(*parts, b"")


def encode_union(column: pa.Array, encoded: pa.Array) -> pa.Array:
    """Values that may be NULL."""
    present = join(PRESENT, encoded)
    return pc.if_else(column.is_valid(), present, NULL) if column.null_count else present


def encode_longs(column: pa.Array) -> pa.Array:
    """Integers of 64 bits, or of fewer; of NULL anything."""
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    shifts = np.arange(GROUPS, dtype=np.uint64) * np.uint64(GROUP_BITS)
    groups = zigzag[:, None] >> shifts
    lengths = np.maximum((groups != 0).sum(axis=1), 1)
    octets = (groups & np.uint64(GROUP_MASK)).astype(np.uint8)
    indexes = np.arange(GROUPS)
    octets[indexes < lengths[:, None] - 1] |= MORE
    return build_column(lengths, octets[indexes < lengths[:, None]])


def encode_texts(column: pa.Array) -> pa.Array:
    """Strings or bytes; NULL stays NULL."""
    lengths = encode_longs(pc.fill_null(pc.binary_length(column), 0))
    return join(lengths, column.cast(pa.binary()))


def encode_booleans(column: pa.Array) -> pa.Array:
    """Booleans; NULL stays NULL."""
    return pc.if_else(column, b"\x01", b"\x00")


def encode_floats(column: pa.Array) -> pa.Array:
    """Floats of either size, the lowest octet first; of NULL anything."""
    numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    size = numbers.dtype.itemsize
    ordered = np.ascontiguousarray(numbers.astype(f"<f{size}"))
    return build_column(np.full(len(ordered), size), ordered.view(np.uint8))


def build_column(lengths: NDArray[np.int64], octets: NDArray[np.uint8]) -> pa.Array:
    """A column of bytes, from their lengths and all of them together."""
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(octets))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
