"""A column of binary -> base64 texts, in one call for all of them."""

from __future__ import annotations

from binascii import b2a_base64
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.spanner.results.base64_column import LETTERS, OCTETS, PAD

try:
    from pybase64 import b64encode as encode_octets
except ModuleNotFoundError:  # Python's own gives the same, up to three times as slowly
    encode_octets = partial(b2a_base64, newline=False)

FILLING = pa.Array.from_buffers(
    pa.binary(), 3, [None, pa.py_buffer(np.array([0, 0, 2, 3], np.int32)), pa.py_buffer(b"\0\0\0")]
)
"""What makes whole groups of a value, by the bytes of its last group: none, two, one. Of Python
objects, pyarrow would import pandas in every worker to make it."""


def encode_base64(column: pa.Array) -> pa.Array:
    """The base64 texts of binary values; NULL stays NULL."""
    if not len(column):
        return column.cast(pa.string())
    rest = pc.fill_null(pc.binary_length(column), 0).to_numpy() % OCTETS
    filling = FILLING.take(pa.array(rest))
    # Values of whole groups are one value: each gets letters of its own, and NULL none.
    filled = pc.binary_join_element_wise(
        column, filling, b"", null_handling="replace", null_replacement=""
    )
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[: len(column) + 1]
    ends = offsets // OCTETS * LETTERS
    letters = np.frombuffer(encode_octets(filled.buffers()[2] or b""), np.uint8).copy()
    letters[ends[1:][rest > 0] - 1] = PAD
    letters[ends[1:][rest == 1] - 2] = PAD
    texts = pa.StringArray.from_buffers(len(column), pa.py_buffer(ends), pa.py_buffer(letters))
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts
