"""A column of binary -> base64 texts, by vectors."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.spanner.results.base64_column import ALPHABET, LONG_BYTES, PAD

LETTERS = np.frombuffer(ALPHABET, np.uint8)


def encode_base64(column: pa.Array) -> pa.Array:
    """The base64 texts of binary values; NULL stays NULL."""
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    total = int(lengths.sum())
    if total > LONG_BYTES * len(lengths):
        return encode_each(column)
    values = pc.fill_null(column, b"")
    content = pc.binary_join(single_list(values), b"")[0].as_py()
    groups = (lengths + 2) // 3
    ends = np.cumsum(groups)
    padded = np.zeros(3 * int(groups.sum()), np.uint8)
    gaps = 3 * (ends - groups) - (np.cumsum(lengths) - lengths)
    padded[np.arange(total) + np.repeat(gaps, lengths)] = np.frombuffer(content, np.uint8)
    letters = encode_triples(padded.reshape(-1, 3))
    letters[ends[lengths % 3 == 1] - 1, 2] = PAD
    letters[ends[lengths % 3 != 0] - 1, 3] = PAD
    offsets = np.concatenate(([0], 4 * ends)).astype(np.int32)
    texts = pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters.reshape(-1))
    )
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts


def encode_triples(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Four letters for each three bytes."""
    first, second, third = octets[:, 0], octets[:, 1], octets[:, 2]
    sextets = np.empty((len(octets), 4), np.uint8)
    sextets[:, 0] = first >> 2
    sextets[:, 1] = ((first & 0x03) << 4) | (second >> 4)
    sextets[:, 2] = ((second & 0x0F) << 2) | (third >> 6)
    sextets[:, 3] = third & 0x3F
    return LETTERS[sextets]


def single_list(values: pa.Array) -> pa.Array:
    """A column as the only value of a column of lists."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def encode_each(column: pa.Array) -> pa.Array:
    """Long values: a call a value costs less than vectors over every byte."""
    values = (None if value is None else b64encode(value) for value in column.to_pylist())
    return pa.array(values, pa.binary()).cast(pa.string())
